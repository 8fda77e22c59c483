package syncer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// CASES A26: pins are objects that retention reads first.
func TestAPinnedCommitOutlivesRetentionUntilItIsUnpinned(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 1}))
	b.pushes(w, 1, 4)
	pin, err := w.Pin(t.Context(), PinRequest{Name: "before-migration", Commit: 3, Note: "schema 7"})
	if err != nil || pin.Commit != 3 || pin.Checkpoint != b.commits()[3].Checkpoint.ID || pin.By != "alpha" {
		t.Fatalf("%+v, %v", pin, err)
	}
	b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(2, 4)
	b.pushes(w, 5, 6)
	b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(2, 6)
	if pins, err := w.Pins(t.Context()); err != nil || len(pins) != 1 || pins[0] != pin {
		t.Fatalf("%+v, %v", pins, err)
	}
	if err := w.Unpin(t.Context(), "before-migration"); err != nil {
		t.Fatal(err)
	}
	b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(6)
	b.wantNoOrphans()
	if err := w.Unpin(t.Context(), "before-migration"); !errors.Is(err, ErrNoPin) {
		t.Errorf("error %v", err)
	}
}

func TestAPinOfWhatIsNotThereIsRefusedAndLeavesNothing(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 1}))
	b.pushes(w, 1, 3)
	gone := b.commits()[2].Checkpoint.ID
	if _, err := w.Pin(t.Context(), PinRequest{Name: "p", Commit: 1}); !errors.Is(err, ErrNoCommit) || !strings.Contains(err.Error(), "commit 1 is a seal, which holds no checkpoint") {
		t.Errorf("a seal that stands: %v", err)
	}
	b.mustMaintain(w, MaintainRequest{})
	for name, req := range map[string]PinRequest{
		"never was": {Name: "p", Commit: 40}, "retired": {Name: "p", Commit: 2}, "a seal": {Name: "p", Commit: 1}, "retired checkpoint": {Name: "p", Checkpoint: gone},
	} {
		if _, err := w.Pin(t.Context(), req); !errors.Is(err, ErrNoCommit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, req := range map[string]PinRequest{
		"nothing": {Name: "p"}, "both": {Name: "p", Commit: 4, Checkpoint: gone}, "a name of two segments": {Name: "a/b", Commit: 4}, "no name": {Commit: 4},
	} {
		if _, err := w.Pin(t.Context(), req); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if pins, err := w.Pins(t.Context()); err != nil || len(pins) != 0 {
		t.Errorf("%+v, %v", pins, err)
	}
}

// A retention of ours whose answer was lost, and whose request lands when the pin was confirmed: the number that it aims at is taken.
func TestAConfirmedPinIsSafeFromAPlanThatLandsLate(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 1}))
	b.pushes(w, 1, 3)
	var late sdk.PutRequest
	b.store.Before = func(_ context.Context, c callt) error {
		if c.Op == "put" && strings.Contains(c.Key, "/gc/") {
			return &sdk.Error{Code: sdk.Unavailable}
		}
		return nil
	}
	if _, err := w.Maintain(t.Context(), MaintainRequest{}); err == nil {
		t.Fatal("no error")
	}
	b.heal()
	body, err := repository.EncodeGC(repository.GC{Number: 1, Epoch: 1, Writer: b.writer, UpTo: 3, Created: w.cfg.Now(), WrittenBy: "cairn test"})
	if err != nil {
		t.Fatal(err)
	}
	late = sdk.PutRequest{Key: repository.GCKey("strikes", 1), Body: sdk.BytesBody(body), IfAbsent: true}
	if _, err := w.Pin(t.Context(), PinRequest{Name: "p", Commit: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.mem.Put(t.Context(), late); !errors.Is(err, sdk.Exists) {
		t.Fatalf("the late plan was taken: %v", err)
	}
	b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(1, 3)
}

func TestAPinThatComesTooLateIsTakenBackAndSaidSo(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 1}))
	b.pushes(w, 1, 3)
	body, err := repository.EncodeGC(repository.GC{Number: 1, Epoch: 1, Writer: b.writer, UpTo: 3, Created: w.cfg.Now(), WrittenBy: "cairn test"})
	if err != nil {
		t.Fatal(err)
	}
	b.store.Before = func(ctx context.Context, c callt) error { // the late plan lands between the pin and the look
		if c.Op == "put" && strings.Contains(c.Key, "/pin/") {
			_, err := b.mem.Put(ctx, sdk.PutRequest{Key: repository.GCKey("strikes", 1), Body: sdk.BytesBody(body), IfAbsent: true})
			return err
		}
		return nil
	}
	if _, err := w.Pin(t.Context(), PinRequest{Name: "p", Commit: 2}); !errors.Is(err, ErrNoCommit) || !strings.Contains(err.Error(), "retired by gc") {
		t.Fatalf("error %v", err)
	}
	if pins, err := w.Pins(t.Context()); err != nil || len(pins) != 0 {
		t.Errorf("%+v, %v", pins, err)
	}
}

