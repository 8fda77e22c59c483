package syncer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// rewind gives a function that brings the store back to what it holds now.
func (b *bench) rewind() func() {
	then := map[string][]byte{}
	for _, key := range b.mem.Keys() {
		then[key], _ = b.mem.Content(key)
	}
	return func() {
		b.t.Helper()
		if err := b.mem.Delete(context.Background(), b.mem.Keys()); err != nil {
			b.t.Fatal(err)
		}
		for _, key := range slices.Sorted(maps.Keys(then)) {
			b.mem.Plant(key, then[key])
		}
	}
}

// at makes the nth call from now on go wrong in one of the ways that there are, and tells whether it came to that.
func (b *bench) at(n int64, mode string, kill context.CancelFunc) (happened func() bool) {
	base, happens := b.store.Calls(), false
	hook := func(c callt) error {
		if c.N-base != n {
			return nil
		}
		happens = true
		if strings.HasPrefix(mode, "killed") {
			kill()
			return &sdk.Error{Code: sdk.Cancelled}
		}
		return &sdk.Error{Code: sdk.Unavailable}
	}
	if mode == "killed after" || mode == "lost reply" {
		b.store.After = func(_ ctxt, c callt, err error) error { return errors.Join(err, hook(c)) }
	} else {
		b.store.Before = func(_ ctxt, c callt) error { return hook(c) }
	}
	return func() bool { return happens }
}

// CASES A29, A36: whichever call of a run goes wrong, in whichever way, every commit that a reader lists restores, and another run ends what is left.
func TestARunThatGoesWrongAtAnyCallLeavesEveryListedCommitRestorable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 2}))
	b.pushes(w, 1, 3)
	b.mustMaintain(w, MaintainRequest{})
	b.pushes(w, 4, 7)
	if _, err := w.Pin(t.Context(), PinRequest{Name: "p", Commit: b.listed()[2].Number}); err != nil {
		t.Fatal(err)
	}
	steps := b.steps()
	b.mem.Plant(repository.PackKey("strikes", repository.PackID{Epoch: 1, Number: 2, SHA256: repository.Sum([]byte("x"))}), []byte("x"))
	rewind := b.rewind()
	for _, mode := range []string{"killed before", "killed after", "error", "lost reply"} {
		for n := int64(1); ; n++ {
			rewind()
			w.memo = nil
			ctx, kill := context.WithCancel(t.Context())
			happened := b.at(n, mode, kill)
			_, err := w.Maintain(ctx, MaintainRequest{Thorough: true})
			kill()
			b.heal()
			if !happened() {
				if n < 12 {
					t.Fatalf("%s: a run makes only %d calls", mode, n-1)
				}
				break
			}
			if err == nil && mode != "lost reply" {
				t.Fatalf("%s at call %d is told as success", mode, n)
			}
			if got := b.steps(); !slices.Equal(got, steps) && !slices.Equal(got, []uint64{4, 6, 7}) {
				t.Fatalf("%s at call %d: listed are the steps %v", mode, n, got)
			}
			b.wantRestorable(b.steps()...)
			b.mustMaintain(w, MaintainRequest{Thorough: true})
			b.wantRestorable(4, 6, 7)
			b.wantNoOrphans()
			if t.Failed() {
				t.Fatalf("%s at call %d", mode, n)
			}
		}
	}
}

// steps are those of the commits that a reader lists.
func (b *bench) steps() []uint64 {
	b.t.Helper()
	var steps []uint64
	for _, c := range b.listed() {
		steps = append(steps, c.Checkpoint.Step)
	}
	return steps
}

// Nothing is deleted by what could not be read whole: a refusal is not an absence.
func TestAnyListingOrReadingThatFailsDeletesNothing(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 1}))
	b.pushes(w, 1, 3)
	if _, err := w.Pin(t.Context(), PinRequest{Name: "p", Commit: 2}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ op, part string }{
		{"list", "gc/"}, {"get", "gc/"}, {"list", "commit/"}, {"get", "commit/00000000000000000002"}, {"list", "pin/"}, {"get", "pin/"}, {"put", "gc/"}, {"list", "epoch/"},
	} {
		for _, code := range []sdk.Code{sdk.PermissionDenied, sdk.Internal, sdk.Corrupt} {
			w.memo = nil
			before := b.mem.Keys()
			b.failOn(row.op, row.part, 1, code, false)
			if _, err := w.Maintain(t.Context(), MaintainRequest{}); !errors.Is(err, code) {
				t.Errorf("%s %s %s: error %v", row.op, row.part, code, err)
			}
			b.heal()
			after := slices.DeleteFunc(b.mem.Keys(), func(key string) bool { return strings.Contains(key, "/gc/") })
			before = slices.DeleteFunc(before, func(key string) bool { return strings.Contains(key, "/gc/") })
			if !slices.Equal(after, before) {
				t.Errorf("%s %s %s: %d objects of %d are left", row.op, row.part, code, len(after), len(before))
			}
		}
	}
	for _, code := range []sdk.Code{sdk.PermissionDenied, sdk.Corrupt} {
		b.mustMaintain(w, MaintainRequest{})
		b.mem.Plant(repository.PackKey("strikes", repository.PackID{Epoch: 1, Number: 2, SHA256: repository.Sum([]byte("x"))}), []byte("x"))
		packs := len(b.packsStored())
		b.failOn("list", "pack/", 1, code, false)
		if _, err := w.Maintain(t.Context(), MaintainRequest{Thorough: true}); !errors.Is(err, code) || len(b.packsStored()) != packs {
			t.Errorf("list of packs %s: error %v", code, err)
		}
		b.heal()
	}
}

