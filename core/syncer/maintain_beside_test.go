package syncer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// stall blocks the first call of an operation on a key that contains part. entered is closed when it stands there; leave lets it go on.
func (b *bench) stall(op, part string) (entered chan struct{}, leave func()) {
	entered, left := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b.store.Before = func(_ ctxt, c callt) error {
		if c.Op == op && strings.Contains(c.Key, part) {
			once.Do(func() {
				close(entered)
				<-left
			})
		}
		return nil
	}
	return entered, func() { close(left) }
}

// CASES A27, A38: a push that is paused for a week, its packs stored and its commit not, keeps its packs: no clock says otherwise.
func TestAPushThatIsPausedForAWeekKeepsItsPacks(t *testing.T) {
	b := newBench(t)
	clock := &seconds{now: time.Now()}
	w := b.worker(keeps(repository.Retention{MinCount: 1}), clock.set)
	b.pushes(w, 1, 4)
	id := b.publish(5, b.filesOf(5))
	entered, leave := b.stall("put", "commit/00000000000000000006")
	done := make(chan error, 1)
	go func() { done <- w.Push(t.Context(), Job{Checkpoint: id, Trigger: Periodic}) }()
	<-entered
	clock.now = clock.now.AddDate(0, 0, 7)
	packs := b.packsStored()
	r := b.mustMaintain(w, MaintainRequest{Thorough: true}) // does not wait for the push
	if r.Sweep.Undecided != 1 || !slices.Contains(b.packsStored(), packs[len(packs)-1]) || r.Retired != 3 {
		t.Errorf("report %+v, sweep %+v", r, r.Sweep)
	}
	b.wantRestorable(4)
	leave()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.wantRestorable(4, 5)
	b.mustMaintain(w, MaintainRequest{Thorough: true})
	b.wantRestorable(5)
	b.wantNoOrphans()
}

// CASES A38, A40: a push that is paused while another host takes over and sweeps cannot make a commit that names what was swept.
func TestAPushThatWakesAfterATakeoverAndASweepIsFencedAndHarmsNothing(t *testing.T) {
	a := newBench(t)
	b := newBenchOn(t, a.mem, "beta")
	wa := a.worker(keeps(repository.Retention{MinCount: 1}))
	a.pushes(wa, 1, 3)
	id := a.publish(4, a.filesOf(4))
	entered, leave := a.stall("put", "commit/00000000000000000005")
	done := make(chan error, 1)
	go func() { done <- wa.Push(t.Context(), Job{Checkpoint: id, Trigger: Periodic}) }()
	<-entered
	b.inherit()
	wb := b.worker(keeps(repository.Retention{MinCount: 1}))
	b.pushes(wb, 5, 5)
	if r := b.mustMaintain(wb, MaintainRequest{}); r.Sweep.Swept < 2 {
		t.Errorf("sweep %+v", r.Sweep)
	}
	leave()
	if err := <-done; err == nil {
		t.Fatal("the push that was taken over from succeeded")
	} else if _, ok := errors.AsType[*FencedError](err); !ok {
		t.Errorf("error %v", err)
	}
	b.wantRestorable(5)
	b.pushes(wb, 6, 6)
	b.mustMaintain(wb, MaintainRequest{})
	b.wantRestorable(6)
	b.wantNoOrphans()
}

// CASES A41, A70: what failed pushes leave is told, and goes.
func TestTenFailedPushesLeaveNothingAfterASweep(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 20}))
	b.pushes(w, 1, 1)
	b.mustMaintain(w, MaintainRequest{})
	for step := uint64(2); step <= 11; step++ {
		b.failOn("put", "commit/", 1, sdk.NoSpace, false)
		if err := b.push(w, b.publish(step, b.filesOf(step)), Periodic); err == nil {
			t.Fatal("no error")
		}
		b.heal()
	}
	if r := b.mustMaintain(w, MaintainRequest{}); r.Sweep == nil || r.Sweep.Undecided < 10 || r.Sweep.Swept != 0 {
		t.Fatalf("report %+v, sweep %+v", r, r.Sweep) // the number that they aimed at is not decided
	}
	if m := w.Status().Maintenance; m.Orphans < 10 || m.OrphanBytes == 0 {
		t.Errorf("status %+v", m)
	}
	b.pushes(w, 12, 12)
	if r := b.mustMaintain(w, MaintainRequest{}); r.Sweep == nil || r.Sweep.Swept < 10 {
		t.Errorf("sweep %+v", r.Sweep)
	}
	b.wantRestorable(1, 12)
	b.wantNoOrphans()
	if m := w.Status().Maintenance; m.Orphans != 0 || m.OrphanBytes != 0 || m.Freed == 0 {
		t.Errorf("status %+v", m)
	}
}

