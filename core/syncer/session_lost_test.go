package syncer

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// beheaded is a machine whose repository held the commits 2 to 9. A pin keeps commit 3, gc hides the others up to 8, and the newest, 9, was
// deleted by hand. before is what lay there until then.
func beheaded(t *testing.T) (b *bench, w *Worker, before []byte) {
	b = newBench(t)
	w = b.worker(keeps(repository.Retention{MinCount: 1}))
	b.pushes(w, 1, 8)
	if _, err := w.Pin(t.Context(), PinRequest{Name: "old", Commit: 3}); err != nil {
		t.Fatal(err)
	}
	b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(2, 8)
	before, _ = b.mem.Content(repository.CommitKey("strikes", 9))
	b.remove(repository.CommitKey("strikes", 9))
	return b, w, before
}

// CASES A17
func TestAPushAfterTheNewestCommitsWereDeletedTakesNoNumberThatGCHides(t *testing.T) {
	b, _, before := beheaded(t)
	keys := b.mem.Keys()
	w := b.restart()
	id := b.publish(9, map[string]string{"f": "9"})
	err := b.push(w, id, Periodic)
	if !errors.Is(err, repository.ErrCorrupt) {
		seen := b.listed()
		t.Fatalf("error %v, and readers find step %d", err, seen[len(seen)-1].Checkpoint.Step)
	}
	for _, say := range []string{`target "`, `"strikes"`, "gc 2", "up to 8", "commit 3", "commit 9", "version", "prefix"} {
		if !strings.Contains(err.Error(), say) {
			t.Errorf("%v does not say %q", err, say)
		}
	}
	if s := w.Status(); s.Condition != Refused || s.Reason != err.Error() || s.Periodic == id || s.Committed != nil {
		t.Errorf("status %+v", s)
	}
	if err := w.Adopt(t.Context()); !errors.Is(err, repository.ErrCorrupt) {
		t.Errorf("adopt: %v", err)
	}
	if rep, err := w.Repair(t.Context(), RepairRequest{Checkpoint: id}); !errors.Is(err, repository.ErrCorrupt) || rep.Restored {
		t.Errorf("repair: %+v, %v", rep, err)
	}
	if _, err := w.Claim(t.Context()); !errors.Is(err, repository.ErrCorrupt) {
		t.Errorf("claim: %v", err)
	}
	if !slices.Equal(b.mem.Keys(), keys) { // else what is put back would meet other commits
		t.Errorf("there lie now %q", b.mem.Keys())
	}

	b.mem.Plant(repository.CommitKey("strikes", 9), before)
	b.mustPush(w, id, Periodic)
	if c := b.newest(); c.Checkpoint.ID != id || c.Number != 11 {
		t.Errorf("the newest is commit %d of %s", c.Number, c.Checkpoint.ID)
	}
}

func TestWithEveryCommitDeletedGCStillTellsThatThereWereSome(t *testing.T) {
	b, _, _ := beheaded(t)
	b.remove(repository.CommitKey("strikes", 3))
	keys := b.mem.Keys()
	w := b.restart()
	if err := b.push(w, b.publish(9, map[string]string{"f": "9"}), Periodic); !errors.Is(err, repository.ErrCorrupt) || !strings.Contains(err.Error(), "no checkpoint is there") {
		t.Errorf("error %v", err)
	}
	if !slices.Equal(b.mem.Keys(), keys) {
		t.Errorf("there lie now %q", b.mem.Keys())
	}
}

// A commit whose object retention had yet to delete is no base, and its checkpoint is not committed.
func TestACommitThatGCHidesIsNeitherContinuedNorTakenForSuccess(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 1}))
	b.pushes(w, 1, 3)
	hidden := b.commits()[3].Checkpoint.ID
	b.failOn("delete", "", 1, sdk.PermissionDenied, false)
	if _, err := w.Maintain(t.Context(), MaintainRequest{}); err == nil {
		t.Fatal("the commits could be deleted")
	}
	b.heal()
	b.remove(repository.CommitKey("strikes", 4))
	keys := b.mem.Keys()
	if err := b.push(b.restart(), hidden, Requested); !errors.Is(err, repository.ErrCorrupt) {
		t.Errorf("error %v", err)
	}
	if !slices.Equal(b.mem.Keys(), keys) {
		t.Errorf("there lie now %q", b.mem.Keys())
	}
}

func TestNewestCommitsThatGoBetweenTheLookAndTheSealAreMissed(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 1}))
	b.pushes(w, 1, 8)
	if _, err := w.Pin(t.Context(), PinRequest{Name: "old", Commit: 3}); err != nil {
		t.Fatal(err)
	}
	b.mustMaintain(w, MaintainRequest{})
	w = b.restart()
	b.store.Before = func(_ ctxt, c callt) error {
		if c.Op == "put" && strings.HasPrefix(c.Key, "strikes/epoch/") {
			b.remove(repository.CommitKey("strikes", 9))
		}
		return nil
	}
	if err := b.push(w, b.publish(9, map[string]string{"f": "9"}), Periodic); !errors.Is(err, repository.ErrCorrupt) {
		t.Errorf("error %v", err)
	}
	if _, there := b.mem.Content(repository.CommitKey("strikes", 4)); there {
		t.Error("there is a seal at a number that gc hides")
	}
}
