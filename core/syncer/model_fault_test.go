package syncer

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// machine is where actors run: what happens to it happens to all of them. Numbers are steps of the scheduler.
type machine struct {
	name   string
	frozen int          // its processes are paused
	asleep bool         // and wake up a week later
	outage int          // so many of its next calls all go wrong
	cut    int          // the network is cut
	deaf   bool         // the cut lets requests through and no replies
	full   atomic.Int32 // its disk is full
	ahead  atomic.Int64 // its clock's nanoseconds before that of the world
}

// now is the machine's clock. It has no monotonic part, so even how long something took is wrong by a jump: the worst that a suspended
// machine can show.
func (m *machine) now() time.Time { return time.Now().Add(time.Duration(m.ahead.Load())).Round(0) }

// trouble is what may go wrong in a story. Most stories have some kinds and not all, so that each meets each.
type trouble struct {
	faults int  // how much may still go wrong
	met    int  // how much has
	wipes  bool // the store will be wiped, once
	rolls  bool // it will be put back to an older state, once or more

	cuts, clocks, disks, sleeps, fullStore bool

	storeFull int // steps for which the store takes nothing
}

func newTrouble(rng *rand.Rand) trouble {
	some := func() bool { return rng.IntN(4) == 0 }
	return trouble{
		faults: rng.IntN(10), wipes: rng.IntN(16) == 0,
		cuts: some(), clocks: some(), disks: some(), sleeps: some(), fullStore: some(),
	}
}

// spend takes one fault from what is left; false when nothing may go wrong any more.
func (t *trouble) spend() bool {
	if t.faults <= 0 {
		return false
	}
	t.faults--
	t.met++
	return true
}

// tick lets one step pass for what lasts a while.
func (w *world) tick() {
	for _, m := range w.machines {
		if m.frozen > 0 {
			if m.frozen--; m.frozen == 0 {
				w.wake(m)
			}
		}
		m.cut = max(0, m.cut-1)
		if n := m.full.Load(); n > 0 {
			m.full.Store(n - 1)
		}
	}
	w.trouble.storeFull = max(0, w.trouble.storeFull-1)
}

// wake ends a pause.
func (w *world) wake(m *machine) {
	m.frozen = 0
	if !m.asleep {
		return
	}
	m.asleep = false
	time.Sleep(7 * 24 * time.Hour)
	w.rest()
	w.narrate("%s wakes up after a week", m.name)
}

// thaw ends all pauses, when nothing else can happen.
func (w *world) thaw() bool {
	some := false
	for _, m := range w.machines {
		if m.frozen > 0 {
			some = true
			w.wake(m)
		}
	}
	return some
}

// heal: from here on nothing goes wrong, and what is under way lands. Clocks stay as wrong as they are.
func (w *world) heal() {
	w.calm = true
	w.narrate("from here on nothing goes wrong")
	w.thaw()
	for _, m := range w.machines {
		m.cut, m.outage = 0, 0
		m.full.Store(0)
	}
	w.trouble.storeFull = 0
	for _, c := range w.pending {
		c.stalled = false
	}
	for len(w.late) > 0 {
		w.land(w.rng.IntN(len(w.late)))
	}
}

// upheaval now and then stops a machine for a while, kills a host or starts one, cuts a line, fills a disk, moves a clock.
func (w *world) upheaval() bool {
	m := w.machines[w.rng.IntN(len(w.machines))]
	h := w.hosts[w.rng.IntN(len(w.hosts))]
	if w.trouble.rolls && w.rng.IntN(40) == 0 {
		return w.ages()
	}
	switch t := &w.trouble; w.rng.IntN(40) {
	case 0, 1:
		m.frozen = 5 + w.rng.IntN(60)
		m.asleep = t.sleeps && w.rng.IntN(2) == 0
		w.narrate("%s is paused", m.name)
	case 2:
		if h.alive() && t.spend() {
			w.narrate("%s is killed", h.actor())
			h.kill()
			return true
		}
	case 3, 4, 5:
		if !h.alive() && h.lives < maxLives {
			if w.alone {
				w.settle()
			}
			h.start(w)
			return true
		}
	case 6:
		if t.wipes && !w.wiped && t.spend() {
			w.wipe()
			return true
		}
	case 7:
		if t.cuts && t.spend() {
			m.cut, m.deaf = 5+w.rng.IntN(40), w.rng.IntN(2) == 0
			w.narrate("%s is cut off (replies only: %t)", m.name, m.deaf)
		}
	case 8:
		if t.clocks && t.spend() {
			w.jump(m)
		}
	case 9:
		if t.disks && t.spend() {
			m.full.Store(int32(5 + w.rng.IntN(40)))
			w.narrate("the disk of %s is full", m.name)
		}
	case 10:
		if t.fullStore && t.spend() {
			t.storeFull = 5 + w.rng.IntN(40)
			w.narrate("the store is full")
		}
	}
	return false
}

