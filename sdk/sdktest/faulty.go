package sdktest

import (
	"context"
	"io"
	"iter"
	"sync/atomic"

	"github.com/cairnsync/cairn/sdk"
)

// Call is one call of a Target as a Faulty's hooks see it.
type Call struct {
	N   int64  // the how-manieth call of this Faulty, from 1
	Op  string // "put", "get", "list" or "delete"
	Key string // the prefix of a list; the first key of a delete
}

// Faulty wraps a Target with the faults of real ones. A nil hook does nothing; hooks are called concurrently and may block until ctx
// ends, as a stalled store does. Set them before the first call.
type Faulty struct {
	Target sdk.Target

	// Before runs ahead of the call. An error is the answer, and the Target never sees the call.
	Before func(ctx context.Context, call Call) error
	// After gets the Target's answer and gives the caller's: an error in place of nil is a lost reply, for the call has happened.
	After func(ctx context.Context, call Call, err error) error
	// Body wraps what a Get yields: cut it short, stall it, change it.
	Body func(call Call, body io.ReadCloser) io.ReadCloser

	calls atomic.Int64
}

var _ sdk.Target = (*Faulty)(nil)

// Calls is the number of calls so far.
func (f *Faulty) Calls() int64 { return f.calls.Load() }

// Put passes on.
func (f *Faulty) Put(ctx context.Context, req sdk.PutRequest) (res sdk.PutResult, err error) {
	err = f.around(ctx, "put", req.Key, func() (err error) {
		res, err = f.Target.Put(ctx, req)
		return err
	})
	return res, err
}

// Get passes on.
func (f *Faulty) Get(ctx context.Context, req sdk.GetRequest) (res sdk.GetResult, err error) {
	call := f.call("get", req.Key)
	if err := f.before(ctx, call); err != nil {
		return res, err
	}
	res, err = f.Target.Get(ctx, req)
	opened := err == nil
	if err = f.after(ctx, call, err); err != nil {
		if opened {
			res.Body.Close()
		}
		return sdk.GetResult{}, err
	}
	if f.Body != nil {
		res.Body = f.Body(call, res.Body)
	}
	return res, nil
}

// List passes on; After is asked once, at the end, so a listing can be complete and yet fail.
func (f *Faulty) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		call := f.call("list", req.Prefix)
		err := f.before(ctx, call)
		if err == nil {
			for obj, fault := range f.Target.List(ctx, req) {
				if fault != nil {
					err = fault
					break
				}
				if !yield(obj, nil) {
					return
				}
			}
			err = f.after(ctx, call, err)
		}
		if err != nil {
			yield(sdk.Object{}, err)
		}
	}
}

// Delete passes on.
func (f *Faulty) Delete(ctx context.Context, keys []string) error {
	var key string
	if len(keys) > 0 {
		key = keys[0]
	}
	return f.around(ctx, "delete", key, func() error { return f.Target.Delete(ctx, keys) })
}

func (f *Faulty) around(ctx context.Context, op, key string, do func() error) error {
	call := f.call(op, key)
	if err := f.before(ctx, call); err != nil {
		return err
	}
	return f.after(ctx, call, do())
}

func (f *Faulty) call(op, key string) Call { return Call{N: f.calls.Add(1), Op: op, Key: key} }

func (f *Faulty) before(ctx context.Context, call Call) error {
	if f.Before == nil {
		return nil
	}
	return f.Before(ctx, call)
}

func (f *Faulty) after(ctx context.Context, call Call, err error) error {
	if f.After == nil {
		return err
	}
	return f.After(ctx, call, err)
}
