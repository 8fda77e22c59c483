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

// A circuit that went back has requests from before for steps that it has not reached again; later ones do not wait for those.
func TestOfTheStepsThatRequestsMustCoverTheLowestDecides(t *testing.T) {
	b := newBook(Config{Restored: trigger.Checkpoint{ID: id(1), Step: 2}})
	look := func(step uint64) trigger.Facts {
		b.notice()
		b.see(Facts{Step: step}, time.Time{})
		return b.facts(time.Time{})
	}
	ahead := b.checkpoints.ask()
	expect(t, "cover of the first", look(7).CheckpointCover, 7)
	near := b.checkpoints.ask()
	facts := look(5)
	expect(t, "cover of both", facts.CheckpointCover, 5)
	next, _ := trigger.Decide(trigger.Policy{}, trigger.State{}, facts)
	expect(t, "decision", next.Kind, trigger.TakeCheckpoint)
	b.checkpoints.begin(time.Time{}, 5)
	b.checkpoints.end(time.Time{}, trigger.Checkpoint{ID: id(2), Step: 5}, nil)
	expect(t, "answers to the second", len(near.done), 1)
	expect(t, "answers to the first", len(ahead.done), 0)
	b.checkpoints.begin(time.Time{}, 8)
	b.checkpoints.end(time.Time{}, trigger.Checkpoint{ID: id(3), Step: 8}, nil)
	expect(t, "answers to the first, once its step is covered", len(ahead.done), 1)
}

func answered(t *testing.T, done <-chan error) error {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		select {
		case second := <-done:
			t.Errorf("answered twice, then with %v", second)
		default:
		}
		return err
	default:
		t.Fatal("not answered")
		return nil
	}
}

func unanswered(t *testing.T, done <-chan error) {
	t.Helper()
	synctest.Wait()
	if len(done) != 0 {
		t.Errorf("answered too early with %v", <-done)
	}
}
