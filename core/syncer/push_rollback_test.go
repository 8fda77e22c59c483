package syncer

import (
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

// saved takes a copy of what this machine remembers of the target; the function that it answers puts it back.
func (b *bench) saved() (putBack func()) {
	b.t.Helper()
	path := b.dir.SyncFile("offsite")
	content, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return func() {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
}

// A disk that is put back goes on in the same lineage, and its steps come to lie above those that it lost: only what it remembers tells.
func TestAStoragePathThatWasPutBackIsHeldAlsoOnceItsStepsHaveCaughtUp(t *testing.T) {
	b := newBench(t)
	b.mustPush(b.worker(), b.publish(3, map[string]string{"f": "three"}), Periodic)
	putBack := b.saved()
	b.mustPush(b.restart(), b.publish(5, map[string]string{"f": "five, which somebody was told is committed"}), Periodic)

	putBack()
	w := b.restart()
	other := b.publish(9, map[string]string{"f": "nine, of another five"})
	err := b.push(w, other, Periodic)
	held, ok := errors.AsType[*HeldError](err)
	if !ok || !held.Forgotten || held.Commit != 4 || held.CommitStep != 5 || held.Step != 9 {
		t.Fatalf("error %v", err)
	}
	if s := w.Status(); s.Condition != Held || !strings.Contains(s.Reason, "put back to an earlier state") || s.Epoch != 0 {
		t.Errorf("status %+v", s)
	}
	if err := b.push(b.restart(), other, Requested); !errors.As(err, &held) {
		t.Errorf("after a restart: error %v", err) // what was seen must not count as remembered
	}

	w = b.restart()
	if err := w.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.mustPush(w, other, Requested)
	b.mustPush(b.restart(), b.publish(10, map[string]string{"f": "ten"}), Periodic)
	b.wantRestorableSteps(3, 5, 9, 10)
}

// wantRestorableSteps looks at the listed commits only.
func (b *bench) wantRestorableSteps(steps ...uint64) {
	b.t.Helper()
	listed := b.listed()
	if len(listed) != len(steps) {
		b.t.Fatalf("%d commits are listed, want %d", len(listed), len(steps))
	}
	for i, c := range listed {
		if c.Checkpoint.Step != steps[i] {
			b.t.Errorf("commit %d is of step %d, want %d", c.Number, c.Checkpoint.Step, steps[i])
		}
	}
}

// A push that landed unseen was tried from here, so the next incarnation knows it, whatever lies there locally by then.
func TestAPushThatLandedUnseenIsKnownAfterARestart(t *testing.T) {
	b := newBench(t)
	b.mustPush(b.worker(), b.publish(1, map[string]string{"f": "one"}), Periodic)
	w := b.restart()
	down := &sdk.Error{Code: sdk.Unavailable, Provider: "planted"}
	var commits atomic.Int64
	b.store.Before = func(ctxt, callt) error {
		if commits.Load() > 1 {
			return down // nobody can look what became of it
		}
		return nil
	}
	b.store.After = func(_ ctxt, call callt, err error) error {
		if call.Op == "put" && strings.Contains(call.Key, "/commit/") && commits.Add(1) > 1 { // the seal is the first
			return down
		}
		return err
	}
	if err := b.push(w, b.publish(2, map[string]string{"f": "two"}), Periodic); err == nil {
		t.Fatal("the push has succeeded")
	}
	b.heal()
	if got := b.newest().Checkpoint.Step; got != 2 {
		t.Fatalf("the newest commit is of step %d", got)
	}
	b.mustPush(b.restart(), b.publish(3, map[string]string{"f": "three"}), Periodic)
}

// Who remembers nothing at all, because the file was lost or damaged, goes by the history alone.
func TestWithoutAnyMemoryTheHistoryDecides(t *testing.T) {
	b := newBench(t)
	b.mustPush(b.worker(), b.publish(1, map[string]string{"f": "one"}), Periodic)
	if err := os.Remove(b.dir.SyncFile("offsite")); err != nil {
		t.Fatal(err)
	}
	b.mustPush(b.restart(), b.publish(2, map[string]string{"f": "two"}), Periodic)
}
