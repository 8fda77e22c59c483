package syncer

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
)

// wantNewest restores the newest commit and wants it to be of that step.
func (b *bench) wantNewest(step uint64) {
	b.t.Helper()
	c := b.newest()
	if c.Checkpoint.Step != step || !maps.Equal(b.content(c), b.filesOf(step)) {
		b.t.Fatalf("commit %d, of step %d, is the newest, want step %d, whole", c.Number, c.Checkpoint.Step, step)
	}
}

// The folder of a file target is put back to an older copy under a running host: the epoch and FORMAT.json are the same.
//
// CASES A17
func TestAPushOntoARepositoryThatWasPutBackFailsAndTheNextUploadsWhatIsMissing(t *testing.T) {
	for _, trigger := range []Trigger{Requested, Periodic} {
		t.Run(string(trigger), func(t *testing.T) {
			b := newBench(t)
			w := b.worker()
			b.pushes(w, 1, 3)
			putBack := b.rewind()
			b.pushes(w, 4, 6) // the file that changes now and then changes at step 5
			putBack()
			keys := b.mem.Keys()
			id := b.publish(7, b.filesOf(7))
			err := b.push(w, id, trigger)
			gone, ok := errors.AsType[*VanishedError](err)
			if !ok || !gone.PutBack || gone.Commit != 7 || gone.Epoch != 1 {
				t.Fatalf("error %v", err)
			}
			for _, say := range []string{`target "`, "commit 7", `"strikes"`, "put back to an earlier state", "next push looks anew"} {
				if !strings.Contains(err.Error(), say) {
					t.Errorf("%v does not say %q", err, say)
				}
			}
			s := w.Status()
			if s.Condition != Refused || s.Reason != err.Error() || s.Committed != nil || s.Jobs[len(s.Jobs)-1].State != JobFailed {
				t.Errorf("status %+v", s)
			}
			if s.Lost == nil || s.Lost.Step != 6 || (s.Failures == 1 && !s.FailedAt.IsZero()) != (trigger == Periodic) {
				t.Errorf("lost %+v; %d periodic pushes failed, at %s", s.Lost, s.Failures, s.FailedAt)
			}
			if !slices.Equal(b.mem.Keys(), keys) {
				t.Errorf("there lie now %q", b.mem.Keys())
			}
			b.mustPush(w, id, trigger)
			b.wantRestorable(1, 2, 3, 7)
			if s := w.Status(); s.Condition != Ready || s.Committed == nil || s.Committed.Checkpoint != id || s.Epoch != 2 {
				t.Errorf("status %+v", s)
			}
		})
	}
}

// Whichever call of a push it happens before, to the state before the last few pushes or to that before this one: success is told of what restores, and
// the next push makes it so.
func TestAStoreThatIsPutBackAtAnyCallOfAPushIsNeverToldAsSuccess(t *testing.T) {
	for name, recent := range map[string]bool{"to long ago": false, "to the commit before": true} {
		t.Run(name, func(t *testing.T) {
			for n, happened := int64(1), true; happened; n++ {
				b := newBench(t)
				w := b.worker()
				b.pushes(w, 1, 3)
				putBack := b.rewind()
				b.pushes(w, 4, 6)
				if recent {
					putBack = b.rewind()
				}
				id := b.publish(7, b.filesOf(7))
				base := b.store.Calls()
				happened = false
				b.store.Before = func(_ ctxt, c callt) error {
					if c.N-base == n {
						happened = true
						putBack()
					}
					return nil
				}
				err := b.push(w, id, Requested)
				b.heal()
				if err == nil {
					b.wantNewest(7)
				} else if _, vanished := errors.AsType[*VanishedError](err); !vanished {
					t.Errorf("before call %d: error %v", n, err)
				}
				b.mustPush(w, id, Requested)
				b.wantNewest(7)
			}
		})
	}
}

