package syncer

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// world is one story of the model: a store, hosts and a reader around it, and a scheduler that decides what happens next. Every call to the
// store waits at a gate; when all goroutines wait, the scheduler picks one call and its fate. Between two picks nothing moves, so a story
// is a function of its seed.
type world struct {
	rng     *rand.Rand
	mem     *sdktest.Mem
	checker *checker
	hosts   []*host
	reader  *reader
	faults  int // how many calls may still go wrong
	calm    bool
	wipes   bool // the store will be wiped, once
	wiped   bool
	changed bool // the store, since it was last checked
	probes  bool // hosts find out by calls what the store allows; otherwise they know, and the story is about the rest of the protocol
	fencing Fencing
	alone   bool // there is one host at a time
	lies    bool // the store takes every create, as if nobody had asked for a condition

	mu      sync.Mutex
	pending []*gateCall
	late    []*gateCall    // requests that land after their caller gave up
	frozen  map[string]int // actors that are paused, and for how many steps
	outage  map[string]int // actors whose next calls all go wrong
	story   []string
}

// gateCall is a call that waits at the gate.
type gateCall struct {
	actor, op, key string
	apply          func() error // what the store does; nil for a turn that is no call
	mutates        bool

	done      chan struct{}
	err       error
	stalled   bool // never answered: only its deadline ends it
	abandoned bool // its caller gave up
}

func (c *gateCall) String() string {
	return c.actor + " " + c.op + " " + strings.TrimPrefix(c.key, modelPrefix+"/")
}

// retires says whether the call belongs to a retention. One that was begun before the store was wiped would retire what is new there.
func (c *gateCall) retires() bool {
	return c.op == "delete" || c.mutates && strings.Contains(c.key, "/gc/")
}

const modelPrefix = "model"

// wait stands at the gate until the scheduler has decided or ctx ends.
func (w *world) wait(ctx context.Context, c *gateCall) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.done = make(chan struct{})
	w.mu.Lock()
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
func (w *world) turn(ctx context.Context, actor, what string, do func()) bool {
	err := w.wait(ctx, &gateCall{actor: actor, op: what, apply: func() error {
		if do != nil {
			do()
		}
		return nil
	}})
	return err == nil
}

func (w *world) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.story = append(w.story, fmt.Sprintf(format, args...))
}

// step lets one thing happen; false when nothing can any more. When it returns, everybody waits again.
func (w *world) step() bool {
	synctest.Wait()
	defer synctest.Wait()
	calls := w.sweepAbandoned()
	if w.changed {
		w.changed = false
		w.checker.check(w)
	}
	for actor := range w.frozen {
		if w.frozen[actor]--; w.frozen[actor] <= 0 {
			delete(w.frozen, actor)
		}
	}
	if !w.calm && w.upheaval() {
		return true
	}
	free := slices.DeleteFunc(slices.Clone(calls), func(c *gateCall) bool { return c.stalled || w.frozen[c.actor] > 0 })
	switch {
	case len(w.late) > 0 && (w.rng.IntN(8) == 0 || len(free) == 0):
		w.land(w.rng.IntN(len(w.late)))
		return true
	case len(free) > 0:
		w.decide(free[w.rng.IntN(len(free))])
		return true
	case len(w.frozen) > 0:
		clear(w.frozen)
		return true
	case len(calls) > 0 || w.anyPushing():
		time.Sleep(3 * time.Second) // backoffs and deadlines
		return true
	}
	return false
}

// sweepAbandoned decides about the calls whose callers gave up, and gives the others in an order that is the same on every run.
func (w *world) sweepAbandoned() []*gateCall {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.pending, func(a, b *gateCall) int {
		return cmp.Or(cmp.Compare(a.actor, b.actor), cmp.Compare(a.key, b.key), cmp.Compare(a.op, b.op))
	})
	w.pending = slices.DeleteFunc(w.pending, func(c *gateCall) bool {
		if c.abandoned && c.mutates && w.rng.IntN(3) > 0 {
			w.late = append(w.late, c)
			w.story = append(w.story, c.String()+": given up, still under way")
		}
		return c.abandoned
	})
	return slices.Clone(w.pending)
}

// upheaval now and then stops an actor for a while, kills a host or starts one.
func (w *world) upheaval() bool {
	switch w.rng.IntN(32) {
	case 0, 1:
		actors := []string{w.reader.name}
		for _, h := range w.hosts {
			actors = append(actors, h.actor())
		}
		actor := actors[w.rng.IntN(len(actors))]
		w.frozen[actor] = 5 + w.rng.IntN(60)
		w.tell("%s is paused", actor)
	case 2:
		if h := w.hosts[w.rng.IntN(len(w.hosts))]; h.alive() && w.faults > 0 {
			w.faults--
			w.tell("%s is killed", h.actor())
			h.kill()
			return true
		}
	case 3, 4:
		if h := w.hosts[w.rng.IntN(len(w.hosts))]; !h.alive() && h.lives < maxLives {
			if w.alone {
				w.settle()
			}
			h.start(w)
			return true
		}
	case 5:
		if w.wipes && !w.wiped {
			w.wipe()
			return true
		}
	}
	return false
}

