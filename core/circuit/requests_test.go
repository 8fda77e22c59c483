package circuit

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/trigger"
)

func mustCheckpoint(t *testing.T, l *Loop) CheckpointRequest {
	t.Helper()
	r, err := l.RequestCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustSync(t *testing.T, l *Loop, target string) SyncRequest {
	t.Helper()
	r, err := l.RequestSync(target)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestARequestIsNotAnsweredByAnOlderCheckpoint(t *testing.T) { // ancestor 10
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil)
		r.disk.takes = time.Minute
		r.start()
		r.engine.feed(1)
		synctest.Wait()
		first := mustCheckpoint(t, r.loop)
		sleep(10 * time.Second)
		r.engine.feed(1)
		synctest.Wait()
		second := mustCheckpoint(t, r.loop)
		sleep(50 * time.Second)
		expect(t, "first", answered(t, first.Done), nil)
		unanswered(t, second.Done)
		expect(t, "success", r.loop.Status().Checkpoint.Success, first.Sequence)
		sleep(time.Minute)
		expect(t, "second", answered(t, second.Done), nil)
		made := r.disk.published()
		expect(t, "checkpoints", len(made), 2)
		expect(t, "step of the second", made[1].Step, 2)
	})
}

func TestAStepThatCommitsAfterTheRequestCameIsCovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil)
		r.disk.takes = 20 * time.Second
		r.start()
		r.engine.feed(1)
		synctest.Wait()
		older := mustCheckpoint(t, r.loop)
		synctest.Wait()
		r.engine.change(func(e *engine) { e.stepping = func(ctx context.Context) error { return pass(ctx, time.Minute) } })
		r.engine.feed(1)
		sleep(10 * time.Second)
		during := mustCheckpoint(t, r.loop) // inside step 2, while step 1 is written
		sleep(20 * time.Second)
		expect(t, "older", answered(t, older.Done), nil)
		unanswered(t, during.Done)
		sleep(time.Minute)
		expect(t, "during", answered(t, during.Done), nil)
		expect(t, "published step", r.loop.Status().Checkpoint.Published.Step, 2)
	})
}

func TestARequestThatComesDuringALookIsNotJudgedByIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil).start()
		r.checkpoint()
		var asked CheckpointRequest
		r.engine.change(func(e *engine) {
			e.looking = func() { // step 1 was read and is published; step 2 is committed before the request comes
				e.change(func(e *engine) { e.facts.Step = 2 })
				asked = mustCheckpoint(t, r.loop)
			}
		})
		synctest.Wait()
		expect(t, "answer", answered(t, asked.Done), nil)
		expect(t, "published step", r.loop.Status().Checkpoint.Published.Step, 2)
	})
}

func TestWaitingCheckpointRequestsShareOneCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil).start()
		r.engine.change(func(e *engine) { e.facts.Blocked = "transaction open" })
		r.engine.feed(1)
		var asked []CheckpointRequest
		for i := range 5 {
			asked = append(asked, mustCheckpoint(t, r.loop))
			expect(t, "sequence", asked[i].Sequence, uint64(i+1))
		}
		sleep(time.Minute)
		expect(t, "waiting", len(r.loop.Status().Checkpoint.Waiting), 5)
		expect(t, "blocked", r.loop.Status().Blocked, "transaction open")
		r.engine.change(func(e *engine) { e.facts.Blocked = "" })
		for _, a := range asked {
			expect(t, "answer", answered(t, a.Done), nil)
		}
		expect(t, "checkpoints", len(r.disk.published()), 1)
		expect(t, "success", r.loop.Status().Checkpoint.Success, 5)
		again := mustCheckpoint(t, r.loop)
		expect(t, "answer without a change", answered(t, again.Done), nil)
		expect(t, "checkpoints without a change", len(r.disk.published()), 1)
	})
}