// readable is a commit as it lies in the store, whatever lies beside it.
func (b *bench) readable(n uint64) *repository.Commit {
	b.t.Helper()
	stored, _ := b.mem.Content(repository.CommitKey("strikes", n))
	c, err := repository.DecodeCommit(n, stored)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// Whoever asks is not answered from memory: the commit is read.
//
// CASES A17
func TestARequestedPushOfACommittedCheckpointReadsItsCommit(t *testing.T) {
	key := repository.CommitKey("strikes", 4)
	for name, harm := range map[string]func(*bench){
		"whole":   func(*bench) {},
		"deleted": func(b *bench) { b.remove(key) },
		"damaged": func(b *bench) { b.change(key, flip) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			w := b.worker()
			b.pushes(w, 1, 2)
			id := b.publish(3, b.filesOf(3))
			b.mustPush(w, id, Periodic)
			harm(b)
			var calls []string
			b.store.Before = record(&calls)
			err := b.push(w, id, Requested)
			b.heal()
			if want := []string{"get strikes/FORMAT.json", "list strikes/epoch/", "get " + key}; !slices.Equal(calls[:3], want) {
				t.Errorf("calls %q, want %q first", calls, want)
			}
			if name == "whole" {
				if err != nil || len(calls) != 3 {
					t.Errorf("error %v, calls %q", err, calls)
				}
				return
			}
			if name == "damaged" { // nothing is lost but its object: the same job makes it again
				if c := b.readable(5); err != nil || !maps.Equal(b.content(c), b.filesOf(3)) {
					t.Errorf("error %v", err)
				}
				return
			}
			if gone, ok := errors.AsType[*VanishedError](err); !ok || gone.Commit != 4 {
				t.Fatalf("error %v", err)
			}
			if s := w.Status(); s.Success == id || s.Condition != Refused {
				t.Errorf("status %+v", s)
			}
			b.mustPush(w, id, Requested)
			b.wantRestorable(1, 2, 3)
		})
	}
}

// What a verification has found to be broken is neither reused nor told as success, in the same run of the host too.
//
// CASES A9, A17
func TestAPushReusesNothingThatIsKnownToBeMissingOrDamaged(t *testing.T) {
	for name, row := range map[string]struct {
		harm  func(*bench, string)
		level VerifyLevel
		same  bool // the checkpoint that was committed is asked for again
	}{
		"missing":                         {func(b *bench, key string) { b.remove(key) }, VerifyMetadata, false},
		"missing, the same checkpoint":    {func(b *bench, key string) { b.remove(key) }, VerifyMetadata, true},
		"a byte is flipped":               {func(b *bench, key string) { b.change(key, flip) }, VerifyDeep, false},
		"a byte of it, the same is asked": {func(b *bench, key string) { b.change(key, flip) }, VerifyDeep, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			w := b.worker()
			b.pushes(w, 1, 2)
			id := b.publish(3, b.filesOf(3))
			b.mustPush(w, id, Requested)
			for _, pack := range b.packsStored() {
				row.harm(b, repository.PackKey("strikes", pack))
			}
			if _, err := w.Verify(t.Context(), VerifyRequest{Level: row.level}); err != nil || w.Status().Damage == nil {
				t.Fatalf("damage %+v, %v", w.Status().Damage, err)
			}
			step := uint64(3)
			if !row.same {
				id, step = b.publish(4, b.filesOf(4)), 4
			}
			b.mustPush(w, id, Requested)
			b.wantNewest(step)
			before := len(b.commits())
			b.mustPush(w, id, Requested)
			if got := len(b.commits()); got != before || before != int(step)+2 && row.same {
				t.Errorf("%d commits, and %d after it was asked for again", before, got)
			}
		})
	}
}

// Commits without FORMAT.json, or below that of another, are no repository to any reader. One that is put back is found by the next push.
func TestAPushIntoARepositoryWhoseFormatIsNotOursAnyMoreIsNotToldAsSuccess(t *testing.T) {
	format := repository.FormatKey("strikes")
	for name, c := range map[string]struct {
		spoil func(b *bench)
		say   string
	}{
		"it is removed": {func(b *bench) { b.remove(format) }, "no FORMAT.json"},
		"it is damaged": {func(b *bench) { b.mem.Plant(format, []byte("{")) }, "FORMAT.json"},
		"another pipeline's stands": {func(b *bench) {
			b.mem.Plant(format, must(repository.EncodeFormat(repository.Format{
				PipelineID: uuid.New(), PipelineName: "other", RepositoryID: uuid.New(), Created: time.Unix(1_800_000_000, 0), WrittenBy: "cairn test",
			})))
		}, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			w := b.worker()
			b.pushes(w, 1, 2)
			whole, _ := b.mem.Content(format)
			c.spoil(b)
			id := b.publish(3, b.filesOf(3))
			for _, trigger := range []Trigger{Periodic, Requested} {
				if err := b.push(w, id, trigger); err == nil || !strings.Contains(err.Error(), c.say) {
					t.Fatalf("%s: error %v, want one that says %q", trigger, err, c.say)
				}
			}
			if s := w.Status(); s.Condition != Refused || s.Committed == nil || s.Committed.Number != 3 {
				t.Errorf("status %+v", s)
			}
			keys := b.mem.Keys()
			b.mem.Plant(format, whole)
			b.mustPush(w, id, Periodic)
			if got := b.mem.Keys(); len(got) > len(keys)+1 {
				t.Errorf("more was written: %q, then %q", keys, got)
			}
			b.wantRestorable(1, 2, 3)
		})
	}
}
