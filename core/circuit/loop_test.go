package circuit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/trigger"
)

func TestAnIdleLoopNeitherSpinsNorWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Second, []time.Duration{time.Second}).start()
		r.checkpoint()
		sleep(time.Minute)
		before := r.looks.Load()
		sleep(365 * 24 * time.Hour)
		expect(t, "looks in a year without input", r.looks.Load()-before, 0)
		expect(t, "checkpoints", len(r.disk.published()), 1)
		expect(t, "pushes", len(r.stores[0].done()), 1)
	})
}

func TestADuePushOnAnIdlePipelineStartsOnTime(t *testing.T) { // ancestor 1
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{10 * time.Minute}).start()
		begun := time.Now()
		r.checkpoint()
		sleep(time.Hour)
		jobs := r.stores[0].done()
		expect(t, "pushes", len(jobs), 1)
		expect(t, "started after", jobs[0].begun.Sub(begun), 10*time.Minute)
	})
}

func TestADueCheckpointThatIsRunningDoesNotSpin(t *testing.T) { // ancestor 2
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Second, nil)
		r.disk.takes = time.Hour
		r.start()
		r.engine.feed(1)
		sleep(time.Minute)
		before := r.looks.Load()
		r.engine.feed(1) // due again while the first is written
		sleep(30 * time.Minute)
		if looks := r.looks.Load() - before; looks > 3 {
			t.Errorf("%d looks for one step", looks)
		}
		expect(t, "attempts", len(r.disk.begun), 1)
	})
}

func TestAFailedPushIsNotTheLastSyncAndIsRetriedWithGrowingWaits(t *testing.T) { // ancestor 3, 4
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{time.Minute})
		broken := true
		r.stores[0].pushing = func(context.Context, PushJob) error {
			if broken {
				return errPlanted
			}
			return nil
		}
		r.start()
		made := r.checkpoint()
		sleep(10 * time.Minute)
		s := r.loop.Status()
		expect(t, "committed while failing", s.Targets[0].Committed, uuid.Nil)
		expect(t, "periodic while failing", s.Sync.Periodic, uuid.Nil)
		expect(t, "periodic failure", s.Sync.PeriodicFailure.Error, "planted")
		expect(t, "periodic result", s.Targets[0].Periodic.Error, "planted")
		failures := r.stores[0].done()
		expect(t, "failures in a row", s.Targets[0].Failures, len(failures))
		expect(t, "announced retry", s.Targets[0].NextPeriodic, s.Until)
		if len(failures) < 8 || len(failures) > 25 {
			t.Errorf("%d attempts in nine minutes with waits of 1 s to 1 min", len(failures))
		}
		r.stores[0].change(func(*store) { broken = false })
		sleep(time.Until(s.Until))
		s = r.loop.Status()
		expect(t, "periodic after recovery", s.Sync.Periodic, made.ID)
		expect(t, "failure after recovery", s.Sync.PeriodicFailure, nil)
		expect(t, "failures after recovery", s.Targets[0].Failures, 0)
	})
}

func TestARequestedSyncDoesNotMoveThePeriodicTimer(t *testing.T) { // ancestor 5
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{10 * time.Minute}).start()
		start := time.Now()
		first := r.checkpoint()
		sleep(4 * time.Minute)
		asked, err := r.loop.RequestSync("")
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "answer", answered(t, asked.Done), nil)
		s := r.loop.Status()
		expect(t, "success", s.Sync.Success, first.ID)
		expect(t, "periodic", s.Sync.Periodic, uuid.Nil)
		expect(t, "next periodic", s.Targets[0].NextPeriodic, start.Add(10*time.Minute))
		second := r.checkpoint()
		sleep(7 * time.Minute)
		jobs := r.stores[0].done()
		expect(t, "pushes", len(jobs), 2)
		expect(t, "periodic start", jobs[1].begun, start.Add(10*time.Minute))
		s = r.loop.Status()
		expect(t, "success afterwards", s.Sync.Success, first.ID)
		expect(t, "periodic afterwards", s.Sync.Periodic, second.ID)
	})
}

func TestAFailedCheckpointLeavesTheLastGoodOne(t *testing.T) { // ancestor 6
	for name, plant := range map[string]func(*rig){
		"write": func(r *rig) {
			r.disk.change(func(d *disk) { d.writing = func(context.Context) error { return errPlanted } })
		},
		"snapshot": func(r *rig) { r.engine.change(func(e *engine) { e.pinning = func() error { return errPlanted } }) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 0, []time.Duration{0}).start()
				good := r.checkpoint()
				plant(r)
				r.engine.feed(1)
				synctest.Wait()
				asked, err := r.loop.RequestCheckpoint()
				if err != nil {
					t.Fatal(err)
				}
				if err := answered(t, asked.Done); !errors.Is(err, errPlanted) {
					t.Errorf("answered %v", err)
				}
				s := r.loop.Status()
				expect(t, "published", s.Checkpoint.Published, good)
				expect(t, "success", s.Checkpoint.Success, 1)
				expect(t, "failed sequence", s.Checkpoint.Failure.Sequence, asked.Sequence)
				expect(t, "failed at", s.Checkpoint.Failure.FailedAt, time.Now())
				sync, err := r.loop.RequestSync("")
				expect(t, "sync error", err, nil)
				expect(t, "synced", sync.Checkpoint, good.ID)
			})
		})
	}
}