// CASES A41: a failed push of an earlier run of the host is swept by the next that has committed.
func TestWhatACrashedHostLeftIsSweptByTheNext(t *testing.T) {
	b := newBench(t)
	b.pushes(b.worker(), 1, 2)
	b.failOn("put", "commit/", 1, sdk.NoSpace, false)
	w := b.restart(keeps(repository.Retention{MinCount: 9}))
	b.store.Before = func(_ ctxt, c callt) error {
		if c.Op == "put" && strings.Contains(c.Key, "commit/00000000000000000005") {
			return &sdk.Error{Code: sdk.NoSpace}
		}
		return nil
	}
	if err := b.push(w, b.publish(3, b.filesOf(3)), Periodic); err == nil {
		t.Fatal("no error")
	}
	b.heal()
	w = b.restart(keeps(repository.Retention{MinCount: 9}))
	b.pushes(w, 4, 4)
	if r := b.mustMaintain(w, MaintainRequest{}); r.Sweep.Swept != 1 {
		t.Errorf("sweep %+v", r.Sweep)
	}
	b.wantRestorable(1, 2, 4)
	b.wantNoOrphans()
}

// CASES A37: of two that maintain one repository the one that holds the epoch does, wherever the other stands.
func TestAMaintenanceThatIsOvertakenByATakeoverHarmsNothing(t *testing.T) {
	for _, at := range []struct{ op, part string }{
		{"list", "gc/"}, {"list", "commit/"}, {"put", "gc/"}, {"list", "epoch/"}, {"delete", "commit/"}, {"list", "pack/"}, {"delete", "pack/"},
	} {
		a := newBench(t)
		b := newBenchOn(t, a.mem, "beta")
		wa := a.worker(keeps(repository.Retention{MinCount: 1}))
		a.pushes(wa, 1, 5)
		entered, leave := a.stall(at.op, at.part)
		done := make(chan error, 1)
		go func() {
			_, err := wa.Maintain(t.Context(), MaintainRequest{})
			done <- err
		}()
		<-entered
		b.inherit()
		wb := b.worker(keeps(repository.Retention{MinCount: 2}))
		b.pushes(wb, 6, 7)
		b.mustMaintain(wb, MaintainRequest{})
		leave()
		err := <-done
		_, fenced := errors.AsType[*FencedError](err)
		if !fenced && err != nil && !errors.Is(err, sdk.NotFound) {
			t.Errorf("%s %s: %v", at.op, at.part, err)
		}
		b.wantRestorable(6, 7)
		b.pushes(wb, 8, 8)
		b.mustMaintain(wb, MaintainRequest{Thorough: true})
		b.wantRestorable(7, 8)
		b.wantNoOrphans()
	}
}

// CASES A37: two calls on one worker take turns, and the second finds nothing left to do.
func TestTwoMaintainersOfOneWorkerTakeTurns(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 2}))
	b.pushes(w, 1, 6)
	entered, leave := b.stall("delete", "commit/")
	first := make(chan error, 1)
	go func() {
		_, err := w.Maintain(t.Context(), MaintainRequest{})
		first <- err
	}()
	<-entered
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Maintain(impatient, MaintainRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	second := make(chan MaintainReport, 1)
	go func() {
		r, err := w.Maintain(t.Context(), MaintainRequest{})
		if err != nil {
			t.Error(err)
		}
		second <- r
	}()
	leave()
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	if r := <-second; r.Retired != 0 || r.Deleted != 0 || r.GC != 0 {
		t.Errorf("report %+v", r)
	}
	b.wantRestorable(5, 6)
	b.wantNoOrphans()
}

// CASES A29: retention that hangs, or fails, delays no push and fails none.
func TestAMaintenanceThatHangsDelaysNoPush(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 2}))
	b.pushes(w, 1, 4)
	entered, leave := b.stall("delete", "commit/")
	done := make(chan error, 1)
	go func() {
		_, err := w.Maintain(t.Context(), MaintainRequest{})
		done <- err
	}()
	<-entered
	b.pushes(w, 5, 7)
	if s := w.Status(); s.Condition != Ready || s.Committed.Step != 7 {
		t.Errorf("status %+v", s)
	}
	leave()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.wantRestorable(3, 4, 5, 6, 7)
	b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(6, 7)
	b.wantNoOrphans()
}

