package syncer

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// stands is the state of this machine at a step, as its host would describe it.
func (b *bench) stands(step uint64) checkpoint.Manifest {
	b.t.Helper()
	h := slices.Clone(b.history)
	h[len(h)-1].UpTo = step
	return checkpoint.Manifest{Step: step, History: h}
}

// CASES A43: a host that comes back to a repository which another one has taken over says so before it pushes anything.
func TestALookAfterARestartTellsOfATakeover(t *testing.T) {
	for name, takes := range map[string]struct {
		over func(t *testing.T, b *bench)
		want Condition
	}{
		"nobody has": {func(*testing.T, *bench) {}, Ready},
		"by an activation that has not pushed yet": {func(t *testing.T, b *bench) {
			if _, err := b.worker().Claim(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, Fenced},
		"by a host that has gone on": {func(_ *testing.T, b *bench) {
			b.inherit()
			b.mustPush(b.worker(), b.publish(2, map[string]string{"f": "b"}), Periodic)
		}, Held},
		"it was wiped": {func(_ *testing.T, b *bench) { b.wipe() }, Held},
	} {
		t.Run(name, func(t *testing.T) {
			a := newBench(t)
			a.mustPush(a.worker(), a.publish(1, map[string]string{"f": "a"}), Periodic)
			takes.over(t, newBenchOn(t, a.mem, "beta"))
			w := a.restart()
			before := w.Status().Looked
			keys, calls := a.mem.Keys(), a.store.Calls()
			err := w.Look(t.Context(), a.stands(1))
			s := w.Status()
			if s.Condition != takes.want || (err == nil) != (takes.want == Ready) || !s.Looked.After(before) {
				t.Fatalf("%s, %v, looked %v", s.Condition, err, s.Looked)
			}
			if s.Condition != Ready && s.Reason == "" || s.Condition == Fenced && s.TakenBy.Host != "beta" {
				t.Errorf("reason %q, taken by %+v", s.Reason, s.TakenBy)
			}
			if !slices.Equal(a.mem.Keys(), keys) {
				t.Errorf("a look has written: %q", a.mem.Keys())
			}
			if made := a.store.Calls() - calls; takes.want == Ready && made != 2 {
				t.Errorf("%d calls, want a listing and a read", made)
			}
			if err := a.push(w, a.publish(2, map[string]string{"f": "a"}), Periodic); (err == nil) != (takes.want == Ready) {
				t.Errorf("the push after it: %v", err)
			}
		})
	}
}

func TestALookThatGetsNoAnswerTellsNothing(t *testing.T) {
	a := newBench(t)
	a.mustPush(a.worker(), a.publish(1, map[string]string{"f": "a"}), Periodic)
	w := a.restart()
	before := w.Status().Looked
	a.failOn("list", "epoch", 1, sdk.Unavailable, false)
	if err := w.Look(t.Context(), a.stands(1)); !errors.Is(err, sdk.Unavailable) {
		t.Fatalf("error %v", err)
	}
	if s := w.Status(); s.Condition != Unavailable || !s.Looked.Equal(before) || s.Committed == nil {
		t.Errorf("status %+v", s)
	}
}

// looking begins a look at step 1, which waits in its first listing; end lets it go on and gives its error.
func (b *bench) looking(w *Worker) (end func() error) {
	entered, leave := make(chan struct{}), make(chan struct{})
	var stalled atomic.Bool
	b.store.Before = func(_ context.Context, c sdktest.Call) error {
		if c.Op == "list" && stalled.CompareAndSwap(false, true) {
			close(entered)
			<-leave
		}
		return nil
	}
	looked, stands := make(chan error, 1), b.stands(1)
	go func() { looked <- w.Look(b.t.Context(), stands) }()
	<-entered
	return func() error {
		close(leave)
		return <-looked
	}
}

func TestALookKeepsNoPushWaitingAndTakesNoWordBackOfIt(t *testing.T) {
	a := newBench(t)
	b := newBenchOn(t, a.mem, "beta")
	a.mustPush(a.worker(), a.publish(1, map[string]string{"f": "a"}), Periodic)
	w := a.restart()
	end := a.looking(w)
	a.mustPush(w, a.publish(2, map[string]string{"f": "a2"}), Periodic)
	b.inherit()
	b.mustPush(b.worker(), b.publish(3, map[string]string{"f": "b"}), Periodic)
	_, fenced := errors.AsType[*FencedError](a.push(w, a.publish(4, map[string]string{"f": "a4"}), Periodic))
	if err := end(); !fenced || err == nil {
		t.Errorf("fenced %t, the look: %v", fenced, err)
	}
	if s := w.Status(); s.Condition != Fenced {
		t.Errorf("status %+v", s)
	}
}

// The operator's word counts, also where a look that had begun before it comes back after it.
func TestALookThatEndsAfterAnAdoptionTakesNoWordBackOfIt(t *testing.T) {
	a := newBench(t)
	b := newBenchOn(t, a.mem, "beta")
	a.mustPush(a.worker(), a.publish(1, map[string]string{"f": "a"}), Periodic)
	b.inherit()
	b.mustPush(b.worker(), b.publish(2, map[string]string{"f": "b"}), Periodic)
	w := a.restart()
	end := a.looking(w)
	if err := w.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Errorf("the look: %v", err)
	}
	if s := w.Status(); s.Condition != Ready || s.Looked.IsZero() {
		t.Errorf("status %+v", s)
	}
	a.mustPush(w, a.publish(2, map[string]string{"f": "a2"}), Periodic)
}

// CASES A37: a host that has nothing new to push maintains what the run before it has left, and nobody else's.
func TestARestartedHostMaintainsItsOwnRepositoryWithoutAPush(t *testing.T) {
	a := newBench(t)
	a.pushes(a.worker(), 1, 4)
	w := a.restart(keeps(repository.Retention{MinCount: 2}))
	for range 2 { // the second is answered from memory
		if err := w.Resume(t.Context(), a.stands(4)); err != nil {
			t.Fatal(err)
		}
	}
	if s := w.Status(); s.Epoch != 2 || s.Committed.Step != 4 || s.Condition != Ready {
		t.Errorf("status %+v", s)
	}
	if _, err := w.Pin(t.Context(), PinRequest{Name: "audit", Commit: 2}); err != nil {
		t.Fatal(err)
	}
	a.mustMaintain(w, MaintainRequest{Thorough: true})
	a.wantRestorable(1, 3, 4)
	a.mustPush(w, a.publish(5, a.filesOf(5)), Periodic)
	if s := w.Status(); s.Epoch != 2 {
		t.Errorf("the push has claimed epoch %d", s.Epoch)
	}
	a.wantRestorable(1, 3, 4, 5)
}

// CASES A37, A43
func TestARestartedHostTakesNothingOverForMaintenance(t *testing.T) {
	for name, row := range map[string]struct {
		other func(t *testing.T, a, b *bench)
		want  error // nil = any
	}{
		"activated elsewhere": {func(t *testing.T, _, b *bench) {
			if _, err := b.worker().Claim(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, nil},
		"gone on with elsewhere": {func(_ *testing.T, _, b *bench) {
			b.inherit()
			b.mustPush(b.worker(), b.publish(5, map[string]string{"f": "b"}), Periodic)
		}, nil},
		"activated elsewhere at the very moment": {func(t *testing.T, a, b *bench) {
			a.store.Before = func(ctx context.Context, c sdktest.Call) error {
				if c.Op == "put" && c.Key == repository.EpochKey("strikes", 2) {
					a.heal()
					if _, err := b.worker().Claim(ctx); err != nil {
						t.Error(err)
					}
				}
				return nil
			}
		}, ErrNoEpoch},
		"nothing is there": {func(_ *testing.T, _, b *bench) { b.wipe() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := newBench(t)
			a.pushes(a.worker(), 1, 4)
			row.other(t, a, newBenchOn(t, a.mem, "beta"))
			w := a.restart()
			err := w.Resume(t.Context(), a.stands(4))
			if err == nil || row.want != nil && !errors.Is(err, row.want) {
				t.Fatalf("error %v", err)
			}
			if _, pinned := w.Pin(t.Context(), PinRequest{Name: "p", Commit: 2}); pinned == nil {
				t.Error("it pins all the same")
			}
			if _, mine := a.mem.Content(repository.EpochKey("strikes", 3)); mine {
				t.Error("an epoch above the other's was claimed")
			}
		})
	}
}

func TestAClaimForMaintenanceWhoseAnswerIsLostIsGoneOnWith(t *testing.T) {
	a := newBench(t)
	a.pushes(a.worker(), 1, 2)
	w := a.restart()
	a.failOn("put", "strikes/epoch/", 1, sdk.Unavailable, true)
	if err := w.Resume(t.Context(), a.stands(2)); err == nil {
		t.Fatal("no error")
	}
	a.heal()
	a.mustPush(w, a.publish(3, map[string]string{"f": "3"}), Periodic)
	if s := w.Status(); s.Epoch != 2 {
		t.Errorf("epoch %d", s.Epoch)
	}
	if err := w.Resume(t.Context(), a.stands(3)); err != nil {
		t.Fatal(err)
	}
	checkLine(t, a, "after it")
}
