package host

import (
	"context"
	"iter"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk"
)

// outage refuses calls of a target's store while it is switched on.
type outage struct {
	packs atomic.Bool // reading packs is denied
	all   atomic.Bool // everything is
	stall atomic.Bool // reading packs waits until it is given up
	hang  atomic.Bool // reading and listing anything waits until it is given up
	under string      // what keys the refused calls have begin with; "" = any
}

func (o *outage) around(opts *Options) {
	opts.around = func(s syncer.Store) syncer.Store { return brokenStore{s, o} }
}

type brokenStore struct {
	syncer.Store

	*outage
}

func (s brokenStore) refuse(op, key string) error {
	if strings.HasPrefix(key, s.under) && (s.all.Load() || op == "get" && s.packs.Load() && strings.Contains(key, "/pack/")) {
		return &sdk.Error{Code: sdk.PermissionDenied, Op: op, Key: key}
	}
	return nil
}

func (s brokenStore) Fetch(ctx context.Context, req sdk.GetRequest, f *os.File, off int64) (int64, error) {
	if s.stall.Load() {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	if err := s.refuse("get", req.Key); err != nil {
		return 0, err
	}
	return s.Store.Fetch(ctx, req, f, off)
}

func (s brokenStore) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	if err := s.refuse("put", req.Key); err != nil {
		return sdk.PutResult{}, err
	}
	return s.Store.Put(ctx, req)
}

func (s brokenStore) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		if err := s.hangs(ctx, req.Prefix); err != nil {
			yield(sdk.Object{}, err)
			return
		}
		s.Store.List(ctx, req)(yield)
	}
}

func (s brokenStore) hangs(ctx context.Context, key string) error {
	if !s.hang.Load() || !strings.HasPrefix(key, s.under) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (s brokenStore) Get(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	if err := s.hangs(ctx, req.Key); err != nil {
		return sdk.GetResult{}, err
	}
	if err := s.refuse("get", req.Key); err != nil {
		return sdk.GetResult{}, err
	}
	return s.Store.Get(ctx, req)
}

// pair is a primary and a standby that has what the primary pushed first, and lacks what it pushed then.
type pair struct {
	w                *world
	primary, standby *liveHost
	outage           *outage
	config           conf // of the standby
	old, latest      string
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{w: newWorld(t), outage: &outage{}, config: conf{data: "elsewhere", initial: "standby", pull: "100ms"}}
	p.primary = p.w.start(conf{pull: "100ms"}).up()
	p.primary.insert(0, 9)
	p.old = p.primary.rows()
	p.primary.checkpoint()
	p.primary.push()
	p.standby = p.w.start(p.config, p.outage.around)
	p.standby.pulledStep(p.primary.view("p").Step)
	p.outage.packs.Store(true)
	p.primary.insert(9, 30)
	p.primary.checkpoint()
	p.primary.push()
	p.latest = p.primary.rows()
	return p
}

// fenced demands that the primary notices, stops pushing and says who it was.
func (p *pair) fenced() {
	p.w.t.Helper()
	p.primary.insert(100, 101)
	p.primary.checkpoint()
	if _, err := p.primary.SyncCheckpoint(p.w.t.Context(), "p", true); err == nil {
		p.w.t.Fatal("the primary before goes on pushing")
	}
	target := p.primary.view("p").Targets[0]
	equal(p.w.t, "state of the primary before", target.State, "fenced")
	contains(p.w.t, target.Reason, p.standby.host.hostname, "cairn pipeline standby", "cairn pipeline adopt")
	equal(p.w.t, "it computes on", p.primary.view("p").State, "running")
}