// CASES A69: what was looked at is not looked at again: a run after a push that retired nothing reads one commit and lists no pack.
func TestARunThatHasNothingToDoMakesFewCalls(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 20}))
	b.pushes(w, 1, 5)
	b.mustMaintain(w, MaintainRequest{})
	b.pushes(w, 6, 6)
	var calls []string
	b.store.Before = record(&calls)
	b.mustMaintain(w, MaintainRequest{})
	b.heal()
	want := []string{"list strikes/gc/", "list strikes/commit/", "get strikes/commit/00000000000000000007.json.zst", "list strikes/pin/"}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
	before := b.store.Calls()
	b.mustPush(w, w.Status().Committed.Checkpoint, Periodic)
	if n := b.store.Calls() - before; n != 0 {
		t.Errorf("a push of what is committed made %d calls", n)
	}
}

// CASES A24, A26, A33: the history begins with fewer commits than are to be kept, writers are restarted, and pins hold what the rules would not: after every push and sweep each listed commit restores, byte for
// byte; now and then through the reader that operators use, to a folder.
func TestAHistoryOfAHundredCheckpointsRestoresAfterEverySweep(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	policy := keeps(repository.Retention{MinCount: 4})
	w := b.worker(policy)
	var pinned []uint64
	for step := uint64(1); step <= 100; step++ {
		b.pushes(w, step, step)
		if step%30 == 0 {
			if _, err := w.Pin(t.Context(), PinRequest{Name: fmt.Sprintf("step-%d", step), Commit: b.newest().Number}); err != nil {
				t.Fatal(err)
			}
			pinned = append(pinned, step)
		}
		b.mustMaintain(w, MaintainRequest{})
		want := slices.Clone(pinned)
		for s := max(4, step) - 3; s <= step; s++ {
			if !slices.Contains(want, s) {
				want = append(want, s)
			}
		}
		slices.Sort(want)
		b.wantRestorable(want...)
		b.wantNoOrphans()
		if step%25 == 0 {
			b.wantRestorableToFolders()
			w = b.restart(policy)
		}
	}
}

// wantRestorableToFolders restores each listed commit as `cairn checkpoint restore` does.
func (b *bench) wantRestorableToFolders() {
	b.t.Helper()
	r, err := NewReader(ReaderConfig{Target: "offsite", Prefix: "strikes", Store: Direct(b.mem), Now: time.Now, RetryBudget: time.Nanosecond})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range b.listed() {
		dir := filepath.Join(b.t.TempDir(), "restored")
		if _, err := r.RestoreDir(b.t.Context(), RestoreRequest{From: Selector{Number: c.Number}, Dir: dir, Spool: b.spool}); err != nil {
			b.t.Fatalf("commit %d: %v", c.Number, err)
		}
		got := map[string]string{}
		for path := range b.filesOf(c.Checkpoint.Step) {
			content, err := os.ReadFile(filepath.Join(dir, path))
			if err != nil {
				b.t.Fatal(err)
			}
			got[path] = string(content)
		}
		if !maps.Equal(got, b.filesOf(c.Checkpoint.Step)) {
			b.t.Fatalf("commit %d (step %d) does not restore what was pushed", c.Number, c.Checkpoint.Step)
		}
	}
}

// Where fencing is advisory a gc number that had no answer is aimed at with the same bytes until they are there: a request that lands late then changes nothing.
func TestUnderAdvisoryFencingOneGCNumberNeverGetsTwoContents(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 2}), func(c *Config) { c.Fencing = FencingAdvisory })
	b.pushes(w, 1, 4)
	var late []byte
	b.store.Before = func(_ ctxt, c callt) error {
		if c.Op == "put" && strings.Contains(c.Key, "/gc/") {
			return &sdk.Error{Code: sdk.Unavailable}
		}
		return nil
	}
	if _, err := w.Maintain(t.Context(), MaintainRequest{}); err == nil {
		t.Fatal("no error")
	}
	b.heal()
	sent := *w.memo.sent
	var err error
	if late, err = repository.EncodeGC(sent); err != nil {
		t.Fatal(err)
	}
	b.pushes(w, 5, 6)
	b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(5, 6)
	if first, ok := b.mem.Content(repository.GCKey("strikes", 1)); ok && string(first) != string(late) {
		t.Error("gc 1 has another content than was first sent for it")
	}
	b.mem.Plant(repository.GCKey("strikes", 1), late) // the store takes it: nobody asked it to refuse
	b.wantRestorable(5, 6)
	b.mustMaintain(w, MaintainRequest{Thorough: true})
	b.wantRestorable(5, 6)
	b.wantNoOrphans()
}
