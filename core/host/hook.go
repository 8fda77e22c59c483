package host

import (
	"context"
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
	if h.opts.Hook == nil {
		return store
	}
	return hookedStore{store, h.opts.Hook}
}

type hookedStore struct {
	syncer.Store

	hook func(point string)
}

// Put names the kind of object before and after: push.pack, push.commit, push.epoch, push.format, push.probe.
func (s hookedStore) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	kind := "push." + kindOf(req.Key)
	s.hook(kind + ".begin")
	result, err := s.Store.Put(ctx, req)
	if err == nil {
		s.hook(kind + ".done")
	}
	return result, err
}

// kindOf is the folder of a repository's object: commit, epoch, pack, probe; or the name of one without a folder.
func kindOf(key string) string {
	segments := strings.Split(path.Dir(key), "/")
	for _, s := range segments {
		switch s {
		case "commit", "epoch", "pack", "probe":
			return s
		}
	}
	return strings.ToLower(strings.TrimSuffix(path.Base(key), path.Ext(key)))
}
