package circuit

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/trigger"
)

func TestStatusIsReadableInEveryState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := SyncSummary{Success: id(3), Periodic: id(4), Failure: &SyncFailure{Checkpoint: id(2), Error: "old"}}
		r := newRig(t, time.Minute, []time.Duration{time.Minute}, func(c *Config) {
			c.LastSync = last
			c.Restored = trigger.Checkpoint{ID: id(4), Step: 2, At: time.Now()}
			c.Paused = true
		})
		s := r.loop.Status()
		expect(t, "before Run", s.State, StateStarting)
		expect(t, "incarnation", s.Incarnation, id(1<<40))
		expect(t, "success of the last run", s.Sync.Success, last.Success)
		expect(t, "periodic of the last run", s.Sync.Periodic, last.Periodic)
		expect(t, "failure of the last run", *s.Sync.Failure, *last.Failure)
		expect(t, "next periodic before Run", s.Targets[0].NextPeriodic.IsZero(), true)
		r.start()
		expect(t, "paused from the start", r.loop.Status().State, StatePaused)
		_ = r.loop.Resume()
		synctest.Wait()
		s = r.loop.Status()
		expect(t, "running", s.State, StateRunning)
		expect(t, "doing", s.Doing, "park")
		expect(t, "why", s.Why, trigger.WhyAwaitPush)
		expect(t, "until", s.Until, s.Targets[0].NextPeriodic)
		_ = r.loop.Stop(false)
		expect(t, "Run", r.end(), nil)
		expect(t, "after Run", r.loop.Status().State, StateStopped)
		expect(t, "success after Run", r.loop.Status().Sync.Success, last.Success)
	})
}

func TestThePhasesAreThoseOfTheTrigger(t *testing.T) {
	for ours, its := range map[Phase]trigger.Phase{
		Running: trigger.Running, Replaying: trigger.Replaying, Bootstrapping: trigger.Bootstrapping,
	} {
		expect(t, "phase", trigger.Phase(ours), its)
	}
}

func TestStatusBeforeTheFirstLookTellsTheStepThatWasOpened(t *testing.T) {
	r := newRig(t, time.Second, nil, func(c *Config) { c.Opened = Facts{Step: 6} })
	expect(t, "step", r.loop.Status().Step, uint64(6))
}

func TestStatusSharesNothingWithTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{time.Second})
		r.stores[0].pushing = func(context.Context, PushJob) error { return errPlanted }
		r.start()
		r.checkpoint()
		sleep(1500 * time.Millisecond)
		taken, kept := r.loop.Status(), r.loop.Status()
		taken.Sync.PeriodicFailure.Error = "scribble"
		taken.Targets[0].Periodic.Error = "scribble"
		taken.Checkpoint.Last.Step = 99
		if now := r.loop.Status(); !reflect.DeepEqual(now, kept) {
			t.Errorf("status changed from\n%+v to\n%+v", kept, now)
		}
	})
}

func TestPeriodicMovesWhenEveryTargetHasTheCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{10 * time.Second, 10 * time.Second, 0})
		r.stores[1].takes = time.Minute
		r.start()
		periodic := func() uuid.UUID { synctest.Wait(); return r.loop.Status().Sync.Periodic }
		r.checkpoint() // 1
		sleep(11 * time.Second)
		expect(t, "with a alone", periodic(), uuid.Nil)
		for range 5 {
			r.checkpoint() // 2 to 6, which a takes while b is at work on 1
			sleep(10 * time.Second)
		}
		expect(t, "a", r.stores[0].State().Committed, id(6))
		expect(t, "still with a alone", periodic(), uuid.Nil)
		sleep(10 * time.Second)
		expect(t, "once b has 1 too", periodic(), id(1))
		sleep(80 * time.Second)
		expect(t, "once b has 6", periodic(), id(6))
		if kept := len(r.loop.book.commits); kept > 2 {
			t.Errorf("%d checkpoints remembered", kept)
		}

		r.stores[1].change(func(s *store) { s.state.Fenced = true })
		r.checkpoint() // 7
		sleep(20 * time.Second)
		expect(t, "once b is fenced", periodic(), id(7))
	})
}

func TestPeriodicCountsWhatARequestHasBroughtThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{10 * time.Second, 10 * time.Second}).start()
		r.checkpoint()
		mustSync(t, r.loop, "b")
		sleep(time.Minute)
		s := r.loop.Status()
		expect(t, "periodic", s.Sync.Periodic, id(1))
		expect(t, "success", s.Sync.Success, id(1))
		expect(t, "periodic pushes on b", len(r.stores[1].done()), 1)
	})
}

