package syncer

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// world is one story of the simulation: a store, machines around it, and a scheduler that decides what happens next. Every call to the store
// waits at a gate; when all goroutines wait, the scheduler picks one call and its fate. Between two picks nothing moves, so a story is a
// function of its seed.
type world struct {
	rng     *rand.Rand
	mem     *sdktest.Mem
	checker *checker
	stage   *stage
	began   time.Time

	hosts    []*host
	visitors []*visitor
	machines []*machine // of hosts and visitors, in an order that is always the same

	trouble trouble
	policy  *repository.Retention // of every host; nil = everything is kept
	calm    bool
	wiped   bool
	copy    map[string][]byte // an older state of the store, to which it may be put back; nil = none
	rolled  bool              // that has happened
	era     int               // how often
	changed atomic.Bool       // the store, or what was told, since the statuses were last looked at
	calls   int
	probes  bool // hosts find out by calls what the store allows; otherwise they know, and the story is about the rest of the protocol
	fencing Fencing
	alone   bool // there is one host at a time
	lies    bool // the store takes every create, as if nobody had asked for a condition

	mu      sync.Mutex
	pending []*gateCall
	late    []*gateCall // requests that land after their caller gave up
	story   []event
	ordered int // so many lines of it are in their order
}

// step lets one thing happen; false when nothing can any more. When it returns, everybody waits again.
func (w *world) step() bool {
	w.rest()
	defer w.rest()
	calls := w.sweepAbandoned()
	if w.changed.Swap(false) {
		w.checker.statuses(w)
	}
	w.tick()
	if !w.calm && w.upheaval() {
		return true
	}
	free := slices.DeleteFunc(slices.Clone(calls), func(c *gateCall) bool { return c.stalled || c.on.frozen > 0 })
	switch {
	case len(w.late) > 0 && (w.rng.IntN(8) == 0 || len(free) == 0):
		w.land(w.rng.IntN(len(w.late)))
		return true
	case len(free) > 0:
		w.decide(free[w.rng.IntN(len(free))])
		return true
	case w.thaw():
		return true
	case len(calls) > 0 || w.anyBusy():
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
		if c.abandoned && c.mutates() && w.rng.IntN(3) > 0 {
			w.late = append(w.late, c)
			w.told("%s: given up, still under way", c)
			w.ordered = len(w.story)
		}
		return c.abandoned
	})
	return slices.Clone(w.pending)
}

// apply lets the store do what a call asks for, under the eyes of the checker.
func (w *world) apply(c *gateCall) error {
	w.calls++
	if w.wiped && c.retires() || c.mutates() && w.misses(c) {
		return unavailable() // it was begun in the repository that is gone, and would retire what is new
	}
	if c.keys != nil {
		w.checker.deleting(w, c)
	}
	err := c.apply()
	if c.put != nil && err == nil {
		w.checker.stored(w, c)
	}
	if c.mutates() {
		w.changed.Store(true)
	}
	return err
}

// applyPart lets a delete of several keys get stuck in the middle.
func (w *world) applyPart(c *gateCall) {
	part := *c
	part.keys = c.keys[:w.rng.IntN(len(c.keys))]
	if len(part.keys) == 0 {
		return
	}
	part.apply = func() error { return w.mem.Delete(context.Background(), part.keys) }
	_ = w.apply(&part) // nobody hears it
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

// outcome names an answer in a story.
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
	w.told("%s: %s", c, text)
	w.ordered = len(w.story)
	c.err = err
	close(c.done)
}

func (w *world) land(i int) {
	c := w.late[i]
	w.late = slices.Delete(w.late, i, i+1)
	c.late = true
	w.narrate("late request lands: %s: %s", c, outcome(w.apply(c)))
}

// anyBusy says that somebody is at work and waits for the clock.
func (w *world) anyBusy() bool {
	for _, h := range w.hosts {
		if h.alive() {
			return true
		}
	}
	for _, v := range w.visitors {
		if !v.ended() {
			return true
		}
	}
	return false
}
