package syncer

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// The store is put back after the packs of a commit were uploaded and before it is created, and then gives no answer: the commit stands, what was made
// for it does not, and nobody could see that. The next push, of another state that shares its content, must not build on it.
//
// CASES A17
func TestACommitWhoseConfirmationHadNoAnswerIsLookedAtBeforeAnotherIsBuiltOnIt(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	b.pushes(w, 1, 2)
	putBack := b.rewind()
	files := map[string]string{"shared": incompressible(7, 1<<20), "own": "three"}
	created := false
	b.store.Before = func(_ ctxt, c callt) error {
		switch {
		case created:
			return &sdk.Error{Code: sdk.Unavailable, Provider: "planted"}
		case c.Op == "put" && strings.Contains(c.Key, "/commit/"):
			putBack()
		}
		return nil
	}
	b.store.After = func(_ ctxt, c callt, err error) error {
		created = created || c.Op == "put" && strings.Contains(c.Key, "/commit/")
		return err
	}
	if err := b.push(w, b.publish(3, files), Periodic); !errors.Is(err, sdk.Unavailable) {
		t.Fatalf("the push whose confirmation has no answer: %v", err)
	}
	b.heal()
	files["own"] = "four"
	id := b.publish(4, files)
	err := b.push(w, id, Periodic)
	if gone, ok := errors.AsType[*VanishedError](err); !ok || !gone.PutBack {
		t.Errorf("the next push: %v", err)
	}
	b.mustPush(w, id, Periodic)
	c := b.newest()
	if c.Checkpoint.ID != id || b.content(c)["shared"] != files["shared"] {
		t.Errorf("commit %d is not whole", c.Number)
	}
}

// What lies there is older than all that the records of jobs tell of, and was made from here all the same.
//
// CASES A17
func TestATargetThatWentBackByMoreJobsThanAreRememberedIsNotHeld(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	b.pushes(w, 1, 2)
	putBack := b.rewind()
	b.pushes(w, 3, 3+keptJobs)
	putBack()
	for name, next := range map[string]*Worker{"in the same run": w, "after a restart": b.restart()} {
		id := b.publish(100, b.filesOf(100))
		if err := b.push(next, id, Periodic); err != nil { // the first sees that it has gone back
			if _, gone := errors.AsType[*VanishedError](err); !gone {
				t.Fatalf("%s: %v", name, err)
			}
			b.mustPush(next, id, Periodic)
		}
		b.wantNewest(100)
		putBack()
	}
}

// Numbers that were lost are given anew, and what was known of the lost commits is not true of the new ones.
//
// CASES A9, A17
func TestWhatIsKnownOfLostCommitsIsNotSaidOfThoseThatTakeTheirNumbers(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	b.pushes(w, 1, 2) // commits 2 and 3
	putBack := b.rewind()
	b.pushes(w, 3, 4)
	putBack()
	if rep, err := w.Verify(t.Context(), VerifyRequest{}); err != nil || fmt.Sprint(rep.Broken) != "[4 5]" {
		t.Fatalf("broken %v, %v", rep.Broken, err)
	}
	w = b.restart()
	id := b.publish(5, b.filesOf(5))
	b.mustPush(w, id, Periodic)
	if c := b.newest(); c.Number != 5 || c.Checkpoint.ID != id {
		t.Errorf("one push made commit %d", c.Number)
	}
	if d := w.Status().Damage; d != nil {
		t.Errorf("damage %+v", d)
	}
}

// A repair goes on where the line ends, not behind numbers that nobody will ever find.
//
// CASES A17
func TestARepairOfARepositoryThatWentBackLeavesNoGap(t *testing.T) {
	for _, same := range []bool{true, false} {
		b := newBench(t)
		w := b.worker()
		b.pushes(w, 1, 2)
		putBack := b.rewind()
		b.pushes(w, 3, 22)
		putBack()
		id := b.publish(23, b.filesOf(23))
		if !same {
			w = b.restart()
		}
		rep, err := w.Repair(t.Context(), RepairRequest{Checkpoint: id})
		if err != nil || !rep.Restored || rep.Commit.Number != 5 || rep.Commit.Checkpoint != id {
			t.Fatalf("repair %+v, %v", rep.Commit, err)
		}
		b.wantNewest(23)
		if d := w.Status().Damage; d != nil {
			t.Errorf("damage %+v", d)
		}
		if rep, err := w.Verify(t.Context(), VerifyRequest{}); err != nil || rep.Proof == nil {
			t.Errorf("problems %+v, %v", rep.Problems, err)
		}
	}
}

// Nothing that a verification advises takes away what is left, or is refused when it is tried.
//
// CASES A17
func TestAVerificationOfWhatHasLostItsNewestCommitsAdvisesNeitherDeletionNorRepair(t *testing.T) {
	b, w, _ := beheaded(t)
	for _, verifier := range []*Worker{w, b.restart()} {
		for _, req := range []VerifyRequest{{}, {From: &Selector{}}} {
			rep, err := verifier.Verify(t.Context(), req)
			if err != nil || len(rep.Problems) == 0 {
				t.Fatalf("%+v: %+v, %v", req, rep.Problems, err)
			}
			for _, p := range rep.Problems {
				if strings.Contains(p.Remedy, "delete it") || strings.Contains(p.Remedy, "remote repair") {
					t.Errorf("%+v: %s, %s: %s", req, p.Object, p.What, p.Remedy)
				}
			}
		}
	}
}

// A commit that is missing further down is in nobody's way: what is above it restores, and pushes go on.
//
// CASES A17
func TestAVerificationThatMissesALowCommitDoesNotSayThatNothingIsWritten(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	b.pushes(w, 1, 3)
	b.remove(repository.CommitKey("strikes", 1)) // the seal: no checkpoint is below it
	rep, err := w.Verify(t.Context(), VerifyRequest{})
	if err != nil || len(rep.Problems) != 1 || rep.Problems[0].Kind != MissingCommit || strings.Contains(rep.Problems[0].Remedy, "nothing is written") {
		t.Errorf("problems %+v, %v", rep.Problems, err)
	}
}

// The number of its gc object was taken by an attempt of this host that landed late, so retention plans anew; meanwhile a push has come, whose packs the
// listing of the first plan does not hold.
func TestRetentionThatPlansAnewMissesNoPackOfACommitThatCameMeanwhile(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 2}))
	b.pushes(w, 1, 5)
	landed := false
	b.store.Before = func(_ ctxt, c callt) error {
		if c.Op != "put" || !strings.Contains(c.Key, "/gc/") || landed {
			return nil
		}
		landed = true
		late, err := repository.EncodeGC(repository.GC{Number: 1, UpTo: 2, Epoch: 1, Writer: w.cfg.Writer, Created: w.cfg.Now(), WrittenBy: "an earlier run"})
		if err != nil {
			t.Error(err)
		}
		b.mem.Plant(repository.GCKey("strikes", 1), late)
		b.mustPush(w, b.publish(6, map[string]string{"f": "of its own"}), Periodic)
		return nil
	}
	if r, err := w.Maintain(t.Context(), MaintainRequest{}); err != nil || !landed || r.GC != 2 {
		t.Fatalf("report %+v, %v", r, err)
	}
	if d := w.Status().Damage; d != nil {
		t.Errorf("damage %+v", d)
	}
}
