package circuit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/trigger"
)

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
		err := r.loop.WaitCheckpoint(ctx, 9)
		expect(t, "timed out", errors.Is(err, context.DeadlineExceeded), true)
		expect(t, "what is waited for", err.Error(), "context deadline exceeded: no checkpoint covers step 9 yet")
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

func TestNoWaitEndsByACommitThatIsKnownToBeGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0, 0}).start()
		r.checkpoint() // step 1
		mustSync(t, r.loop, "")
		expect(t, "while it is there", r.loop.WaitCommit(t.Context(), 1), nil)
		wait := func() string {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := r.loop.WaitCommit(ctx, 1)
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrObstacle) {
				t.Errorf("got %v", err)
			}
			return err.Error()
		}

		second := r.stores[1]
		second.change(func(s *store) { s.state.Gone, s.state.Reason = true, "b: commit 7 is broken" })
		expect(t, "broken", strings.HasSuffix(wait(), ": b: commit 7 is broken"), true)
		second.change(func(s *store) { s.state.Gone, s.state.Reason = false, "" })
		expect(t, "found whole again", r.loop.WaitCommit(t.Context(), 1), nil)

		second.change(func(s *store) { s.state = PushState{Gone: true, Held: true, Reason: "b: nothing is there"} })
		expect(t, "lost", strings.HasSuffix(wait(), ": b: nothing is there"), true)
		second.change(func(s *store) { s.state = PushState{} }) // the operator has given it up
		expect(t, "given up", strings.HasSuffix(wait(), "target \"b\" holds no commit that covers step 1 yet"), true)
		expect(t, "nothing is committed", second.State().Committed, uuid.Nil)

		mustSync(t, r.loop, "b")
		expect(t, "committed anew", r.loop.WaitCommit(t.Context(), 1), nil)
	})
}

func TestAWaitForWhatCannotComeEndsAtOnceWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0, 0}).start()
		r.checkpoint()
		mustSync(t, r.loop, "a")
		change := func(state PushState) {
			r.stores[1].change(func(s *store) { s.state = state })
			r.loop.Wake()
		}
		wait := func() chan error {
			done := make(chan error, 1)
			go func() { done <- r.loop.WaitCommit(t.Context(), 1) }()
			synctest.Wait()
			return done
		}
		const why = "b wants a person"
		for _, state := range []PushState{{Fenced: true, Reason: why}, {Held: true, Reason: why}, {Refused: true, Reason: why}} {
			change(PushState{})
			early := wait()
			unanswered(t, early)
			change(state)
			for _, done := range []chan error{early, wait()} {
				if err := answered(t, done); !errors.Is(err, ErrObstacle) || !strings.HasSuffix(err.Error(), ": "+why) {
					t.Errorf("answered %v", err)
				}
			}
		}
		r.stores[1].change(func(s *store) { s.takes = time.Minute })
		mustSync(t, r.loop, "b")
		during := wait()
		unanswered(t, during) // this push may find the target mended
		sleep(time.Minute)
		r.stores[1].change(func(s *store) { s.state.Refused, s.state.Reason = false, "" })
		expect(t, "after the push", answered(t, during), nil)
	})
}

func TestAWaitForACheckpointThatCannotBePublishedEndsAtOnceWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const why = "the one target is fenced"
		r := newRig(t, 0, nil, func(c *Config) { c.Obstacle = func() string { return why } }).start()
		if err := r.loop.WaitCheckpoint(t.Context(), 1); !errors.Is(err, ErrObstacle) || !strings.HasSuffix(err.Error(), why) {
			t.Errorf("answered %v", err)
		}
	})
}
