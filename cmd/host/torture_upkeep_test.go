//go:build torture

package main

import (
	"context"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk/client"
)

// upkeepHits is how often a life ends at each named point of retention and sweep.
const upkeepHits = 2

// upkept is a world whose host retires and sweeps after each push, and is killed while it does.
type upkept struct {
	*killer
	*lookout

	part  float64 // of the records, given so far
	fedAt uint64  // newest commit when records were given last
}

func newUpkept(t *testing.T) *upkept {
	t.Helper()
	s := settings{file: 20_000, http: 20_000, keep: 20, retention: repository.Retention{MinCount: 2, MinAge: time.Second}}
	w := newWorld(t, buildPlugins(t), s)
	u := &upkept{killer: &killer{world: w, hits: map[string]int{}}, lookout: newLookout(t, w.target), fedAt: math.MaxUint64}
	u.ledger.rule, u.witness.feeds = s.retention, []settings{s}
	return u
}

// feed gives new records once those before are committed: without a new record there is no commit, and so no upkeep.
func (u *upkept) feed() {
	u.t.Helper()
	if n := u.ledger.newest().Number; n != u.fedAt {
		u.fedAt = n
		u.part += 0.001
		u.upTo(u.part)
	}
}

// comesTo feeds the present host until something has come to pass.
func (u *upkept) comesTo(what string, done func() bool) {
	u.t.Helper()
	u.eventually(what, func() bool { u.feed(); return done() })
}

// dies feeds the present host until it has ended at its point. meanwhile is what else brings it there.
func (u *upkept) dies(point string, meanwhile func()) {
	u.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for !u.ended(20 * time.Millisecond) {
		u.feed()
		meanwhile()
		select {
		case <-limit.C:
			u.t.Fatalf("the host never came to %s", point)
		default:
		}
	}
	if !u.host.killedItself() {
		u.t.Fatalf("the host ended by itself on the way to %s: %v", point, u.host.err)
	}
	u.host = nil
	u.hits[point]++
}

// TestTortureKillTheHostInItsUpkeep kills the host at every named point of retention and sweep. Whatever the kill cut short, every commit that
// readers still see restores, record for record, none is gone that the rule keeps, and the next host ends what was begun: afterwards nothing is left that
// no commit names.
// CASES A24, A29, A36, A41
func TestTortureKillTheHostInItsUpkeep(t *testing.T) {
	t.Parallel()
	u := newUpkept(t)
	u.send()
	u.start("")
	u.comesTo("retention has taken something", func() bool { return !u.ledger.sees(1) })
	endWatch := u.watch(&fighter{u.world, "host"})
	for _, point := range pointsOfUpkeep() {
		for range upkeepHits {
			u.killedAt(point)
		}
		u.start("")
		u.comesTo("the next host ends what was begun", u.swept)
	}
	u.stop()
	endWatch()
	u.ledger.unchanged()
	count, witnessed := u.allRestored()
	u.ledger.report(t)
	t.Logf("%d commits restored at the end, %d of them compared with local checkpoints; %d looks", count, witnessed, u.looks)
	for _, fault := range u.sender.faults() {
		t.Error(fault)
	}
	for _, point := range slices.Sorted(maps.Keys(u.hits)) {
		t.Logf("  killed at %-20s %d times", point, u.hits[point])
	}
}

// killedAt ends a life at a point of its upkeep and restores all that is left.
func (u *upkept) killedAt(point string) {
	u.t.Helper()
	u.kill()
	u.start(point + ":1")
	u.dies(point, func() {})
	if count, _ := u.allRestored(); count == 0 {
		u.t.Errorf("after the kill at %s nothing could be restored", point)
	}
}

// swept asks for a sweep, and says whether it has left nothing that should go.
func (u *upkept) swept() bool {
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	defer cancel()
	_, err := u.api.Sweep(ctx, pipe, client.SweepOptions{})
	return err == nil && u.ledger.untidy() == ""
}

// TestTortureKillTheHostWhileItPins: a pin that was promised holds, one that was cut short holds or is not there, and either way the same
// name can be pinned and unpinned afterwards.
// CASES A26
func TestTortureKillTheHostWhileItPins(t *testing.T) {
	t.Parallel()
	u := newUpkept(t)
	u.send()
	for _, point := range []string{"push.pin.begin", "push.pin.done", "delete.pin.begin", "delete.pin.done"} {
		u.start(point + ":1")
		u.dies(point, func() { u.pinsAnew() })
		u.start("")
		u.comesTo("the next host pins and unpins", u.pinsAnew)
		u.kill()
	}
	u.allRestored()
	u.ledger.report(t)
}

// pinsAnew unpins what is pinned and pins the newest commit, which then must stay as long as it is; false when some call failed.
func (u *upkept) pinsAnew() bool {
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	defer cancel()
	pins, err := u.api.Pins(ctx, pipe, "")
	if err != nil {
		return false
	}
	for _, pin := range pins {
		u.ledger.unpin(pin.Commit) // not promised any more, whatever the answer is
		if err := u.api.Unpin(ctx, pipe, "", pin.Name); err != nil {
			return false
		}
	}
	n := u.ledger.newest().Number
	if _, err := u.api.Pin(ctx, pipe, "held", client.PinOptions{Commit: n}); err != nil {
		return false
	}
	u.ledger.pin(n)
	return true
}
