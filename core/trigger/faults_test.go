package trigger

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// The ten ways in which the ancestor of this trigger is known to fail, and what keeps each from coming back.

// onePush is a pipeline with a checkpoint c1 at the epoch, which is to be pushed to one target 30 s later.
func onePush(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, Policy{CheckpointEvery: 10 * time.Second, Targets: []TargetPolicy{
		{Name: "offsite", PushEvery: 30 * time.Second, RetryMin: time.Second, RetryMax: time.Minute},
	}})
	w.input(1)
	w.checkpointEnds(true)
	w.run()
	return w
}

func (w *world) input(n int) {
	w.t.Helper()
	w.f.Buffered += n
	w.run()
}

func (w *world) expectParked(until time.Time, why string) {
	w.t.Helper()
	if want := parked(until, why); w.parked != want {
		w.t.Fatalf("at %s the loop answers %+v, want %+v", clock(w.f.Now), w.parked, want)
	}
}

func (w *world) expectJob(i int, id uuid.UUID) {
	w.t.Helper()
	if !w.f.Targets[i].Busy || w.jobs[i].Checkpoint != id {
		w.t.Fatalf("at %s target %d has the job %+v (busy: %v), want one for %s", clock(w.f.Now), i, w.jobs[i], w.f.Targets[i].Busy, idText(id))
	}
}

// Fault 1: the sync deadline was missing from the park deadline, and an idle pipeline pushed late or never.
func TestAnIdlePipelineParksNoLaterThanTheNextPush(t *testing.T) {
	w := onePush(t)
	w.expectParked(in(30*time.Second), WhyAwaitPush)
	w.advance(30 * time.Second)
	w.expectJob(0, c(1))
}

// Fault 2: a checkpoint that was due and already running left a past deadline in Park, and a core span.
func TestARunningCheckpointLeavesNoPastDeadline(t *testing.T) {
	w := newWorld(t, Policy{CheckpointEvery: time.Second})
	w.input(1)
	w.input(1)
	w.advance(time.Hour)
	w.expectParked(time.Time{}, WhyIdle)
	if got := w.counts[TakeCheckpoint]; got != 1 {
		t.Errorf("%d checkpoints were begun", got)
	}
}

// Fault 3: a failed push counted as the last sync; the id was never uploaded and never retried.
// CASES A2
func TestAFailedPushIsNotTheLastSync(t *testing.T) {
	w := onePush(t)
	w.advance(30 * time.Second)
	w.pushEnds(0, false)
	w.run()
	if w.f.Targets[0].Committed != uuid.Nil || !w.f.Targets[0].PeriodicAt.Equal(epoch) {
		t.Fatalf("the failure left its mark: %+v", w.f.Targets[0])
	}
	w.advance(time.Second)
	w.expectJob(0, c(1))
}

// Fault 4: then a failing push was retried at once, for ever.
func TestAFailingPushIsNotRetriedAtOnce(t *testing.T) {
	for _, p := range []TargetPolicy{
		{RetryMin: time.Second, RetryMax: time.Minute},
		{}, // not even without a retry policy
		{RetryMin: time.Minute, RetryMax: time.Second},
	} {
		p.Name, p.PushEvery = "offsite", time.Second
		w := newWorld(t, Policy{Targets: []TargetPolicy{p}})
		w.f.Published = Checkpoint{ID: c(1), Step: 1, At: epoch}
		w.run()
		for n := 1; n <= 20; n++ {
			w.advance(time.Hour)
			w.pushEnds(0, false)
			w.run()
			w.expectParked(w.f.Now.Add(p.RetryWait(n)), WhyAwaitRetry)
			if wait := p.RetryWait(n); wait < 500*time.Millisecond {
				t.Errorf("failure %d is retried after %v", n, wait)
			}
		}
	}
}

// Fault 5: a manual sync moved the periodic timer and the periodic status.
func TestARequestedSyncDoesNotMoveThePushInterval(t *testing.T) {
	for _, good := range []bool{true, false} {
		w := onePush(t)
		w.advance(20 * time.Second)
		w.queues[0] = append(w.queues[0], c(1))
		w.run()
		w.advance(time.Second)
		w.pushEnds(0, good)
		w.input(1)
		w.checkpointEnds(true)
		w.run()
		w.expectParked(in(30*time.Second), WhyAwaitPush)
	}
}