func TestADamagedPinStopsRetentionAndNothingIsDeleted(t *testing.T) {
	for name, plant := range map[string]string{"p.json": "{}", "What-is-this": "x", "q.json": `{"format":9,"written_by":"cairn 9"}`} {
		b := newBench(t)
		w := b.worker(keeps(repository.Retention{MinCount: 1}))
		b.pushes(w, 1, 3)
		b.mem.Plant("strikes/pin/"+name, []byte(plant))
		before := len(b.mem.Keys())
		if _, err := w.Maintain(t.Context(), MaintainRequest{}); err == nil || len(b.mem.Keys()) != before {
			t.Errorf("%s: error %v, %d of %d objects are left", name, err, len(b.mem.Keys()), before)
		}
		if m := w.Status().Maintenance; m == nil || !strings.Contains(m.Error, "pin") {
			t.Errorf("%s: status %+v", name, m)
		}
		b.wantRestorable(1, 2, 3)
		short, isPin := strings.CutSuffix(name, ".json")
		if !isPin {
			continue
		}
		if err := w.Unpin(t.Context(), short); err != nil {
			t.Errorf("a damaged pin cannot be removed: %v", err)
		}
		b.mustMaintain(w, MaintainRequest{})
		b.wantRestorable(3)
	}
}

func TestPinningTwiceIsOnePinAndAnotherCommitUnderThatNameIsRefused(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	b.pushes(w, 1, 3)
	id := b.commits()[2].Checkpoint.ID
	first, err := w.Pin(t.Context(), PinRequest{Name: "p", Checkpoint: id})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := w.Pin(t.Context(), PinRequest{Name: "p", Commit: 2}); err != nil || again != first {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := w.Pin(t.Context(), PinRequest{Name: "p", Commit: 3}); !errors.Is(err, ErrPinExists) || !strings.Contains(err.Error(), "keeps commit 2") {
		t.Errorf("error %v", err)
	}
}

func TestOnlyTheHolderOfTheEpochPins(t *testing.T) {
	a := newBench(t)
	b := newBenchOn(t, a.mem, "beta")
	wa := a.worker()
	a.pushes(wa, 1, 2)
	if _, err := a.restart().Pin(t.Context(), PinRequest{Name: "p", Commit: 2}); !errors.Is(err, ErrNoEpoch) {
		t.Errorf("error %v", err)
	}
	b.inherit()
	b.pushes(b.worker(), 3, 3)
	if _, err := wa.Pin(t.Context(), PinRequest{Name: "p", Commit: 2}); err == nil {
		t.Error("a fenced worker pins")
	} else if _, ok := errors.AsType[*FencedError](err); !ok {
		t.Errorf("error %v", err)
	}
}

// Whoever asks for the pins of a target that does not answer waited for as long as a push would: a quarter of an hour.
func TestAskingForPinsGivesUpSoonerThanAPushDoes(t *testing.T) {
	b := newBench(t)
	clock := &seconds{now: time.Now()}
	w := b.worker(clock.set, func(c *Config) { c.RetryBudget, c.AskBudget = 15*time.Minute, 30*time.Second })
	b.pushes(w, 1, 2)
	began := clock.now
	b.store.Before = func(context.Context, sdktest.Call) error {
		clock.now = clock.now.Add(10 * time.Second)
		return &sdk.Error{Code: sdk.Unavailable}
	}
	if _, err := w.Pins(t.Context()); !errors.Is(err, sdk.Unavailable) || !strings.Contains(err.Error(), "gave up after") {
		t.Errorf("error %v", err)
	}
	if took := clock.now.Sub(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}
