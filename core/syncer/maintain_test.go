package syncer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/repository"
)

func TestMaintainRetiresWhatThePolicyDoesNotKeepAndSweepsItsPacks(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 3}))
	b.pushes(w, 1, 8)
	before := len(b.packsStored())
	r := b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(6, 7, 8)
	b.wantNoOrphans()
	if r.Kept != 3 || r.Retired != 5 || r.Deleted != 6 || r.GC != 1 || r.Sweep == nil || r.Sweep.Swept == 0 || r.Sweep.SweptBytes == 0 {
		t.Errorf("report %+v, sweep %+v", r, r.Sweep)
	}
	if got := before - len(b.packsStored()); int64(got) != r.Sweep.Swept {
		t.Errorf("%d packs went and %d were told", got, r.Sweep.Swept)
	}
	m := w.Status().Maintenance
	if m == nil || m.Kept != 3 || m.Retired != 5 || m.Freed != r.Sweep.SweptBytes || m.Orphans != 0 || m.Packs != int64(len(b.packsStored())) || m.Error != "" {
		t.Errorf("status %+v", m)
	}
	b.pushes(w, 9, 9)
	b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(7, 8, 9)
	if got := b.restart().Status().Maintenance; got == nil || got.Kept != 3 {
		t.Errorf("after a restart the status shows %+v", got)
	}
}

// CASES A33: fewer than the count is normal.
func TestRetentionOfFourWithOneCommitKeepsItAndIsNoError(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 4}))
	b.pushes(w, 1, 1)
	r := b.mustMaintain(w, MaintainRequest{})
	if r.Kept != 1 || r.Retired != 0 || r.GC != 0 || r.Deleted != 0 {
		t.Errorf("report %+v", r)
	}
	b.wantRestorable(1)
}

func TestADryRunTellsWhatARealOneDoesAndWritesNothing(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 2}))
	b.pushes(w, 1, 6)
	var calls []string
	b.store.Before = record(&calls)
	dry := b.mustMaintain(w, MaintainRequest{DryRun: true})
	for _, c := range calls {
		if strings.HasPrefix(c, "put") || strings.HasPrefix(c, "delete") {
			t.Errorf("a dry run made the call %q", c)
		}
	}
	if w.Status().Maintenance != nil {
		t.Error("a dry run is shown as the last run")
	}
	r := b.mustMaintain(w, MaintainRequest{})
	if dry.Retired != r.Retired || dry.Kept != r.Kept || dry.Sweep.Orphans != r.Sweep.Swept || dry.Sweep.OrphanBytes != r.Sweep.SweptBytes {
		t.Errorf("dry %+v %+v, real %+v %+v", dry, dry.Sweep, r, r.Sweep)
	}
	if len(dry.Verdicts) != 7 || !strings.Contains(dry.Verdicts[6].Why, "newest checkpoint") {
		t.Errorf("verdicts %+v", dry.Verdicts)
	}
}

func TestAWorkerWithoutAnEpochOnlyRunsDry(t *testing.T) {
	b := newBench(t)
	b.pushes(b.worker(), 1, 5)
	w := b.restart(keeps(repository.Retention{MinCount: 2}))
	if _, err := w.Maintain(t.Context(), MaintainRequest{}); !errors.Is(err, ErrNoEpoch) {
		t.Fatalf("error %v", err)
	}
	dry := b.mustMaintain(w, MaintainRequest{DryRun: true})
	if dry.Epoch != 2 || dry.Retired != 3 || dry.Sweep.Orphans != 2 {
		t.Errorf("report %+v, sweep %+v", dry, dry.Sweep)
	}
	b.wantRestorable(1, 2, 3, 4, 5)
}

func TestAFencedWorkerMaintainsNothing(t *testing.T) {
	a := newBench(t)
	b := newBenchOn(t, a.mem, "beta")
	wa := a.worker(keeps(repository.Retention{MinCount: 1}))
	a.pushes(wa, 1, 3)
	b.inherit()
	b.pushes(b.worker(), 4, 4)
	keys := len(a.mem.Keys())
	_, err := wa.Maintain(t.Context(), MaintainRequest{})
	if fenced, ok := errors.AsType[*FencedError](err); !ok || fenced.By.Host != "beta" {
		t.Fatalf("error %v", err)
	}
	if len(a.mem.Keys()) > keys+1 { // a gc object that was planned before: it hides what its plan retired, and nothing of theirs
		t.Error("a fenced worker changed the repository")
	}
	if got := a.listed(); got[len(got)-1].Checkpoint.Step != 4 {
		t.Errorf("the newest is step %d", got[len(got)-1].Checkpoint.Step)
	}
	if m := wa.Status().Maintenance; m == nil || !strings.Contains(m.Error, "fenced") {
		t.Errorf("status %+v", m)
	}
}

func TestWithoutAPolicyEveryCommitIsKeptAndOrphansAreSwept(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	b.pushes(w, 1, 4)
	orphan := repository.PackKey("strikes", repository.PackID{Epoch: 1, Number: 2, SHA256: repository.Sum([]byte("x"))})
	b.mem.Plant(orphan, []byte("x"))
	r := b.mustMaintain(w, MaintainRequest{Thorough: true})
	if r.Policy != nil || r.Sweep.Swept != 1 || r.Sweep.SweptBytes != 1 {
		t.Errorf("report %+v, sweep %+v", r, r.Sweep)
	}
	b.wantRestorable(1, 2, 3, 4)
	b.wantNoOrphans()
}

func TestTheGuardStopsARunAndARequestCanLiftItOnce(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 1, MaxDelete: 3}))
	b.pushes(w, 1, 6)
	r, err := w.Maintain(t.Context(), MaintainRequest{})
	guard, ok := errors.AsType[*repository.MaxDeleteError](err)
	if !ok || guard.Retire != 5 || len(r.Verdicts) != 7 || r.Retired != 0 || r.Deleted != 0 || !strings.Contains(err.Error(), "--max-delete 5`") || !strings.Contains(err.Error(), "--dry-run`") {
		t.Fatalf("error %v, report %+v", err, r)
	}
	b.wantRestorable(1, 2, 3, 4, 5, 6)
	if m := w.Status().Maintenance; !strings.Contains(m.Error, "max_delete = 3") {
		t.Errorf("status %+v", m)
	}
	b.mustMaintain(w, MaintainRequest{MaxDelete: 5})
	b.wantRestorable(6)
	if m := w.Status().Maintenance; m.Error != "" {
		t.Errorf("status %+v", m)
	}
}

// CASES A46: a clock that jumps moves ages and nothing else.
func TestAClockThatIsWrongNeverRetiresTheNewest(t *testing.T) {
	b := newBench(t)
	clock := &seconds{now: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}
	w := b.worker(keeps(repository.Retention{MinAge: time.Hour}), clock.set)
	b.pushes(w, 1, 2)
	clock.now = clock.now.AddDate(0, 2, 0)
	b.pushes(w, 3, 3)
	clock.now = clock.now.AddDate(0, -2, 0)
	b.pushes(w, 4, 4)
	b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(1, 2, 3, 4)
	clock.now = clock.now.AddDate(0, 1, 0)
	b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(3, 4)
}
