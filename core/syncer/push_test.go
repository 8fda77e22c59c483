package syncer

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
)

// incompressible is n bytes that do not compress.
func incompressible(seed byte, n int) string {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(b) // never fails, says its documentation
	return string(b)
}

// CASES A21, A51
func TestAPushMakesACommitThatHoldsEveryByte(t *testing.T) {
	b := newBench(t)
	files := map[string]string{
		"empty": "", "a/text": strings.Repeat("compressible ", 200_000), "a/noise": incompressible(1, 3<<20+17), "zeros": strings.Repeat("\x00", 2<<20+5),
		"twin 1": "same size, same time", "twin 2": "same size, same tim3", "odd \xff name": "x",
	}
	id := b.publish(7, files)
	w := b.worker()
	b.mustPush(w, id, Requested)
	c := b.newest()
	if c.Checkpoint.ID != id || c.Checkpoint.Step != 7 || c.Kind != repository.KindCheckpoint || c.Number != 2 || c.Epoch != 1 {
		t.Errorf("commit %+v", c.Checkpoint)
	}
	if got := b.content(c); !maps.Equal(got, files) {
		t.Error("the commit does not hold the checkpoint")
	}
	if c.Totals.Stored >= c.Totals.Bytes/2 {
		t.Errorf("stored %d of %d bytes: text was not compressed or zeros were stored", c.Totals.Stored, c.Totals.Bytes)
	}
	if all := b.commits(); all[1].Kind != repository.KindSeal || all[1].Epoch != 1 {
		t.Errorf("commit 1 is no seal of epoch 1: %+v", all[1])
	}
	if _, ok := b.mem.Content(repository.ReadmeKey("strikes")); !ok {
		t.Error("no README.txt for whoever finds the bucket")
	}
}

func TestOnlyWhatIsNewIsPacked(t *testing.T) {
	b := newBench(t)
	big := incompressible(2, 5<<20)
	w := b.worker()
	b.mustPush(w, b.publish(1, map[string]string{"big": big, "small": "1"}), Periodic)
	changed := big[:2<<20] + "!" + big[2<<20+1:]
	b.mustPush(w, b.publish(2, map[string]string{"big": changed, "small": "2"}), Periodic)
	c := b.newest()
	if c.Totals.New > 1<<20+64 {
		t.Errorf("%d bytes are new after one changed chunk", c.Totals.New)
	}
	if got := b.content(c); got["big"] != changed || got["small"] != "2" {
		t.Error("the commit does not hold the checkpoint")
	}
}

// CASES A58
func TestPacksStayBelowTheirLimit(t *testing.T) {
	b := newBench(t)
	b.mustPush(b.worker(), b.publish(1, map[string]string{"big": incompressible(3, 40<<20)}), Periodic)
	c := b.newest()
	if len(c.Packs) != 3 {
		t.Errorf("40 MiB lie in %d packs, want 3", len(c.Packs))
	}
	for _, p := range c.Packs {
		if content, _ := b.mem.Content(repository.PackKey("strikes", p)); len(content) > repository.MaxPack {
			t.Errorf("pack of %d bytes", len(content))
		}
	}
}

// CASES A69
func TestAnUnchangedCheckpointThatIsCommittedCostsNoCall(t *testing.T) {
	b := newBench(t)
	id := b.publish(1, map[string]string{"f": "1"})
	w := b.worker()
	b.mustPush(w, id, Periodic)
	before := b.store.Calls()
	b.mustPush(w, id, Periodic)
	if n := b.store.Calls() - before; n != 0 {
		t.Errorf("%d calls", n)
	}
}

