package circuit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cairnsync/cairn/core/trigger"
)

func TestAFailedStepEndsTheLoopAfterItsJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Second, []time.Duration{time.Second})
		r.stores[0].takes = 10 * time.Second
		r.start()
		made := r.checkpoint()
		sleep(2 * time.Second) // the push is running
		r.engine.change(func(e *engine) {
			e.stepping = func(context.Context) error { return errPlanted }
			e.facts.Buffered = 1
		})
		synctest.Wait()
		s := r.loop.Status()
		expect(t, "state while the push runs", s.State, StateStopping)
		expect(t, "error while the push runs", s.Error, "step: planted")
		if _, err := r.loop.RequestCheckpoint(); !errors.Is(err, ErrStopped) {
			t.Errorf("request answered %v", err)
		}
		err := r.end()
		expect(t, "Run", err.Error(), "step: planted")
		s = r.loop.Status()
		expect(t, "state", s.State, StateFailed)
		expect(t, "error", s.Error, "step: planted")
		expect(t, "the push was committed", s.Targets[0].Committed, made.ID)
		expect(t, "attempts after the failure", len(r.disk.begun), 1)
	})
}

func TestJobsOfAFailedLoopAreCutOffAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{time.Second}, func(c *Config) { c.ShutdownTimeout = 5 * time.Second })
		r.stores[0].takes = time.Hour
		r.start()
		r.checkpoint()
		sleep(2 * time.Second)
		failed := time.Now()
		r.engine.change(func(e *engine) {
			e.stepping = func(context.Context) error { return errPlanted }
			e.facts.Buffered = 1
		})
		if err := r.end(); !errors.Is(err, errPlanted) {
			t.Errorf("Run returned %v", err)
		}
		expect(t, "ended after", time.Since(failed), 5*time.Second)
		if result := r.loop.Status().Targets[0].Periodic; !strings.Contains(result.Error, "stopped") {
			t.Errorf("push ended with %q", result.Error)
		}
	})
}

func TestAPanicInAJobIsThatJobsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0})
		r.start()
		r.checkpoint()
		r.stores[0].change(func(s *store) { s.pushing = func(context.Context, PushJob) error { panic(errPlanted) } })
		sync, err := r.loop.RequestSync("a")
		expect(t, "sync request", err, nil)
		var panicked *PanicError
		if err := answered(t, sync.Done); !errors.As(err, &panicked) || !errors.Is(err, errPlanted) {
			t.Errorf("push answered %v", err)
		}
		if !strings.Contains(string(panicked.Stack), "TestAPanicInAJob") {
			t.Error("the stack does not show the panic")
		}
		r.disk.change(func(d *disk) { d.writing = func(context.Context) error { panic("boom") } })
		r.engine.feed(1)
		synctest.Wait()
		asked, err := r.loop.RequestCheckpoint()
		expect(t, "checkpoint request", err, nil)
		expect(t, "checkpoint answer", answered(t, asked.Done).Error(), "checkpoint panicked: boom")
		expect(t, "state", r.loop.Status().State, StateRunning)
		r.disk.change(func(d *disk) { d.writing = nil })
		r.stores[0].change(func(s *store) { s.pushing = nil })
		r.checkpoint()
	})
}

func TestAPanicInTheCircuitEndsTheLoopNotTheHost(t *testing.T) {
	for name, plant := range map[string]func(*engine){
		"step":     func(e *engine) { e.stepping = func(context.Context) error { panic("boom") } },
		"snapshot": func(e *engine) { e.pinning = func() error { panic("boom") } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 0, nil)
				plant(r.engine)
				r.engine.facts.Buffered = 1
				asked, err := r.loop.RequestCheckpoint()
				expect(t, "request", err, nil)
				r.start()
				var panicked *PanicError
				if err := r.end(); !errors.As(err, &panicked) || panicked.In != name {
					t.Errorf("Run returned %v", err)
				}
				err = answered(t, asked.Done) // a snapshot of the empty state comes before the first step
				expect(t, "request failed", err != nil, name == "snapshot")
				expect(t, "state", r.loop.Status().State, StateFailed)
			})
		})
	}
}

func TestAPanicOfTheTriggerEndsTheLoopAndJoinsItsJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{time.Second})
		r.stores[0].takes = time.Hour
		decide := r.loop.decide
		r.loop.decide = func(p trigger.Policy, s trigger.State, f trigger.Facts) (trigger.Decision, trigger.State) {
			if len(f.Targets) == 1 && f.Targets[0].Busy {
				panic("boom")
			}
			return decide(p, s, f)
		}
		r.start()
		r.checkpoint()
		err := r.end()
		expect(t, "Run", err.Error(), "loop panicked: boom")
		expect(t, "jobs ended", len(r.stores[0].done()), 1)
		expect(t, "state", r.loop.Status().State, StateFailed)
	})
}

func TestTheEndOfTheContextCancelsAndJoinsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0})
		r.stores[0].takes = time.Hour
		r.start()
		r.checkpoint()
		sync, err := r.loop.RequestSync("")
		expect(t, "sync request", err, nil)
		synctest.Wait()
		r.cancel()
		if err := r.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
		if err := answered(t, sync.Done); !errors.Is(err, ErrStopped) || !errors.Is(err, context.Canceled) {
			t.Errorf("sync answered %v", err)
		}
		s := r.loop.Status()
		expect(t, "state", s.State, StateStopped)
		expect(t, "error", s.Error, "")
		expect(t, "second Run", r.loop.Run(t.Context()), ErrRunning)
	})
}

func TestAStepThatEndsWithTheContextIsNotAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil)
		r.engine.stepping = func(ctx context.Context) error { return pass(ctx, time.Hour) }
		r.start()
		done, err := r.loop.RequestStep()
		expect(t, "request", err, nil)
		synctest.Wait()
		r.cancel()
		if err := r.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
		expect(t, "state", r.loop.Status().State, StateStopped)
		if err := answered(t, done); !errors.Is(err, ErrStopped) {
			t.Errorf("step answered %v", err)
		}
	})
}