// A commit that somebody deleted by hand is proven to be absent and told, and retires nothing else. What it named stays until somebody says otherwise,
// so that it can be put back.
func TestACommitThatIsLostIsToldAndItsPacksAreLeftUntilSomebodySaysOtherwise(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 3}))
	b.pushes(w, 1, 5)
	lost := repository.CommitKey("strikes", 4)
	content, _ := b.mem.Content(lost)
	remove := func() {
		if err := b.mem.Delete(t.Context(), []string{lost}); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	packs := len(b.packsStored())
	r, err := w.Maintain(t.Context(), MaintainRequest{})
	if err == nil || !strings.Contains(err.Error(), "commits [4] are missing") || len(b.packsStored()) != packs {
		t.Errorf("error %v, %d of %d packs are left", err, len(b.packsStored()), packs)
	}
	if m := w.Status().Maintenance; !slices.Equal(r.Missing, []uint64{4}) || !slices.Equal(m.Missing, []uint64{4}) || m.Orphans == 0 || m.Error == "" {
		t.Errorf("report %+v, status %+v", r, m)
	}
	b.wantRestorable(1, 2, 4, 5)

	b.mem.Plant(lost, content)
	b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(3, 4, 5)
	b.wantNoOrphans()

	remove()
	if r := b.mustMaintain(w, MaintainRequest{Thorough: true}); r.Sweep == nil || r.Sweep.Swept == 0 {
		t.Errorf("a sweep that was asked for: %+v", r.Sweep)
	}
	b.wantRestorable(4, 5)
}

// CASES A65: credentials that were replaced hold for every verb at once; a run that failed is simply run again.
func TestAfterCredentialsWereReplacedTheNextRunUsesThem(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 1}))
	b.pushes(w, 1, 3)
	b.store.Before = func(ctxt, callt) error { return &sdk.Error{Code: sdk.Unauthenticated, Hint: "the key has expired"} }
	if _, err := w.Maintain(t.Context(), MaintainRequest{}); !errors.Is(err, sdk.Unauthenticated) {
		t.Fatalf("error %v", err)
	}
	if m := w.Status().Maintenance; !strings.Contains(m.Error, "the key has expired") {
		t.Errorf("status %+v", m)
	}
	b.heal()
	b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(3)
	if m := w.Status().Maintenance; m.Error != "" {
		t.Errorf("status %+v", m)
	}
}

// CASES A67: nothing is written twice under one name, however often it runs.
func TestNoObjectOfARepositoryIsWrittenTwice(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 2}))
	puts := map[string]int{}
	b.store.Before = func(_ ctxt, c callt) error {
		if c.Op == "put" && !strings.Contains(c.Key, "/probe/") {
			puts[c.Key]++
		}
		return nil
	}
	for step := uint64(1); step <= 8; step++ {
		b.pushes(w, step, step)
		b.mustMaintain(w, MaintainRequest{})
	}
	for key, n := range puts {
		if n > 1 {
			t.Errorf("%s was written %d times", key, n)
		}
	}
	var gcs []string
	for _, key := range b.mem.Keys() {
		if strings.Contains(key, "/gc/") {
			gcs = append(gcs, key)
		}
	}
	if len(gcs) != 1 || gcs[0] != repository.GCKey("strikes", 6) {
		t.Errorf("gc objects %q", gcs)
	}
}

// CASES A6: what a target keeps has nothing to do with what the disk keeps.
func TestRetentionOfOneTakesNoLocalCheckpoint(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 1}))
	first := b.publish(1, b.filesOf(1))
	b.mustPush(w, first, Periodic)
	pin, err := b.dir.Checkpoints().Pin(first) // the loop holds the previous one
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Release()
	b.pushes(w, 2, 2)
	b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(2)
	file, err := localPinned{pin}.open(pin.Manifest().Files[0])
	if err != nil {
		t.Fatalf("the local checkpoint is gone: %v", err)
	}
	file.Close()
}

// CASES A25, A68: a restore as of a moment between two commits that are gone finds the newest before it that is there.
func TestARestoreAsOfAMomentFindsWhatRetentionHasLeft(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 2}))
	var between time.Time
	for step := uint64(1); step <= 6; step++ {
		if b.pushes(w, step, step); step == 4 {
			between = b.newest().Checkpoint.Created
		}
	}
	if _, err := w.Pin(t.Context(), PinRequest{Name: "p", Commit: 3}); err != nil {
		t.Fatal(err)
	}
	b.mustMaintain(w, MaintainRequest{})
	r, err := NewReader(ReaderConfig{Target: "offsite", Prefix: "strikes", Store: Direct(b.mem), Now: time.Now, RetryBudget: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Find(t.Context(), Selector{AsOf: between})
	if err != nil || c.Checkpoint.Step != 2 || !maps.Equal(b.content(c), b.filesOf(2)) {
		t.Errorf("%v, %v", c, err)
	}
}

func TestAnErrorOfMaintenanceNamesItsStep(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 2}))
	b.pushes(w, 1, 2)
	for part, want := range map[string]string{"gc/": "retention: ", "pack/": "sweep: "} {
		b.failOn("list", part, 1, sdk.PermissionDenied, false)
		_, err := w.Maintain(t.Context(), MaintainRequest{Thorough: true})
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), `target "offsite"`) {
			t.Errorf("%s: %v", part, err)
		}
		b.heal()
	}
}