// Fault 6: a failed local checkpoint erased the id of the last good one.
func TestAFailedCheckpointLeavesTheLastGoodOneToPush(t *testing.T) {
	w := onePush(t)
	w.input(1)
	w.advance(10 * time.Second)
	w.checkpointEnds(false)
	w.run()
	w.expectParked(in(20*time.Second), WhyAwaitCheckpoint)
	w.advance(20 * time.Second)
	w.expectJob(0, c(1))
}

// Fault 7: after a restart the restored checkpoint was unknown, and the timer began anew.
func TestARestartRemembersTheCheckpointAndTheInterval(t *testing.T) {
	w := onePush(t)
	w.advance(10 * time.Second)
	w.restart(5 * time.Second)
	w.run()
	w.expectParked(in(30*time.Second), WhyAwaitPush)
	w.advance(15 * time.Second)
	w.expectJob(0, c(1))
	if got := w.counts[TakeCheckpoint]; got != 1 {
		t.Errorf("%d checkpoints of one state", got)
	}
}

// Fault 8, first half: huge intervals overflowed.
func TestHugeIntervalsNeitherOverflowNorFire(t *testing.T) {
	now := time.Now() // with a monotonic reading, which is the narrower one
	const forever = time.Duration(math.MaxInt64)
	p := Policy{CheckpointEvery: forever, MinBatch: math.MaxInt, MaxDelay: forever, Targets: []TargetPolicy{
		{PushEvery: forever, RetryMin: forever, RetryMax: forever},
	}}
	published := Checkpoint{ID: c(1), Step: 1, At: now}
	for _, f := range []Facts{
		{Now: now, Step: 2, Published: published, CheckpointEndedAt: now, Targets: []TargetFacts{{PeriodicAt: now, Committed: c(1)}}},
		{Now: now, Step: 1, Published: published, Targets: []TargetFacts{{PeriodicAt: now}}},
		{Now: now, Step: 1, Published: published, Targets: []TargetFacts{{FailedAt: now, Failures: math.MaxInt}}},
		{Now: now, Buffered: 1, Targets: []TargetFacts{{PeriodicAt: now}}},
	} {
		d, _ := Decide(p, State{}, f)
		if d.Kind != Park || d.Until.Sub(now) < forever/2 {
			t.Errorf("%+v: %+v", f, d)
		}
	}
}

// Fault 8, second half: a clock that was set back fired early or stalled.
// CASES A46
func TestAClockSetBackNeitherFiresEarlyNorStalls(t *testing.T) {
	w := onePush(t)
	w.restart(-24 * time.Hour)
	w.run()
	start := ago(24 * time.Hour)
	w.expectParked(start.Add(30*time.Second), WhyAwaitPush)
	w.input(1)
	w.expectParked(start.Add(10*time.Second), WhyAwaitCheckpoint)
	w.advance(30 * time.Second)
	w.expectJob(0, c(1))
}

// Fault 9, first half: while steps stalled no timer fired.
func TestTimersFireWhileStepsStall(t *testing.T) {
	w := onePush(t)
	w.input(1)
	w.f.Paused = true
	w.f.Buffered, w.f.StepAsked = 1000, true
	w.run()
	w.advance(30 * time.Second)
	if !w.f.CheckpointRunning || w.writing.Step != 2 {
		t.Errorf("no checkpoint while paused: %+v", w.f)
	}
	w.expectJob(0, c(1))
}

// Fault 9, second half: a long replay held back the push of a finished checkpoint.
func TestALongReplayDoesNotHoldBackAPush(t *testing.T) {
	w := onePush(t)
	w.stepTakes, w.replay, w.f.Phase = time.Second, 1000, Replaying
	w.f.CheckpointBlocked = "replaying"
	w.run()
	w.advance(30 * time.Second)
	w.expectJob(0, c(1))
	if w.f.Phase != Replaying {
		t.Error("the replay was over before the push was due")
	}
}

// Fault 10: a request that arrived while an older checkpoint was being written was answered by that older one.
func TestARequestIsNotAnsweredByAnOlderCheckpoint(t *testing.T) {
	w := newWorld(t, Policy{})
	w.asks = []uint64{0}
	w.run()
	w.input(1)
	w.asks = append(w.asks, w.f.Step)
	w.run()
	w.checkpointEnds(true)
	w.run()
	if !slices.Equal(w.asks, []uint64{1}) || w.writing.Step != 1 || !w.f.CheckpointRunning {
		t.Fatalf("after c1 of step 0 the requests are %v and %+v is written", w.asks, w.writing)
	}
	w.checkpointEnds(true)
	w.run()
	if len(w.asks) != 0 {
		t.Errorf("unanswered: %v", w.asks)
	}
}
