package blobtarget

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gocloud.dev/blob"

	"github.com/cairnsync/cairn/sdk"
)

// maxPage is the most that one page of any store holds.
const maxPage = 1000

func (t *target) list(ctx context.Context, req sdk.ListRequest, yield func(sdk.Object, error) bool) error {
	if err := checkName(req.StartAfter); err != nil {
		return err
	}
	opts := &blob.ListOptions{Prefix: req.Prefix}
	if t.hooks.BeforeList != nil {
		opts.BeforeList = t.hooks.BeforeList(req)
	}
	size := maxPage
	if req.Limit > 0 {
		size = min(req.Limit, maxPage)
	}
	check := lister{req: req, yield: yield}
	for token := blob.FirstPageToken; len(token) > 0; {
		page, next, err := t.bucket.ListPage(ctx, token, size, opts)
		if err != nil {
			return err
		}
		for _, obj := range page {
			if err := check.next(ctx, obj); err != nil {
				return dropStop(err)
			}
		}
		token = next
	}
	return ctx.Err()
}

// errStopped ends a listing whose consumer has heard enough.
var errStopped = errors.New("stopped")

func dropStop(err error) error {
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

// lister holds the pages of a store to the order of their keys.
type lister struct {
	req   sdk.ListRequest
	yield func(sdk.Object, error) bool
	last  string // the key before, "" = none: no object's key is empty
}

func (l *lister) next(ctx context.Context, obj *blob.ListObject) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.check(obj); err != nil {
		return err
	}
	l.last = obj.Key
	// A key that the contract does not allow is somebody else's object: it may be left out, and no method would take it.
	if obj.Key <= l.req.StartAfter || sdk.CheckKey(obj.Key) != nil {
		return nil
	}
	if !l.yield(sdk.Object{Key: obj.Key, Size: obj.Size, Modified: obj.ModTime}, nil) {
		return errStopped
	}
	return nil
}

// check is strict because a gap is invisible: a listing that jumps back has lost what a reader would take for absent.
func (l *lister) check(obj *blob.ListObject) error {
	switch {
	case !strings.HasPrefix(obj.Key, l.req.Prefix):
		return l.fault("%q, which does not begin with the prefix", obj.Key)
	case obj.Key == l.last:
		return l.fault("%q twice", obj.Key)
	case obj.Key < l.last:
		return l.fault("%q after %q", obj.Key, l.last)
	case obj.Size < 0:
		return l.fault("%q with a size of %d bytes", obj.Key, obj.Size)
	}
	return nil
}

func (l *lister) fault(format string, args ...any) error {
	return &sdk.Error{
		Code: sdk.Corrupt, Err: fmt.Errorf("the store lists "+format, args...),
		Hint: "this store, or a proxy before it, does not list keys in the order of their bytes, so absent and unseen objects cannot be told apart",
	}
}
