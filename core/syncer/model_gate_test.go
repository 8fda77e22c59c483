package syncer

import (
	"bytes"
	"context"
	"io"
	"iter"
	"slices"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

const modelPrefix = "model"

// gateCall is a call that waits at the gate.
type gateCall struct {
	on    *machine
	actor string // who calls: a life of a host, its sweep, a reader
	op    string
	key   string          // the first, for a delete; "" for a turn that is no call
	keys  []string        // of a delete
	put   *sdk.PutRequest // of a put
	apply func() error    // what the store does

	done      chan struct{}
	err       error
	stalled   bool // never answered: only its deadline ends it
	abandoned bool // its caller gave up
	late      bool // it lands after that
	era       int  // of the store, when it was made
}

func (c *gateCall) mutates() bool { return c.put != nil || c.keys != nil }

func (c *gateCall) String() string {
	switch {
	case c.keys != nil:
		return c.actor + " delete " + brieflyAll(c.keys)
	case c.key == "":
		return c.actor + " " + c.op
	}
	return c.actor + " " + c.op + " " + briefly(c.key)
}

// wait stands at the gate until the scheduler has decided or ctx ends.
func (w *world) wait(ctx context.Context, c *gateCall) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.done = make(chan struct{})
	w.mu.Lock()
	c.era = w.era
	w.pending = append(w.pending, c)
	w.mu.Unlock()
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		w.mu.Lock()
		c.abandoned = true
		w.mu.Unlock()
		return ctx.Err()
	}
}

// turn waits for leave to do something that is no call, and does it with the world standing still.
func (w *world) turn(ctx context.Context, on *machine, actor, what string, do func()) bool {
	err := w.wait(ctx, &gateCall{on: on, actor: actor, op: what, apply: func() error {
		if do != nil {
			do()
		}
		return nil
	}})
	return err == nil
}

// gate is the store as one actor sees it.
type gate struct {
	w     *world
	on    *machine
	actor string
}

var _ sdk.Target = gate{}

// actorKey is what a context carries when not the host's push calls but a task beside it.
type actorKey struct{}

// as names the actor of the calls that are made with the context.
func as(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// who is the name that as has given.
func who(ctx context.Context) string {
	name, _ := ctx.Value(actorKey{}).(string)
	return name
}

// call stands at the gate.
func (g gate) call(ctx context.Context, c gateCall) error {
	c.on, c.actor = g.on, g.actor
	if actor := who(ctx); actor != "" {
		c.actor = actor
	}
	return g.w.wait(ctx, &c)
}

func (g gate) Put(ctx context.Context, req sdk.PutRequest) (res sdk.PutResult, err error) {
	content, err := io.ReadAll(req.Body.Reader()) // the caller may close its file before a late request lands
	if err != nil {
		return res, err
	}
	again := sdk.PutRequest{Key: req.Key, Body: sdk.BytesBody(content), IfAbsent: req.IfAbsent && !g.w.lies, Class: req.Class}
	err = g.call(ctx, gateCall{op: "put", key: req.Key, put: &again, apply: func() error {
		_, err := g.w.mem.Put(context.Background(), again)
		return err
	}})
	return res, err
}

func (g gate) Get(ctx context.Context, req sdk.GetRequest) (res sdk.GetResult, err error) {
	var content []byte
	err = g.call(ctx, gateCall{op: "get", key: req.Key, apply: func() error {
		var ok bool
		if content, ok = g.w.mem.Content(req.Key); !ok {
			return &sdk.Error{Code: sdk.NotFound}
		}
		return nil
	}})
	if err != nil {
		return res, err
	}
	from, n, err := req.Range(int64(len(content)))
	if err != nil {
		return res, err
	}
	return sdk.GetResult{Body: io.NopCloser(bytes.NewReader(content[from : from+n])), Size: n}, nil
}

func (g gate) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		var found []sdk.Object
		err := g.call(ctx, gateCall{op: "list", key: req.Prefix, apply: func() error {
			for obj := range g.w.mem.List(context.Background(), req) {
				found = append(found, obj)
			}
			return nil
		}})
		for _, obj := range found {
			if err == nil && !yield(obj, nil) {
				return
			}
		}
		if err != nil {
			yield(sdk.Object{}, err)
		}
	}
}

func (g gate) Delete(ctx context.Context, keys []string) error {
	keys = slices.Clone(keys)
	return g.call(ctx, gateCall{op: "delete", key: keys[0], keys: keys, apply: func() error {
		return g.w.mem.Delete(context.Background(), keys)
	}})
}

// numbersOf lists the numbers below a folder of the model's repository, ascending, as any client would.
func numbersOf(ctx context.Context, t sdk.Target, folder string, parse func(prefix, key string) (uint64, error)) (found []uint64, err error) {
	for obj, err := range t.List(ctx, sdk.ListRequest{Prefix: folder}) {
		if err != nil {
			return nil, err
		}
		n, err := parse(modelPrefix, obj.Key)
		if err != nil {
			return nil, err
		}
		found = append(found, n)
	}
	return found, nil
}

// highestGC reads the gc object that holds; the zero GC when there is none.
func highestGC(ctx context.Context, t sdk.Target) (repository.GC, error) {
	numbers, err := numbersOf(ctx, t, repository.GCPrefix(modelPrefix), repository.ParseGCKey)
	if err != nil || len(numbers) == 0 {
		return repository.GC{}, err
	}
	k := numbers[len(numbers)-1]
	data, err := readObject(ctx, t, repository.GCKey(modelPrefix, k), repository.MaxSmall)
	if err != nil {
		return repository.GC{}, err
	}
	return repository.DecodeGC(k, data)
}