func TestARestoredCheckpointIsKnownAndItsTimerGoesOn(t *testing.T) { // ancestor 7
	synctest.Test(t, func(t *testing.T) {
		restored := trigger.Checkpoint{ID: id(7), Step: 40, At: time.Now().Round(0).Add(-6 * time.Minute)}
		r := newRig(t, 10*time.Minute, []time.Duration{time.Hour}, func(c *Config) { c.Restored = restored })
		r.engine.facts.Step = 40
		r.disk.next = 7
		r.stores[0].state = PushState{PeriodicAt: time.Now().Round(0).Add(-50 * time.Minute)}
		r.start()
		start := time.Now()
		expect(t, "published", r.loop.Status().Checkpoint.Published, restored)
		asked, err := r.loop.RequestCheckpoint()
		expect(t, "request error", err, nil)
		expect(t, "answer by the restored one", answered(t, asked.Done), nil)
		sleep(time.Minute)
		r.engine.feed(1)
		sleep(time.Hour)
		expect(t, "checkpoint begins", r.disk.begun[0].Sub(start), 4*time.Minute)
		expect(t, "push begins", r.stores[0].done()[0].begun.Sub(start), 10*time.Minute)
	})
}

func TestATimeFromTheFutureWaitsOneIntervalAndNoMore(t *testing.T) { // ancestor 8
	synctest.Test(t, func(t *testing.T) {
		future := time.Now().Round(0).Add(1000 * time.Hour)
		r := newRig(t, 10*time.Minute, []time.Duration{time.Hour, 1<<63 - 1}, func(c *Config) {
			c.Restored = trigger.Checkpoint{ID: id(1), Step: 1, At: future}
		})
		r.disk.next = 1
		r.engine.facts.Step = 2
		r.stores[0].state = PushState{PeriodicAt: future, FailedAt: future, Failures: 3}
		r.start()
		start := time.Now()
		sleep(2 * time.Hour)
		expect(t, "checkpoint begins", r.disk.begun[0].Sub(start), 10*time.Minute)
		expect(t, "push begins", r.stores[0].done()[0].begun.Sub(start), time.Hour)
		expect(t, "pushes in 292 years' interval", len(r.stores[1].done()), 0)
		if r.looks.Load() > 20 {
			t.Errorf("%d looks", r.looks.Load())
		}
	})
}

func TestTimersFireWhilePausedAndDuringALongReplay(t *testing.T) { // ancestor 9
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{10 * time.Second}).start()
		start := time.Now()
		made := r.checkpoint()
		r.engine.change(func(e *engine) {
			e.facts.Phase, e.facts.Blocked = Replaying, "replaying"
			e.stepping = func(ctx context.Context) error { return pass(ctx, time.Second) }
		})
		sleep(11 * time.Second)
		expect(t, "pushed during the replay", r.stores[0].State().Committed, made.ID)
		if late := r.stores[0].done()[0].begun.Sub(start) - 10*time.Second; late > time.Second {
			t.Errorf("the push began %v late: more than one step", late)
		}
		r.engine.change(func(e *engine) { e.facts.Phase, e.facts.Blocked, e.stepping = Running, "", nil })
		sleep(time.Second)
		second := r.checkpoint()
		if err := r.loop.Pause(); err != nil {
			t.Fatal(err)
		}
		steps := len(r.engine.steps)
		r.engine.feed(100)
		sleep(time.Minute)
		expect(t, "steps while paused", len(r.engine.steps), steps)
		expect(t, "state", r.loop.Status().State, StatePaused)
		expect(t, "pushed while paused", r.stores[0].State().Committed, second.ID)
		if err := r.loop.Resume(); err != nil {
			t.Fatal(err)
		}
		sleep(0)
		expect(t, "steps after the pause", len(r.engine.steps), steps+1)
	})
}

// CASES A7
func TestStepsGoOnAtOnceWhileAPushTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Second, []time.Duration{time.Second})
		r.stores[0].takes = time.Hour
		r.start()
		r.checkpoint()
		sleep(2 * time.Second) // the push is running
		before := len(r.engine.steps)
		arrived := time.Now()
		r.engine.change(func(e *engine) { e.facts.Buffered = 1 })
		synctest.Wait()
		expect(t, "steps while the push runs", len(r.engine.steps), before+1)
		expect(t, "the step waited", r.engine.steps[before].Sub(arrived), 0)
	})
}
