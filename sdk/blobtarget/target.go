// Package blobtarget makes an sdk.Target of any gocloud.dev/blob bucket, so that a store with a gocloud driver is a plugin in about thirty
// lines. It is for plugin authors: open a bucket, hand it to New, return what New returns from Plugin.Open.
//
// The portable way does everything through the bucket. It is complete where the driver is: a driver that ignores IfNotExist, lists out of
// order or buffers whole objects makes a target that does so too, and the exam (package sdktest) will tell. Hooks replace a verb by the vendor's own way
// where that is better.
//
// What holds for every driver, and need not be written again:
//   - a Put whose body fails is cancelled before its writer is closed, since closing is what publishes an object;
//   - a listing is held to its order, its prefix and its start: out of order or twice the same key is an error, never a silent gap;
//   - ranges mean what sdk.GetRequest says on every store;
//   - a call whose context has ended touches nothing;
//   - every failure is an *sdk.Error with what was done, to which key, and a code.
//
// gocloud writes some keys under other names ("../" becomes "..__0x2f__"). Such keys are refused as Unsupported, so that what a
// hook stores and what the bucket reads are always the same object.
//
// The package imports no vendor and keeps no state. Its only goroutines are those of one Delete, which waits for them.
package blobtarget

import (
	"context"
	"errors"
	"io"
	"iter"

	"gocloud.dev/blob"

	"github.com/cairnsync/cairn/sdk"
)

// Hooks are the vendor's ways. Each is optional and is called concurrently. A hook does not retry, and it may return any error: Error
// is asked what it means.
type Hooks struct {
	// Put stores one object as sdk.Target demands. nil = a blob.Writer with IfNotExist, which may buffer as much as the driver likes.
	Put func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error)

	// Delete removes up to sdk.MaxDelete keys; missing ones are success. Failures of single keys are joined, each an *sdk.Error with Key; any
	// other error is that of the whole call. nil = blob.Bucket.Delete of each key, several at once.
	Delete func(ctx context.Context, keys []string) error

	// BeforeList gives a blob.ListOptions.BeforeList that makes the store begin after req.StartAfter, or at it. What comes too early is
	// left out anyway, so nil, which lists all of the prefix, is only slow.
	BeforeList func(req sdk.ListRequest) func(as func(any) bool) error

	// Error is the vendor's table: the code, provider, hint and retry-after of err, found with errors.As. Op and Key are filled in, and
	// so is Err when it is nil. nil, and a nil table, leave err to gocloud's codes, then to those of the network and the context.
	Error func(err error) *sdk.Error
}

// New makes a target of bucket, and owns it from then on: the target's Close closes it.
func New(bucket *blob.Bucket, hooks Hooks) sdk.Target {
	return &target{bucket: bucket, hooks: hooks}
}

type target struct {
	bucket *blob.Bucket
	hooks  Hooks
}

var (
	_ sdk.Target = (*target)(nil)
	_ io.Closer  = (*target)(nil)
)

// Put stores one object.
func (t *target) Put(ctx context.Context, req sdk.PutRequest) (res sdk.PutResult, err error) {
	put := t.hooks.Put
	if put == nil {
		put = t.write
	}
	err = t.call(ctx, "put", req.Key, func() error {
		res, err = put(ctx, req)
		return err
	})
	return res, asked(req, err)
}

// asked takes Exists from a Put without a condition for the store's defect: whoever hears of it takes the object for stored.
func asked(req sdk.PutRequest, err error) error {
	var failure *sdk.Error
	if !req.IfAbsent && errors.As(err, &failure) && failure.Code == sdk.Exists {
		failure.Code = sdk.Unavailable
	}
	return err
}

// Get opens an object or a range of it.
func (t *target) Get(ctx context.Context, req sdk.GetRequest) (res sdk.GetResult, err error) {
	err = t.call(ctx, "get", req.Key, func() error {
		res, err = t.open(ctx, req)
		return err
	})
	return res, err
}

// List yields the objects below a prefix.
func (t *target) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		err := t.call(ctx, "list", req.Prefix, func() error { return t.list(ctx, req, yield) })
		if err != nil {
			yield(sdk.Object{}, err)
		}
	}
}

// Close closes the bucket.
func (t *target) Close() error { return t.bucket.Close() }

// call is around every verb that has one key or prefix.
func (t *target) call(ctx context.Context, op, key string, do func() error) error {
	err := ctx.Err()
	if err == nil {
		err = checkName(key)
	}
	if err == nil {
		err = do()
	}
	if err != nil {
		return t.failed(ctx, op, key, err)
	}
	return nil
}