// wipe empties the store. What was reported is lost, and requests that are on their way will make ruins: from here on the story is only about
// what is told afterwards.
func (w *world) wipe() {
	w.tell("THE STORE IS WIPED")
	w.wiped = true
	_ = w.mem.Delete(context.Background(), w.mem.Keys()) // far fewer than MaxDelete, and memory does not fail
	w.checker.wiped()
}

// decide gives a waiting call its fate.
func (w *world) decide(c *gateCall) {
	fate := 0
	switch {
	case w.calm || c.key == "":
	case w.outage[c.actor] > 0:
		w.outage[c.actor]--
		fate = 1 + w.rng.IntN(3)
	case w.faults > 0:
		often := 40
		if c.mutates && strings.Contains(c.key, "/commit/") {
			often = 6 // where most rules are about
		}
		if fate = w.rng.IntN(often); 0 < fate && fate < 5 {
			w.faults--
			w.outage[c.actor] = max(0, w.rng.IntN(6)-2)
		}
	}
	switch fate {
	case 1: // the reply is lost
		_ = w.apply(c) // whatever the store says, nobody hears it
		w.answer(c, unavailable(), "done, but the reply is lost")
	case 2: // it lands later
		if c.mutates {
			w.late = append(w.late, c)
		}
		w.answer(c, unavailable(), "error, still under way")
	case 3:
		w.answer(c, unavailable(), "error")
	case 4:
		c.stalled = true
		w.tell("%s: stalls", c)
	default:
		err := w.apply(c)
		w.answer(c, err, outcome(err))
	}
}

func (w *world) apply(c *gateCall) error {
	if w.wiped && c.retires() {
		return unavailable()
	}
	w.changed = w.changed || c.mutates
	return c.apply()
}

// rights are what a probe of this store would find.
func (w *world) rights() ProbeReport {
	ok := Right{State: RightOK}
	report := ProbeReport{Rights: Rights{Read: ok, Write: ok, List: ok, Delete: ok, Conditional: ok}}
	if w.lies {
		report.Conditional = Right{State: RightFailed}
	}
	return report
}

func unavailable() error { return &sdk.Error{Code: sdk.Unavailable} }

func outcome(err error) string {
	if err != nil {
		return sdk.CodeOf(err).Error()
	}
	return "ok"
}

func (w *world) answer(c *gateCall, err error, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = slices.DeleteFunc(w.pending, func(p *gateCall) bool { return p == c })
	w.story = append(w.story, fmt.Sprintf("%s: %s", c, text))
	c.err = err
	close(c.done)
}

func (w *world) land(i int) {
	c := w.late[i]
	w.late = slices.Delete(w.late, i, i+1)
	w.tell("late request lands: %s: %s", c, outcome(w.apply(c)))
}

func (w *world) anyPushing() bool {
	for _, h := range w.hosts {
		if h.alive() && !h.life.ended() {
			return true
		}
	}
	return !w.reader.ended()
}

// gate is the store as one actor sees it.
type gate struct {
	w     *world
	actor string
}

var _ sdk.Target = gate{}

func (g gate) Put(ctx context.Context, req sdk.PutRequest) (res sdk.PutResult, err error) {
	content, err := io.ReadAll(req.Body.Reader()) // the caller may close its file before a late request lands
	if err != nil {
		return res, err
	}
	again := sdk.PutRequest{Key: req.Key, Body: sdk.BytesBody(content), IfAbsent: req.IfAbsent && !g.w.lies, Class: req.Class}
	err = g.w.wait(ctx, &gateCall{actor: g.actor, op: "put", key: req.Key, mutates: true, apply: func() error {
		_, err := g.w.mem.Put(context.Background(), again)
		return err
	}})
	return res, err
}

func (g gate) Get(ctx context.Context, req sdk.GetRequest) (res sdk.GetResult, err error) {
	var content []byte
	err = g.w.wait(ctx, &gateCall{actor: g.actor, op: "get", key: req.Key, apply: func() error {
		var ok bool
		if content, ok = g.w.mem.Content(req.Key); !ok {
			return &sdk.Error{Code: sdk.NotFound}
		}
		return nil
	}})
	if err != nil {
		return res, err
	}
	if req.Length >= 0 {
		content = content[req.Offset : req.Offset+req.Length]
	}
	return sdk.GetResult{Body: io.NopCloser(bytes.NewReader(content)), Size: int64(len(content))}, nil
}

func (g gate) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		var found []sdk.Object
		err := g.w.wait(ctx, &gateCall{actor: g.actor, op: "list", key: req.Prefix, apply: func() error {
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
	return g.w.wait(ctx, &gateCall{actor: g.actor, op: "delete", key: keys[0], mutates: true, apply: func() error {
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
