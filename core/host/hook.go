package host

import (
	"context"
	"errors"
	"os"
	"path"
	"strings"

	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk"
)

// hook names a point of a durable change to whoever tests crashes.
func (h *Host) hook(point string) {
	if h.opts.Hook != nil {
		h.opts.Hook(point)
	}
}

// store is a target's store; with a hook, one that names what is about to be written and what has been.
func (h *Host) store(t *target) syncer.Store {
	var store syncer.Store = t.plugin
	if h.opts.around != nil {
		store = h.opts.around(store)
	}
	return hooked(store, h.opts.Hook)
}

// hooked is a store that tells hook, which may be nil, what is about to be read, written and deleted, and what has been.
func hooked(store syncer.Store, hook func(point string)) syncer.Store {
	if hook == nil {
		return store
	}
	return hookedStore{store, hook}
}

type hookedStore struct {
	syncer.Store

	hook func(point string)
}

// Put names the kind of object before and after: push.pack, push.commit, push.epoch, push.format, push.probe, push.gc, push.pin.
func (s hookedStore) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	kind := "push." + kindOf(req.Key)
	s.hook(kind + ".begin")
	result, err := s.Store.Put(ctx, req)
	if err == nil {
		s.hook(kind + ".done")
	}
	return result, err
}

// Fetch names the kind of object before and after: fetch.pack.
func (s hookedStore) Fetch(ctx context.Context, req sdk.GetRequest, f *os.File, off int64) (int64, error) {
	kind := "fetch." + kindOf(req.Key)
	s.hook(kind + ".begin")
	n, err := s.Store.Fetch(ctx, req, f, off)
	if err == nil {
		s.hook(kind + ".done")
	}
	return n, err
}

// Delete names the kind of the first object before and after, and in the middle of several: delete.commit, delete.gc, delete.pack, delete.pin,
// delete.probe. The middle is there because the first object goes in a call of its own.
func (s hookedStore) Delete(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return s.Store.Delete(ctx, keys)
	}
	kind := "delete." + kindOf(keys[0])
	s.hook(kind + ".begin")
	var first error
	if len(keys) > 1 {
		first = s.Store.Delete(ctx, keys[:1])
		s.hook(kind + ".amid")
		keys = keys[1:]
	}
	err := errors.Join(first, s.Store.Delete(ctx, keys))
	if err == nil {
		s.hook(kind + ".done")
	}
	return err
}

// kindOf is the folder of a repository's object: commit, epoch, gc, pack, pin, probe; or the name of one without a folder.
func kindOf(key string) string {
	segments := strings.Split(path.Dir(key), "/")
	for _, s := range segments {
		switch s {
		case "commit", "epoch", "gc", "pack", "pin", "probe":
			return s
		}
	}
	return strings.ToLower(strings.TrimSuffix(path.Base(key), path.Ext(key)))
}