func TestSyncStatusIsSavedAfterEachPushAndCarriesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saved []SyncSummary // one call at a time
		r := newRig(t, 0, []time.Duration{10 * time.Second, 0}, func(c *Config) {
			c.SaveSync = func(s SyncSummary) { saved = append(saved, s) }
		})
		r.stores[1].takes = 5 * time.Second
		r.start()
		r.checkpoint()
		mustSync(t, r.loop, "")
		sleep(6 * time.Second)
		expect(t, "running, as saved while b is at work", saved[0].Running, uuid.Nil)
		r.checkpoint()
		sleep(time.Minute)
		_ = r.loop.Stop(false)
		expect(t, "Run", r.end(), nil)
		expect(t, "saved", len(saved), 3)
		expect(t, "last saved", saved[2], SyncSummary{Success: id(1), Periodic: id(2)})
		next := newRig(t, 0, []time.Duration{0, 0}, func(c *Config) { c.LastSync = saved[2] }).start()
		expect(t, "success in the next run", next.loop.Status().Sync, saved[2])
	})
}

func TestAPeriodicFailureIsShownUntilPeriodicMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{10 * time.Second, 10 * time.Second})
		failing := true
		r.stores[1].pushing = func(context.Context, PushJob) error {
			if failing {
				return errPlanted
			}
			return nil
		}
		r.start()
		r.checkpoint()
		sleep(15 * time.Second)
		expect(t, "failure", *r.loop.Status().Sync.PeriodicFailure, SyncFailure{Checkpoint: id(1), Error: "planted", At: r.loop.Status().Targets[1].Periodic.Ended})
		r.stores[1].change(func(*store) { failing = false })
		sleep(time.Minute)
		expect(t, "failure afterwards", r.loop.Status().Sync.PeriodicFailure, nil)
		expect(t, "periodic afterwards", r.loop.Status().Sync.Periodic, id(1))
	})
}

func TestResultsAreShownWhileAStepIsRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0})
		r.stores[0].takes = 10 * time.Second
		r.start()
		made := r.checkpoint()
		asked := mustSync(t, r.loop, "")
		synctest.Wait()
		r.engine.change(func(e *engine) { e.stepping = func(ctx context.Context) error { return pass(ctx, time.Hour) } })
		r.engine.feed(1)
		sleep(10 * time.Second)
		expect(t, "answer", answered(t, asked.Done), nil)
		expect(t, "commit", r.loop.WaitCommit(t.Context(), 1), nil)
		expect(t, "success", r.loop.Status().Sync.Success, made.ID)
	})
}

func TestManyCallersAtOnceAreAllAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Second, []time.Duration{time.Second, 2 * time.Second})
		r.disk.takes, r.stores[0].takes, r.stores[1].takes = 30*time.Millisecond, 70*time.Millisecond, 110*time.Millisecond
		r.start()
		r.checkpoint()
		var mu sync.Mutex
		var open []<-chan error
		note := func(done <-chan error, err error) {
			if err != nil {
				return // refused: the loop was ending
			}
			mu.Lock()
			open = append(open, done)
			mu.Unlock()
		}
		var callers sync.WaitGroup
		for caller := range 8 {
			callers.Go(func() {
				for i := range 100 {
					time.Sleep(time.Duration(caller+1) * 7 * time.Millisecond)
					r.engine.feed(1)
					c, err := r.loop.RequestCheckpoint()
					note(c.Done, err)
					s, err := r.loop.RequestSync([]string{"", "a", "b"}[i%3])
					note(s.Done, err)
					note(r.loop.RequestStep())
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
					_ = r.loop.WaitCommit(ctx, uint64(i))
					cancel()
					_ = r.loop.Status()
					if i%10 == 0 {
						_ = r.loop.Pause()
						_ = r.loop.Resume()
					}
				}
			})
		}
		sleep(3 * time.Second)
		_ = r.loop.Stop(true)
		expect(t, "Run", r.end(), nil)
		callers.Wait()
		for _, done := range open {
			if err := answered(t, done); err != nil && !errors.Is(err, ErrStopped) {
				t.Errorf("answered %v", err)
			}
		}
		if len(open) < 500 {
			t.Errorf("only %d requests", len(open))
		}
		expect(t, "pins or waiters left", len(r.loop.book.waiters)+len(r.loop.book.owed), 0)
	})
}

func TestAConfigurationThatDoesNotFitIsRefusedWhole(t *testing.T) {
	_, err := New(Config{
		ShutdownTimeout: -1,
		Policy:          trigger.Policy{Targets: []trigger.TargetPolicy{{Name: "a"}}},
		Targets:         []Target{{Pusher: &store{name: "b"}}},
	})
	for _, part := range []string{
		"Circuit is missing", "Checkpointer is missing", "Now is missing", "Log is missing", "ShutdownTimeout is negative",
		`target 0 is named "b", its policy "a"`,
	} {
		if !strings.Contains(text(err), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	for want, c := range map[string]Config{
		"1 targets for 0 target policies": {Targets: []Target{{}}},
		"target 0 has no Pusher":          {Targets: []Target{{}}, Policy: trigger.Policy{Targets: []trigger.TargetPolicy{{}}}},
		"names are equal and unique": {
			Targets: []Target{{Pusher: &store{name: "a"}}, {Pusher: &store{name: "a"}}},
			Policy:  trigger.Policy{Targets: []trigger.TargetPolicy{{Name: "a"}, {Name: "a"}}},
		},
	} {
		if err := c.Validate(); !strings.Contains(text(err), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}