// jump moves a machine's clock, by seconds or by years.
func (w *world) jump(m *machine) {
	by := []time.Duration{time.Second, time.Minute, time.Hour, 60 * 24 * time.Hour, 3 * 365 * 24 * time.Hour}[w.rng.IntN(5)]
	if w.rng.IntN(2) == 0 {
		by = -by
	}
	m.ahead.Add(int64(by))
	w.narrate("the clock of %s jumps by %s", m.name, by)
}

// wipe empties the store. What was reported is lost, and requests that are on their way will make ruins: from here on the story is only about
// what is told afterwards.
func (w *world) wipe() {
	w.narrate("THE STORE IS WIPED")
	w.wiped = true
	_ = w.mem.Delete(context.Background(), w.mem.Keys()) // far fewer than MaxDelete, and memory does not fail
	w.checker.wiped()
}

// retires says whether the call belongs to a retention or a sweep.
func (c *gateCall) retires() bool {
	return c.keys != nil || c.put != nil && strings.Contains(c.key, "/gc/")
}

// fate is what becomes of a call.
type fate int

const (
	granted   fate = iota
	replyLost      // done, and nobody hears it
	lands          // an error now, and it is done later
	fails          // an error, and nothing is done
	stalls         // no answer ever
	forbidden      // the rights are gone for a moment
	halfDone       // a delete of many keys gets stuck, with an error
)

// fateOf decides. Calls that create commits and gc objects go wrong more often than others: most rules are about them.
func (w *world) fateOf(c *gateCall) fate {
	switch m := c.on; {
	case w.calm || c.key == "":
		return granted
	case m.cut > 0 && w.rng.IntN(4) == 0:
		return stalls
	case m.cut > 0 && m.deaf:
		return replyLost
	case m.cut > 0:
		return fails
	case m.outage > 0:
		m.outage--
		return replyLost + fate(w.rng.IntN(3))
	case w.trouble.faults <= 0:
		return granted
	}
	often := 48
	if c.keys != nil || c.put != nil && (strings.Contains(c.key, "/commit/") || strings.Contains(c.key, "/gc/")) {
		often = 8
	}
	f := fate(w.rng.IntN(often))
	if f == granted || f > halfDone || f == halfDone && len(c.keys) < 2 || !w.trouble.spend() {
		return granted
	}
	c.on.outage = max(0, w.rng.IntN(6)-2)
	return f
}

// decide gives a waiting call its fate.
func (w *world) decide(c *gateCall) {
	if c.put != nil && w.trouble.storeFull > 0 {
		w.answer(c, &sdk.Error{Code: sdk.NoSpace}, "no space")
		return
	}
	switch w.fateOf(c) {
	case granted:
		err := w.apply(c)
		w.answer(c, err, outcome(err))
	case replyLost:
		_ = w.apply(c) // whatever the store says, nobody hears it
		w.answer(c, unavailable(), "done, but the reply is lost")
	case lands:
		if c.mutates() {
			w.late = append(w.late, c)
		}
		w.answer(c, unavailable(), "error, still under way")
	case fails:
		w.answer(c, unavailable(), "error")
	case forbidden:
		w.answer(c, &sdk.Error{Code: sdk.PermissionDenied}, "permission denied")
	case halfDone:
		w.applyPart(c)
		w.answer(c, unavailable(), "done in part, with an error")
	case stalls:
		c.stalled = true
		w.narrate("%s: stalls", c)
	}
}

// newPolicy is that of every host of a story: nothing is retired, the newest alone is kept, or a few, by age, with the guard.
func newPolicy(rng *rand.Rand) *repository.Retention {
	switch rng.IntN(8) {
	case 0:
		return nil
	case 1, 2, 3:
		return &repository.Retention{MinCount: 1}
	case 4:
		return &repository.Retention{MinCount: 1 + rng.IntN(3)}
	case 5:
		return &repository.Retention{MinCount: 1, MinAge: time.Duration(rng.IntN(30)) * time.Second}
	case 6:
		return &repository.Retention{MinAge: 24 * time.Hour}
	default:
		return &repository.Retention{MinCount: 1, MaxDelete: 1 + rng.IntN(3)}
	}
}
