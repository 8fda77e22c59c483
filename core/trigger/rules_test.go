package trigger

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// epoch is the moment at which most tests happen.
var epoch = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return epoch.Add(-d) }
func in(d time.Duration) time.Time  { return epoch.Add(d) }

// c is the id of the n-th checkpoint; greater n, greater id.
func c(n byte) uuid.UUID { return uuid.UUID{6: 0x70, 8: 0x80, 15: n} }

func parked(until time.Time, why string) Decision {
	return Decision{Kind: Park, Until: until, Why: why}
}

func taken(why string) Decision { return Decision{Kind: TakeCheckpoint, Why: why} }

func stepped(why string) Decision { return Decision{Kind: Step, Why: why} }

func requested(target int, id uuid.UUID) Decision {
	return Decision{Kind: Sync, Target: target, Checkpoint: id, Why: WhySyncAsked}
}

func periodic(target int, id uuid.UUID, why string) Decision {
	return Decision{Kind: Sync, Target: target, Checkpoint: id, Periodic: true, Why: why}
}

// rule is one row: from a quiet pipeline, change this, expect that.
type rule struct {
	name  string
	given func(p *Policy, s *State, f *Facts)
	want  Decision
}

// decideQuiet answers for a pipeline with nothing to do: checkpoint c1 of step 5 was published 4 s ago and is committed on both targets; the
// checkpoint interval is 10 s, the push interval 30 s and last ended 20 s ago.
func decideQuiet(given func(p *Policy, s *State, f *Facts)) (Decision, State) {
	target := TargetFacts{Committed: c(1), PeriodicAt: ago(20 * time.Second)}
	retry := TargetPolicy{PushEvery: 30 * time.Second, RetryMin: time.Second, RetryMax: time.Minute}
	near, far := retry, retry
	near.Name, far.Name = "near", "far"
	p := Policy{CheckpointEvery: 10 * time.Second, MinBatch: 100, MaxDelay: 2 * time.Second, Targets: []TargetPolicy{near, far}}
	f := Facts{
		Now: epoch, Step: 5, Published: Checkpoint{ID: c(1), Step: 5, At: ago(4 * time.Second)},
		CheckpointEndedAt: ago(4 * time.Second), Targets: []TargetFacts{target, target},
	}
	s := State{}
	given(&p, &s, &f)
	return Decide(p, s, f)
}

func runRules(t *testing.T, rules []rule) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			if got, _ := decideQuiet(r.given); got != r.want {
				t.Errorf("got  %+v\nwant %+v", got, r.want)
			}
		})
	}
}

func TestCheckpointRules(t *testing.T) {
	runRules(t, []rule{
		{"nothing to do parks for ever", func(*Policy, *State, *Facts) {}, parked(time.Time{}, WhyIdle)},
		{"new state is saved when the interval has passed", func(_ *Policy, _ *State, f *Facts) {
			f.Step, f.Published.At, f.CheckpointEndedAt = 6, ago(10*time.Second), ago(10*time.Second)
		}, taken(WhyCheckpointDue)},
		{"new state waits for the interval", func(_ *Policy, _ *State, f *Facts) {
			f.Step = 6
		}, parked(in(6*time.Second), WhyAwaitCheckpoint)},
		{"unchanged state is never saved again", func(_ *Policy, _ *State, f *Facts) {
			f.Published.At, f.CheckpointEndedAt = ago(time.Hour), ago(time.Hour)
		}, parked(time.Time{}, WhyIdle)},
		{"an interval of zero means on request only", func(p *Policy, _ *State, f *Facts) {
			p.CheckpointEvery, f.Step, f.Published.At = 0, 6, ago(time.Hour)
		}, parked(time.Time{}, WhyIdle)},
		{"a fresh circuit at step 0 has nothing to save", func(_ *Policy, _ *State, f *Facts) {
			f.Step, f.Published, f.CheckpointEndedAt = 0, Checkpoint{}, time.Time{}
		}, parked(time.Time{}, WhyIdle)},
		{"a fresh circuit is saved at step 0 when asked", func(_ *Policy, _ *State, f *Facts) {
			f.Step, f.Published, f.CheckpointEndedAt, f.CheckpointAsked = 0, Checkpoint{}, time.Time{}, true
		}, taken(WhyCheckpointAsked)},
		{"the very first step is saved at once", func(p *Policy, _ *State, f *Facts) {
			p.CheckpointEvery, f.Step, f.Published, f.CheckpointEndedAt = 1<<63-1, 1, Checkpoint{}, time.Time{}
		}, taken(WhyCheckpointFirst)},
		{"the step and time of an absent checkpoint mean nothing", func(_ *Policy, _ *State, f *Facts) {
			f.Step, f.Published, f.CheckpointEndedAt = 1, Checkpoint{Step: 9, At: epoch}, time.Time{}
		}, taken(WhyCheckpointFirst)},
		{"a request does not wait for the interval", func(_ *Policy, _ *State, f *Facts) {
			f.Step, f.CheckpointAsked, f.CheckpointCover = 6, true, 6
		}, taken(WhyCheckpointAsked)},
		{"a request is named as the reason even when the interval has passed", func(_ *Policy, _ *State, f *Facts) {
			f.Step, f.Published.At, f.CheckpointEndedAt = 6, ago(time.Hour), ago(time.Hour)
			f.CheckpointAsked, f.CheckpointCover = true, 6
		}, taken(WhyCheckpointAsked)},
		{"a request that the published checkpoint covers needs no other", func(_ *Policy, _ *State, f *Facts) {
			f.CheckpointAsked, f.CheckpointCover = true, 5
		}, parked(time.Time{}, WhyIdle)},
		{"a request for a step not reached yet waits for it", func(_ *Policy, _ *State, f *Facts) {
			f.CheckpointAsked, f.CheckpointCover = true, 6
		}, parked(time.Time{}, WhyIdle)},
		{"a pause does not hold back a checkpoint", func(_ *Policy, _ *State, f *Facts) {
			f.Paused, f.Step, f.CheckpointEndedAt = true, 6, ago(10*time.Second)
			f.Published.At = ago(10 * time.Second)
		}, taken(WhyCheckpointDue)},
	})
}

