package syncer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// plantSeal puts a seal of a foreign writer at the number behind the newest commit.
func (b *bench) plantSeal(epoch uint64) uint64 {
	b.t.Helper()
	n := b.newest().Number
	before, _ := b.mem.Content(repository.CommitKey("strikes", n))
	body, err := repository.EncodeCommit(&repository.Commit{
		Number: n + 1, Kind: repository.KindSeal, Epoch: epoch, Parent: repository.Sum(before), Created: time.Now(), WrittenBy: "cairn test",
		Writer: repository.Writer{ID: uuid.Must(uuid.NewV7()), Incarnation: uuid.Must(uuid.NewV7())},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.mem.Plant(repository.CommitKey("strikes", n+1), body)
	return n + 1
}

func TestACommitOfALowerEpochAboveOurSealIsCorruptionAndStops(t *testing.T) {
	for _, epoch := range []uint64{1, 2} { // lower than ours, and ours by another writer
		b := newBench(t)
		b.mustPush(b.worker(), b.publish(1, map[string]string{"f": "1"}), Periodic)
		w := b.restart()
		b.mustPush(w, b.publish(2, map[string]string{"f": "2"}), Periodic)
		n := b.plantSeal(epoch)
		err := b.push(w, b.publish(3, map[string]string{"f": "3"}), Periodic)
		if !errors.Is(err, repository.ErrCorrupt) || w.Status().Condition != Refused {
			t.Errorf("epoch %d: error %v, %s", epoch, err, w.Status().Condition)
		}
		if top := b.newest().Number; top != n {
			t.Errorf("epoch %d: commit %d was made above it", epoch, top)
		}
	}
}

func TestACommitOfAHigherEpochFencesEvenIfItsEpochObjectCannotBeRead(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	b.mustPush(w, b.publish(1, map[string]string{"f": "1"}), Periodic)
	b.plantSeal(9)
	err := b.push(w, b.publish(2, map[string]string{"f": "2"}), Periodic)
	if fenced, ok := errors.AsType[*FencedError](err); !ok || fenced.By.Number != 9 || fenced.By.Host != "" {
		t.Errorf("error %v", err)
	}
}

func TestATakeoverJustAfterTheSealIsNoticedBeforeAnythingIsUploaded(t *testing.T) {
	a := newBench(t)
	b := newBenchOn(t, a.mem, "beta")
	wb := b.worker()
	taken := false
	a.store.After = func(_ ctxt, c callt, err error) error {
		if !taken && c.Op == "put" && strings.Contains(c.Key, "commit/00000000000000000001") {
			taken = true
			b.mustPush(wb, b.publish(1, map[string]string{"f": "b"}), Periodic)
		}
		return err
	}
	err := a.push(a.worker(), a.publish(1, map[string]string{"f": "a"}), Periodic)
	if _, ok := errors.AsType[*FencedError](err); !ok || !taken {
		t.Fatalf("error %v", err)
	}
	for _, key := range a.mem.Keys() {
		if strings.Contains(key, "pack/00000000000000000001/") {
			t.Errorf("%s was uploaded for nothing", key)
		}
	}
}

// CASES A13
func TestAClaimWhoseReplyIsLostIsTakenUpByTheNextJob(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	id := b.publish(1, map[string]string{"f": "1"})
	b.failOn("put", "epoch/", 1, sdk.Unavailable, true)
	if err := b.push(w, id, Periodic); err == nil {
		t.Fatal("a claim without an answer counted")
	}
	b.heal()
	b.mustPush(w, id, Periodic)
	if c := b.newest(); c.Epoch != 1 {
		t.Errorf("epoch %d: the own claim was not recognised", c.Epoch)
	}
}

// CASES A13
func TestASealWhoseReplyIsLostIsTakenUpByTheNextJob(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	id := b.publish(1, map[string]string{"f": "1"})
	b.failOn("put", "commit/00000000000000000001", 1, sdk.Unavailable, true)
	if err := b.push(w, id, Periodic); err == nil {
		t.Fatal("a seal without an answer counted")
	}
	b.heal()
	b.mustPush(w, id, Periodic)
	if all := b.commits(); len(all) != 2 || all[2].Checkpoint.ID != id {
		t.Errorf("%d commits", len(all))
	}
}