func TestAFailureAnswersOnlyTheRequestsKnownWhenItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil)
		var attempts atomic.Int64
		r.disk.writing = func(ctx context.Context) error {
			if attempts.Add(1) > 1 {
				return nil
			}
			return errors.Join(pass(ctx, time.Minute), errPlanted)
		}
		r.start()
		r.engine.feed(1)
		synctest.Wait()
		first := mustCheckpoint(t, r.loop)
		sleep(10 * time.Second)
		second := mustCheckpoint(t, r.loop)
		sleep(50 * time.Second)
		if err := answered(t, first.Done); !errors.Is(err, errPlanted) {
			t.Errorf("first answered %v", err)
		}
		expect(t, "second", answered(t, second.Done), nil)
		s := r.loop.Status().Checkpoint
		expect(t, "success", s.Success, second.Sequence)
		expect(t, "failure", *s.Failure, CheckpointFailure{Sequence: first.Sequence, Error: "planted", FailedAt: time.Now()})
	})
}

func TestACheckpointerThatNamesTheWrongStateHasFailed(t *testing.T) {
	for name, wrong := range map[string]trigger.Checkpoint{"no id": {Step: 1}, "wrong step": {ID: id(1), Step: 9}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 0, nil, func(c *Config) { c.Checkpointer = liar{wrong} }).start()
				r.engine.feed(1)
				synctest.Wait()
				asked := mustCheckpoint(t, r.loop)
				if answered(t, asked.Done) == nil {
					t.Error("answered well")
				}
				expect(t, "published", r.loop.Status().Checkpoint.Published.ID, uuid.Nil)
			})
		})
	}
}

type liar struct{ answer trigger.Checkpoint }

func (l liar) Write(context.Context, Snapshot) (trigger.Checkpoint, error) { return l.answer, nil }

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
		if err := answered(t, asked.Done); !errors.Is(err, errPlanted) || err.Error() != "sync to b: planted" {
			t.Errorf("answered %v", err)
		}
		sleep(24 * time.Hour)
		expect(t, "jobs on b", len(r.stores[1].done()), 1)
		s := r.loop.Status()
		expect(t, "success", s.Sync.Success, uuid.Nil)
		expect(t, "failure", *s.Sync.Failure, SyncFailure{Checkpoint: made.ID, Error: "sync to b: planted"})
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
		r.stores[0].state.Held = true
		r.start()
		made := r.checkpoint()
		asked := mustSync(t, r.loop, "")
		if err := answered(t, asked.Done); !errors.Is(err, ErrHeld) {
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

func TestRequestsThatCannotBeServedSayWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lone := newRig(t, 0, nil).start()
		_, err := lone.loop.RequestSync("")
		expect(t, "no sync block", err, ErrNoTarget)
		expect(t, "wait without a sync block", lone.loop.WaitCommit(t.Context(), 0), ErrNoTarget)
		r := newRig(t, 0, []time.Duration{0}).start()
		_, err = r.loop.RequestSync("")
		expect(t, "nothing published", err, ErrNothingToSync)
		_, err = r.loop.RequestSync("elsewhere")
		expect(t, "unknown target", err.Error(), `unknown target "elsewhere": the pipeline has no sync block for it`)
	})
}

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

func TestStepRequestsShareOneStepAndWaitForTheEndOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil, func(c *Config) { c.Paused = true }).start()
		first, err := r.loop.RequestStep()
		expect(t, "first", err, nil)
		second, err := r.loop.RequestStep()
		expect(t, "second", err, nil)
		unanswered(t, first)
		if err := r.loop.Resume(); err != nil {
			t.Fatal(err)
		}
		expect(t, "first answer", answered(t, first), nil)
		expect(t, "second answer", answered(t, second), nil)
		expect(t, "steps", r.loop.Status().Totals.Steps, 1)
	})
}

func TestAStepRequestWakesAnIdleLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil).start()
		done, err := r.loop.RequestStep()
		expect(t, "request", err, nil)
		expect(t, "answer", answered(t, done), nil)
		expect(t, "step", r.loop.Status().Totals, Totals{Steps: 1})
	})
}

func TestWaitsEndWhenTheirStepIsSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0, 0}).start()
		checkpointed, committed := make(chan error, 1), make(chan error, 1)
		go func() { checkpointed <- r.loop.WaitCheckpoint(t.Context(), 2) }()
		go func() { committed <- r.loop.WaitCommit(t.Context(), 2) }()
		r.checkpoint() // step 1
		unanswered(t, checkpointed)
		r.checkpoint() // step 2
		expect(t, "checkpoint", answered(t, checkpointed), nil)
		mustSync(t, r.loop, "a")
		unanswered(t, committed)
		mustSync(t, r.loop, "b")
		expect(t, "commit", answered(t, committed), nil)
		expect(t, "checkpoint of an earlier step", r.loop.WaitCheckpoint(t.Context(), 1), nil)
		expect(t, "commit of an earlier step", r.loop.WaitCommit(t.Context(), 1), nil)
	})
}

func TestAWaitEndsWithItsContextOrWithTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0}).start()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		expect(t, "timed out", r.loop.WaitCheckpoint(ctx, 9), context.DeadlineExceeded)
		expect(t, "waiters left", len(r.loop.book.waiters), 0)
		done := make(chan error, 2)
		go func() { done <- r.loop.WaitCommit(t.Context(), 9) }()
		synctest.Wait()
		r.cancel()
		expect(t, "at exit", answered(t, done), ErrStopped)
		expect(t, "after exit", r.loop.WaitCheckpoint(t.Context(), 9), ErrStopped)
	})
}

func TestWhatAnEarlierRunCommittedCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0}, func(c *Config) { c.Restored = trigger.Checkpoint{ID: id(3), Step: 30, At: time.Now()} })
		r.engine.facts.Step = 30
		r.disk.next = 3
		r.stores[0].state.Committed = id(3)
		r.start()
		expect(t, "commit of the restored step", r.loop.WaitCommit(t.Context(), 30), nil)
		r.checkpoint()
		expect(t, "commit once a newer one is published", r.loop.WaitCommit(t.Context(), 30), nil)
	})
}

func TestEveryRequestIsAnsweredExactlyOnceAtExit(t *testing.T) {
	for name, exit := range map[string]func(*rig){
		"cancelled":               func(r *rig) { r.cancel() },
		"stopped at once":         func(r *rig) { _ = r.loop.Stop(false) },
		"stopped with checkpoint": func(r *rig) { _ = r.loop.Stop(true) },
		"failed": func(r *rig) {
			_ = r.loop.Resume()
			r.engine.change(func(e *engine) {
				e.facts.Phase = Replaying
				e.stepping = func(context.Context) error { return errPlanted }
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 0, []time.Duration{0, 0}, func(c *Config) { c.ShutdownTimeout = time.Minute })
				r.start()
				r.checkpoint()
				if err := r.loop.Pause(); err != nil {
					t.Fatal(err)
				}
				r.disk.change(func(d *disk) { d.takes = time.Hour })
				r.stores[0].change(func(s *store) { s.takes = time.Hour })
				var open []<-chan error
				for range 3 {
					open = append(open, mustSync(t, r.loop, "").Done, mustSync(t, r.loop, "a").Done)
					step, err := r.loop.RequestStep()
					expect(t, "step", err, nil)
					open = append(open, step)
					synctest.Wait() // the first are running, the others wait
				}
				r.engine.change(func(e *engine) { e.facts.Step++ })
				for range 3 {
					open = append(open, mustCheckpoint(t, r.loop).Done)
					synctest.Wait()
				}
				exit(r)
				err := r.end()
				for i, done := range open {
					got := answered(t, done)
					if failed := name == "failed" && errors.Is(got, errPlanted); !failed && !errors.Is(got, ErrStopped) {
						t.Errorf("request %d answered %v", i, got)
					}
				}
				s := r.loop.Status()
				expect(t, "waiting", len(s.Checkpoint.Waiting), 0)
				expect(t, "failed sequence", s.Checkpoint.Failure.Sequence, 4)
				for _, refuse := range []func() error{
					func() error { _, err := r.loop.RequestCheckpoint(); return err },
					func() error { _, err := r.loop.RequestSync(""); return err },
					func() error { _, err := r.loop.RequestStep(); return err },
					r.loop.Pause, r.loop.Resume,
					func() error { return r.loop.Stop(true) },
				} {
					if got := refuse(); !errors.Is(got, ErrStopped) || name == "failed" && !errors.Is(got, err) {
						t.Errorf("request after the end answered %v", got)
					}
				}
			})
		})
	}
}