func TestRulesOfCheckpointsThatCannotStart(t *testing.T) {
	runRules(t, []rule{
		{"only one checkpoint is written at a time", func(_ *Policy, _ *State, f *Facts) {
			f.Step, f.CheckpointAsked, f.CheckpointCover, f.CheckpointRunning = 6, true, 6, true
		}, parked(time.Time{}, WhyIdle)},
		{"a blocked checkpoint leaves no deadline", func(_ *Policy, _ *State, f *Facts) {
			f.Step, f.Published.At, f.CheckpointEndedAt = 6, ago(time.Hour), ago(time.Hour)
			f.CheckpointBlocked = "a transaction is open"
		}, parked(time.Time{}, WhyIdle)},
		{"a blocked request does not spin", func(_ *Policy, _ *State, f *Facts) {
			f.CheckpointAsked, f.Step, f.CheckpointCover, f.CheckpointBlocked = true, 6, 6, "a transaction is open"
		}, parked(time.Time{}, WhyIdle)},
		{"a blocked checkpoint holds back no step", func(_ *Policy, _ *State, f *Facts) {
			f.CheckpointAsked, f.Step, f.CheckpointCover, f.CheckpointBlocked = true, 6, 6, "replaying"
			f.Phase = Replaying
		}, stepped(WhyReplaying)},
		{"after a failed attempt the interval counts from its end", func(_ *Policy, _ *State, f *Facts) {
			f.Step, f.Published.At, f.CheckpointEndedAt = 6, ago(time.Hour), ago(time.Second)
		}, parked(in(9*time.Second), WhyAwaitCheckpoint)},
		{"a first attempt that failed is tried again an interval later", func(_ *Policy, _ *State, f *Facts) {
			f.Step, f.Published, f.CheckpointEndedAt = 1, Checkpoint{}, epoch
		}, parked(in(10*time.Second), WhyAwaitCheckpoint)},
		{"a failed attempt does not hold back a request", func(_ *Policy, _ *State, f *Facts) {
			f.Step, f.CheckpointEndedAt, f.CheckpointAsked, f.CheckpointCover = 6, epoch, true, 6
		}, taken(WhyCheckpointAsked)},
	})
}

