package syncer

import (
	"context"
	"errors"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// listSize is the volume a listing's deadline is reckoned with: 100,000 keys in pages of 1,000 need about ten seconds on S3.
const listSize = 64 << 20

// remote is the repository's objects as a session sees them: small ones read whole, everything created once, each call through the caller.
type remote struct {
	calls    *caller
	store    sdk.Target
	prefix   string
	commands Commands // for the remedies

	advisory bool // conditional puts are not trusted: see createUnfenced
	plain    bool // nor are they made, for the store does not know them or lies about them
}

// get reads a small object.
func (r remote) get(ctx context.Context, key string, limit int64) (data []byte, err error) {
	err = r.calls.do(ctx, "read "+key, limit, func(ctx context.Context) (err error) {
		data, err = readObject(ctx, r.store, key, limit)
		return err
	})
	return data, err
}

// create stores an object that must not exist yet. Exists may be the echo of an own attempt whose answer was lost: the caller reads it back.
func (r remote) create(ctx context.Context, key string, class sdk.Class, body sdk.Body) error {
	err := r.createOnce(ctx, key, class, body)
	if err == nil {
		r.calls.note.stored(body.Size())
	}
	return err
}

func (r remote) createOnce(ctx context.Context, key string, class sdk.Class, body sdk.Body) error {
	if r.advisory && class == sdk.ClassMeta {
		return r.createUnfenced(ctx, key, body)
	}
	err := r.put(ctx, key, class, body) // the key of a pack holds epoch, number and content: whoever writes it writes the same
	if errors.Is(err, sdk.Unsupported) {
		return &RefusedError{
			Target: r.calls.target, Err: err, Reason: "it cannot create an object only if that is absent, so two writers could overwrite each other",
			Remedy: `use a store that can or, where one host alone ever writes there, set fencing = "advisory" in the sync block`,
		}
	}
	return err
}

func (r remote) put(ctx context.Context, key string, class sdk.Class, body sdk.Body) error {
	return r.calls.do(ctx, "create "+key, body.Size(), func(ctx context.Context) error {
		_, err := r.store.Put(ctx, sdk.PutRequest{Key: key, Body: body, IfAbsent: !r.plain, Class: class})
		return err
	})
}

// numbers lists the numbers of the keys below a folder, ascending. Keys that are none of ours are passed over.
func (r remote) numbers(ctx context.Context, folder string, parse func(prefix, key string) (uint64, error)) ([]uint64, error) {
	var found []uint64
	err := r.calls.do(ctx, "list "+folder, listSize, func(ctx context.Context) error {
		found = found[:0]
		for obj, err := range listed(ctx, r.store, sdk.ListRequest{Prefix: folder}, maxListed) {
			if err != nil {
				return err
			}
			if n, err := parse(r.prefix, obj.Key); err == nil {
				found = append(found, n)
			}
		}
		return nil
	})
	return found, err
}

// listedObject is a numbered object as a listing shows it.
type listedObject struct {
	number uint64
	object sdk.Object
}

// same says whether two listings show the same object: one that was removed and made anew has another time.
func (l listedObject) same(other listedObject) bool {
	return l.number == other.number && l.object.Size == other.object.Size && l.object.Modified.Equal(other.object.Modified)
}

// objectsFrom lists the objects of a folder behind the key after: few, for what is wanted is the end of a line.
func (r remote) objectsFrom(ctx context.Context, folder, after string, parse func(prefix, key string) (uint64, error)) (found []listedObject, err error) {
	err = r.calls.do(ctx, "list "+folder, repository.MaxSmall, func(ctx context.Context) error {
		found = found[:0]
		for obj, err := range listed(ctx, r.store, sdk.ListRequest{Prefix: folder, StartAfter: after}, maxListed) {
			if err != nil {
				return err
			}
			if n, err := parse(r.prefix, obj.Key); err == nil {
				found = append(found, listedObject{n, obj})
			}
		}
		return nil
	})
	return found, err
}