// CASES A67, A69
func TestUnchangedContentInANewCheckpointCostsOneCommitBetweenTwoLooksAtTheEpoch(t *testing.T) {
	b := newBench(t)
	files := map[string]string{"f": incompressible(4, 100_000), "g": "same"}
	w := b.worker()
	b.mustPush(w, b.publish(1, files), Periodic)
	id := b.publish(2, files)
	var calls []string
	b.store.Before = record(&calls)
	b.mustPush(w, id, Periodic)
	epoch, line := "list strikes/epoch/", "list strikes/commit/" // from our own epoch on, from the end of the line on: one key, or two
	if want := []string{epoch, line, "put strikes/commit/00000000000000000003.json.zst", "get strikes/FORMAT.json", epoch, line}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
	if b.newest().Checkpoint.ID != id {
		t.Error("the new checkpoint is not committed")
	}
}

func TestAfterARestartACommittedCheckpointIsKnownByLookingAlone(t *testing.T) {
	b := newBench(t)
	id := b.publish(1, map[string]string{"f": "1"})
	b.mustPush(b.worker(), id, Periodic)
	before := len(b.mem.Keys())
	w := b.restart()
	if got := w.Status().Committed; got == nil || got.Checkpoint != id || got.Number != 2 {
		t.Errorf("status after the restart: %+v", got)
	}
	b.mustPush(w, id, Requested)
	if n := len(b.mem.Keys()); n != before {
		t.Errorf("%d objects were written for a checkpoint that was committed already", n-before)
	}
	if s := w.Status(); s.Success != id || s.Epoch != 0 {
		t.Errorf("success %s, epoch %d", s.Success, s.Epoch)
	}
}

func TestARestartClaimsTheNextEpochAndContinuesTheLine(t *testing.T) {
	b := newBench(t)
	big := incompressible(5, 1<<20)
	b.mustPush(b.worker(), b.publish(1, map[string]string{"big": big}), Periodic)
	b.mustPush(b.restart(), b.publish(2, map[string]string{"big": big, "f": "2"}), Periodic)
	all := b.commits()
	if len(all) != 4 || all[3].Kind != repository.KindSeal || all[3].Epoch != 2 || all[4].Epoch != 2 {
		t.Fatalf("%d commits", len(all))
	}
	if all[4].Totals.New > 100 {
		t.Errorf("the new reign packed %d bytes that the old one had stored", all[4].Totals.New)
	}
	for n := uint64(2); n <= 4; n++ {
		before, _ := b.mem.Content(repository.CommitKey("strikes", n-1))
		if all[n].Parent != repository.Sum(before) {
			t.Errorf("commit %d does not follow commit %d", n, n-1)
		}
	}
}

func TestACheckpointThatIsNotThereIsNotPushed(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	if err := b.push(w, uuid.Must(uuid.NewV7()), Requested); !errors.Is(err, checkpoint.ErrNone) {
		t.Errorf("error %v", err)
	}
	if n := b.store.Calls(); n != 0 {
		t.Errorf("%d calls for nothing", n)
	}
}

func TestAnOlderCheckpointOfTheSameLineDoesNotGoOnTop(t *testing.T) {
	b := newBench(t)
	older := b.publish(1, map[string]string{"f": "1"})
	newer := b.publish(2, map[string]string{"f": "2"})
	w := b.worker()
	b.mustPush(w, newer, Periodic)
	if err := b.push(w, older, Requested); !errors.Is(err, ErrSuperseded) {
		t.Errorf("error %v", err)
	}
	if b.newest().Checkpoint.ID != newer {
		t.Error("a reader would go back")
	}
}

// CASES A6
func TestTheCheckpointIsPinnedWhileItIsPushed(t *testing.T) {
	b := newBench(t)
	id := b.publish(1, map[string]string{"f": "1"})
	b.publish(2, map[string]string{"f": "2"})
	b.store.Before = func(ctxt, callt) error {
		if _, err := b.dir.Checkpoints().Collect(1); err != nil {
			return err
		}
		return nil
	}
	b.mustPush(b.worker(), id, Requested)
	b.heal()
	if removed, err := b.dir.Checkpoints().Collect(1); err != nil || len(removed) != 1 || removed[0] != id {
		t.Errorf("after the push %v is collected, %v", removed, err)
	}
}
