package syncer

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/repository"
)

// An attacker's plugin stored half of what it acknowledged, and the push was called committed: the listing that confirms it told otherwise.
//
// CASES A10
func TestAPushWhoseObjectsAreListedWithAnotherSizeIsNotToldAsSuccess(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		keep   func(size int) int
	}{
		"half a pack":   {"strikes/pack/", func(size int) int { return size / 2 }},
		"an empty pack": {"strikes/pack/", func(int) int { return 0 }},
		"half a commit": {"strikes/commit/", func(size int) int { return size / 2 }},
	} {
		for _, trigger := range []Trigger{Periodic, Requested} {
			t.Run(name+", "+string(trigger), func(t *testing.T) {
				b := newBench(t)
				w := b.worker()
				b.pushes(w, 1, 2)
				var spoilt string
				b.store.After = func(_ ctxt, call callt, err error) error {
					if call.Op == "put" && strings.HasPrefix(call.Key, c.object) {
						whole, _ := b.mem.Content(call.Key)
						b.mem.Plant(call.Key, whole[:c.keep(len(whole))])
						spoilt = call.Key
					}
					return err
				}
				id := b.publish(3, b.filesOf(3))
				for range 2 { // a store that goes on like that is never believed
					err := b.push(w, id, trigger)
					wrong, ok := errors.AsType[*MisstoredError](err)
					if !ok || wrong.Key != spoilt || !errors.Is(err, repository.ErrCorrupt) || !strings.Contains(err.Error(), "bytes are there") {
						t.Fatalf("error %v", err)
					}
					if s := w.Status(); s.Condition != Refused || s.Reason != err.Error() || s.Committed == nil || s.Committed.Step != 2 {
						t.Fatalf("status %+v", s)
					}
				}
				b.heal()
				b.mustPush(w, id, trigger)
				b.wantCommitted(w, 3)
				again := b.restart()
				b.mustPush(again, b.publish(4, b.filesOf(4)), trigger)
				b.wantCommitted(again, 4)
			})
		}
	}
}

// wantCommitted restores what a worker says is committed, whatever lies beside it, and wants it to be of that step.
func (b *bench) wantCommitted(w *Worker, step uint64) {
	b.t.Helper()
	s := w.Status()
	if s.Condition != Ready || s.Committed == nil || s.Committed.Step != step {
		b.t.Fatalf("status %+v", s)
	}
	if c := b.readable(s.Committed.Number); !maps.Equal(b.content(c), b.filesOf(step)) {
		b.t.Errorf("commit %d is not whole", c.Number)
	}
}