func TestSyncRules(t *testing.T) {
	runRules(t, []rule{
		{"a new checkpoint is pushed when the interval has passed", func(_ *Policy, _ *State, f *Facts) {
			f.Published.ID, f.Targets[0].PeriodicAt = c(2), ago(30*time.Second)
		}, periodic(0, c(2), WhyPushDue)},
		{"a new checkpoint waits for the interval", func(_ *Policy, _ *State, f *Facts) {
			f.Published.ID = c(2)
		}, parked(in(10*time.Second), WhyAwaitPush)},
		{"a push stays due while nothing new is published", func(_ *Policy, _ *State, f *Facts) {
			f.Targets[0].PeriodicAt = ago(time.Hour)
		}, parked(time.Time{}, WhyIdle)},
		{"nothing published means nothing to push", func(_ *Policy, _ *State, f *Facts) {
			f.Step, f.Published, f.Targets[0].Committed, f.Targets[0].PeriodicAt = 0, Checkpoint{}, uuid.Nil, ago(time.Hour)
		}, parked(time.Time{}, WhyIdle)},
		{"a push interval of zero means on request only", func(p *Policy, _ *State, f *Facts) {
			p.Targets[0].PushEvery, p.Targets[1].PushEvery, f.Published.ID = 0, 0, c(2)
		}, parked(time.Time{}, WhyIdle)},
		{"a request does not wait for the interval", func(_ *Policy, _ *State, f *Facts) {
			f.Published.ID, f.Targets[1].Asked = c(2), c(2)
		}, requested(1, c(2))},
		{"a request is served before any periodic push", func(_ *Policy, _ *State, f *Facts) {
			f.Published.ID, f.Targets[0].PeriodicAt, f.Targets[1].Asked = c(3), ago(time.Hour), c(2)
		}, requested(1, c(2))},
		{"a newer checkpoint does not supersede a request", func(_ *Policy, _ *State, f *Facts) {
			f.Published.ID, f.Targets[0].PeriodicAt, f.Targets[0].Asked = c(3), ago(time.Hour), c(2)
		}, requested(0, c(2))},
		{"a request for what is already there is still answered by a job", func(_ *Policy, _ *State, f *Facts) {
			f.Targets[0].Asked = c(1)
		}, requested(0, c(1))},
		{"a pause does not hold back a push", func(_ *Policy, _ *State, f *Facts) {
			f.Paused, f.Published.ID, f.Targets[0].PeriodicAt = true, c(2), ago(time.Hour)
		}, periodic(0, c(2), WhyPushDue)},
		{"a running or blocked checkpoint does not hold back a push", func(_ *Policy, _ *State, f *Facts) {
			f.CheckpointRunning, f.CheckpointBlocked = true, "replaying"
			f.Published.ID, f.Targets[0].PeriodicAt = c(2), ago(time.Hour)
		}, periodic(0, c(2), WhyPushDue)},
	})
}

func TestRulesOfTargetsThatTakeNoJob(t *testing.T) {
	due := func(change func(t *TargetFacts)) func(*Policy, *State, *Facts) {
		return func(_ *Policy, _ *State, f *Facts) {
			f.Published.ID = c(2)
			f.Targets[0].Asked, f.Targets[0].PeriodicAt = c(2), ago(time.Hour)
			change(&f.Targets[0])
		}
	}
	other := parked(in(10*time.Second), WhyAwaitPush) // the second target's turn comes as if the first were not there
	runRules(t, []rule{
		{"a busy target gets no second job", due(func(t *TargetFacts) { t.Busy = true }), other},
		{"a fenced target gets no job", due(func(t *TargetFacts) { t.Fenced = true }), other},
		{"a held target gets no job", due(func(t *TargetFacts) { t.Held = true }), other},
		{"a stuck target does not hold back the others", func(_ *Policy, _ *State, f *Facts) {
			f.Published.ID = c(2)
			f.Targets[0].Busy = true
			f.Targets[0].PeriodicAt, f.Targets[1].PeriodicAt = ago(time.Hour), ago(time.Hour)
		}, periodic(1, c(2), WhyPushDue)},
	})
}

func TestRetryRules(t *testing.T) {
	near := TargetPolicy{Name: "near", RetryMin: time.Second, RetryMax: time.Minute}
	failed := func(n int, age time.Duration) func(*Policy, *State, *Facts) {
		return func(_ *Policy, _ *State, f *Facts) {
			f.Published.ID, f.Targets[1].Busy = c(2), true
			f.Targets[0] = TargetFacts{Committed: c(1), PeriodicAt: ago(time.Hour), FailedAt: ago(age), Failures: n}
		}
	}
	runRules(t, []rule{
		{"a failed push waits before it is retried", failed(3, 0), parked(in(near.RetryWait(3)), WhyAwaitRetry)},
		{"a failed push is retried when the wait is over", failed(3, near.RetryWait(3)), periodic(0, c(2), WhyPushRetry)},
		{"a failed push does not hold back a request", func(p *Policy, s *State, f *Facts) {
			failed(3, 0)(p, s, f)
			f.Targets[0].Asked = c(1)
		}, requested(0, c(1))},
		{"a retry never comes before the interval ends", func(p *Policy, s *State, f *Facts) {
			failed(1, time.Hour)(p, s, f)
			f.Targets[0].PeriodicAt = ago(29 * time.Second)
		}, parked(in(time.Second), WhyAwaitRetry)},
	})
}

