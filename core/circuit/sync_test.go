package circuit

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

func mustSync(t *testing.T, l *Loop, target string) SyncRequest {
	t.Helper()
	r, err := l.RequestSync(target)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSyncRequestsAreServedInTheOrderAskedAndNeverSuperseded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0, 0})
		r.stores[0].takes = time.Hour
		r.start()
		var asked []SyncRequest
		for range 4 {
			r.checkpoint()
			asked = append(asked, mustSync(t, r.loop, "a"))
		}
		sleep(time.Minute)
		s := r.loop.Status()
		expect(t, "running", s.Targets[0].Running.Checkpoint, id(1))
		expect(t, "running kind", s.Targets[0].Running.Trigger, PushRequested)
		expect(t, "queue", len(s.Targets[0].Asked), 3)
		expect(t, "sync running", s.Sync.Running, id(1))
		sleep(5 * time.Hour)
		for i, job := range r.stores[0].done() {
			expect(t, "pushed", job.Checkpoint, id(uint64(i+1)))
			expect(t, "answer", answered(t, asked[i].Done), nil)
			expect(t, "asked", asked[i].Checkpoint, id(uint64(i+1)))
		}
		expect(t, "jobs", len(r.stores[0].done()), 4)
		expect(t, "jobs elsewhere", len(r.stores[1].done()), 0)
		expect(t, "success", r.loop.Status().Sync.Success, id(4))
	})
}

func TestWaitingSyncRequestsForOneCheckpointShareAPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0})
		r.stores[0].takes = time.Hour
		r.start()
		r.checkpoint()
		running := mustSync(t, r.loop, "")
		synctest.Wait()
		first, second := mustSync(t, r.loop, ""), mustSync(t, r.loop, "a")
		sleep(time.Hour)
		expect(t, "running", answered(t, running.Done), nil)
		unanswered(t, first.Done)
		sleep(time.Hour)
		expect(t, "first", answered(t, first.Done), nil)
		expect(t, "second", answered(t, second.Done), nil)
		expect(t, "jobs", len(r.stores[0].done()), 2)
	})
}

func TestARequestedSyncThatFailsIsReportedAndNotStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0, 0})
		r.stores[1].pushing = func(context.Context, PushJob) error { return errPlanted }
		r.start()
		made := r.checkpoint()
		asked := mustSync(t, r.loop, "")
		failedAt := time.Now()
		if err := answered(t, asked.Done); !errors.Is(err, errPlanted) || err.Error() != "sync to b: planted" {
			t.Errorf("answered %v", err)
		}
		sleep(24 * time.Hour)
		expect(t, "jobs on b", len(r.stores[1].done()), 1)
		s := r.loop.Status()
		expect(t, "success", s.Sync.Success, uuid.Nil)
		expect(t, "failure", *s.Sync.Failure, SyncFailure{Checkpoint: made.ID, Error: "sync to b: planted", At: failedAt})
		expect(t, "result on a", s.Targets[0].Requested.Error, "")
		expect(t, "result on b", s.Targets[1].Requested.Error, "planted")
		expect(t, "failures in a row", s.Targets[1].Failures, 0)

		r.stores[1].change(func(s *store) { s.pushing, s.takes = nil, time.Minute })
		again := mustSync(t, r.loop, "b")
		synctest.Wait()
		expect(t, "failure once a request for it starts", r.loop.Status().Sync.Failure, nil)
		sleep(time.Minute)
		expect(t, "again", answered(t, again.Done), nil)
		expect(t, "success afterwards", r.loop.Status().Sync.Success, made.ID)
	})
}

func TestAFencedTargetIsReportedAndDoesNotHoldBackSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0, 0})
		r.stores[1].pushing = func(context.Context, PushJob) error {
			r.stores[1].change(func(s *store) { s.state.Fenced = true })
			return errPlanted
		}
		r.start()
		first := r.checkpoint()
		asked := mustSync(t, r.loop, "")
		if err := answered(t, asked.Done); !errors.Is(err, errPlanted) || !errors.Is(err, ErrFenced) {
			t.Errorf("answered %v", err)
		}
		s := r.loop.Status()
		expect(t, "success", s.Sync.Success, first.ID)
		expect(t, "failure", s.Sync.Failure, nil)
		expect(t, "fenced", s.Targets[1].Fenced, true)
		asked = mustSync(t, r.loop, "b")
		if err := answered(t, asked.Done); !errors.Is(err, ErrFenced) {
			t.Errorf("fenced target answered %v", err)
		}
		expect(t, "jobs on the fenced target", len(r.stores[1].done()), 1)
		expect(t, "failure of a request to the fenced one alone", r.loop.Status().Sync.Failure.Checkpoint, first.ID)
	})
}

func TestARequestToAHeldTargetIsAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{time.Second})
		r.stores[0].state.Held, r.stores[0].state.Reason = true, "commit 7 is not ours"
		r.start()
		made := r.checkpoint()
		asked := mustSync(t, r.loop, "")
		if err := answered(t, asked.Done); !errors.Is(err, ErrHeld) || !strings.HasSuffix(err.Error(), ": commit 7 is not ours") {
			t.Errorf("answered %v", err)
		}
		sleep(time.Hour)
		expect(t, "jobs while held", len(r.stores[0].done()), 0)
		expect(t, "next periodic while held", r.loop.Status().Targets[0].NextPeriodic.IsZero(), true)
		r.stores[0].change(func(s *store) { s.state.Held = false })
		r.loop.Wake()
		synctest.Wait()
		expect(t, "pushed once adopted", r.stores[0].State().Committed, made.ID)
	})
}

// CASES A6
func TestAWaitingSyncPinsItsCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pins atomic.Int64
		r := newRig(t, 0, []time.Duration{0, 0}, func(c *Config) {
			c.Pin = func(uuid.UUID) (func(), error) {
				pins.Add(1)
				return func() { pins.Add(-1) }, nil
			}
		})
		r.stores[0].takes, r.stores[1].takes = time.Minute, time.Hour
		r.start()
		r.checkpoint()
		mustSync(t, r.loop, "")
		sleep(30 * time.Minute)
		expect(t, "pins while one target is at work", pins.Load(), 1)
		sleep(time.Hour)
		expect(t, "pins afterwards", pins.Load(), 0)
		r.stores[0].change(func(s *store) { s.state.Held = true })
		asked := mustSync(t, r.loop, "a")
		if err := answered(t, asked.Done); !errors.Is(err, ErrHeld) {
			t.Errorf("answered %v", err)
		}
		expect(t, "pins after a refusal", pins.Load(), 0)
		r.checkpoint()
		mustSync(t, r.loop, "b")
		mustSync(t, r.loop, "b")
		synctest.Wait()
		r.cancel()
		<-r.ended
		expect(t, "pins at exit", pins.Load(), 0)
	})
}

func TestACheckpointThatIsCollectedBeforeItIsPinnedGivesWayToTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = newRig(t, 0, []time.Duration{0}, func(c *Config) {
			c.Pin = func(wanted uuid.UUID) (func(), error) {
				if wanted == id(1) {
					r.checkpoint()
					return nil, errPlanted
				}
				return func() {}, nil
			}
		}).start()
		r.checkpoint()
		expect(t, "synced", mustSync(t, r.loop, "").Checkpoint, id(2))
	})
}

func TestAPinThatFailsForTheNewestIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0}, func(c *Config) {
			c.Pin = func(uuid.UUID) (func(), error) { return nil, errPlanted }
		}).start()
		r.checkpoint()
		if _, err := r.loop.RequestSync(""); !errors.Is(err, errPlanted) {
			t.Errorf("answered %v", err)
		}
	})
}