func TestStepRules(t *testing.T) {
	runRules(t, []rule{
		{"more than the minimum batch is stepped at once", func(_ *Policy, _ *State, f *Facts) {
			f.Buffered = 101
		}, stepped(WhyEnoughInput)},
		{"the minimum batch itself waits for more", func(_ *Policy, _ *State, f *Facts) {
			f.Buffered = 100
		}, parked(in(2*time.Second), WhyAwaitFlush)},
		{"input that waited long enough is stepped", func(_ *Policy, s *State, f *Facts) {
			f.Buffered, s.FlushAt = 1, epoch
		}, stepped(WhyFlushDue)},
		{"without a minimum batch nothing waits", func(p *Policy, _ *State, f *Facts) {
			p.MinBatch, f.Buffered = 0, 1
		}, stepped(WhyEnoughInput)},
		{"without a delay nothing waits", func(p *Policy, _ *State, f *Facts) {
			p.MaxDelay, f.Buffered = 0, 1
		}, stepped(WhyFlushDue)},
		{"a negative minimum batch does not step on no input", func(p *Policy, _ *State, _ *Facts) {
			p.MinBatch = -1
		}, parked(time.Time{}, WhyIdle)},
		{"the circuit gets the step it asks for", func(_ *Policy, _ *State, f *Facts) {
			f.StepAsked = true
		}, stepped(WhyStepAsked)},
		{"replaying is step after step", func(_ *Policy, _ *State, f *Facts) { f.Phase = Replaying }, stepped(WhyReplaying)},
		{"bootstrapping is step after step", func(_ *Policy, _ *State, f *Facts) { f.Phase = Bootstrapping }, stepped(WhyBootstrapping)},
		{"a paused circuit takes no step, whatever the reason", func(_ *Policy, s *State, f *Facts) {
			f.Paused, f.StepAsked, f.Phase, f.Buffered, s.FlushAt = true, true, Replaying, 1000, ago(time.Hour)
		}, parked(time.Time{}, WhyIdle)},
	})
}

func TestRulesOfStepsThatFoundTheDiskFull(t *testing.T) {
	wait := func(n int) time.Duration { return Facts{StepFailedAt: epoch, StepFailures: n}.StepRetryAt().Sub(epoch) }
	full := func(n int, age time.Duration, wish func(*Facts)) func(*Policy, *State, *Facts) {
		return func(_ *Policy, _ *State, f *Facts) {
			f.StepFailedAt, f.StepFailures = ago(age), n
			wish(f)
		}
	}
	much := func(f *Facts) { f.Buffered = 1000 }
	runRules(t, []rule{
		{"it waits however much is buffered", full(2, 0, much), parked(in(wait(2)), WhyAwaitSpace)},
		{"it is tried again when the wait is over", full(2, wait(2), much), stepped(WhyStepRetry)},
		{"a replay waits too", full(1, 0, func(f *Facts) { f.Phase = Replaying }), parked(in(wait(1)), WhyAwaitSpace)},
		{"and so does the circuit's own wish", full(1, 0, func(f *Facts) { f.StepAsked = true }), parked(in(wait(1)), WhyAwaitSpace)},
		{"input that may wait longer than that does", full(1, 0, func(f *Facts) { f.Buffered = 1 }), parked(in(2*time.Second), WhyAwaitSpace)},
		{"with nothing to take there is nothing to try", full(1, 0, func(*Facts) {}), parked(time.Time{}, WhyIdle)},
		{"a pause is a pause", full(1, time.Hour, func(f *Facts) { f.Buffered, f.Paused = 1000, true }), parked(time.Time{}, WhyIdle)},
		{"a checkpoint is taken meanwhile", full(1, 0, func(f *Facts) { f.Step, f.CheckpointAsked, f.CheckpointCover = 6, true, 6 }), taken(WhyCheckpointAsked)},
		{"a push is started meanwhile", full(1, 0, func(f *Facts) { f.Buffered, f.Targets[1].Asked = 1000, c(1) }), requested(1, c(1))},
	})
	if first, last := wait(1), wait(50); first >= time.Second || last < 15*time.Second || last > 30*time.Second {
		t.Errorf("the waits go from %v to %v", first, last)
	}
}

func TestTheEarliestDeadlineEndsTheParking(t *testing.T) {
	runRules(t, []rule{
		{"the flush comes first", func(_ *Policy, _ *State, f *Facts) {
			f.Step, f.Published.ID, f.Buffered = 6, c(2), 1
		}, parked(in(2*time.Second), WhyAwaitFlush)},
		{"the checkpoint comes first", func(_ *Policy, s *State, f *Facts) {
			f.Step, f.Published.ID, f.Buffered, s.FlushAt = 6, c(2), 1, in(7*time.Second)
		}, parked(in(6*time.Second), WhyAwaitCheckpoint)},
		{"the second target comes first", func(_ *Policy, _ *State, f *Facts) {
			f.Step, f.Published.ID, f.Targets[1].PeriodicAt = 6, c(2), ago(29*time.Second)
		}, parked(in(time.Second), WhyAwaitPush)},
	})
}
