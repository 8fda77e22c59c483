package trigger

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// check tries a property of one decision in many situations, most of them at an edge.
func check(t *testing.T, property func(t *rapid.T, x situation, d Decision)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		x := drawSituation(t)
		property(t, x, x.decide())
	})
}

func TestDecidingIsDeterministicAndChangesNothing(t *testing.T) {
	check(t, func(t *rapid.T, x situation, d Decision) {
		before := x
		before.p.Targets, before.f.Targets = slices.Clone(x.p.Targets), slices.Clone(x.f.Targets)
		if again := x.decide(); again != d {
			t.Fatalf("first %+v, then %+v", d, again)
		}
		if !reflect.DeepEqual(before, x) {
			t.Fatalf("the facts changed from %+v to %+v", before, x)
		}
	})
}

func TestEveryDecisionSaysWhy(t *testing.T) {
	check(t, func(t *rapid.T, _ situation, d Decision) {
		if d.Why == "" {
			t.Fatalf("%+v", d)
		}
	})
}

func TestItNeverParksInThePast(t *testing.T) {
	check(t, func(t *rapid.T, x situation, d Decision) {
		if d.Kind == Park && !d.Until.IsZero() && !d.Until.After(x.f.Now) {
			t.Fatalf("parks until %v", d.Until)
		}
	})
}

func TestAtTheEndOfItsParkingItDoesNotParkAgain(t *testing.T) {
	check(t, func(t *rapid.T, x situation, d Decision) {
		if d.Kind != Park || d.Until.IsZero() {
			return
		}
		if then := x.at(d.Until).decide(); then.Kind == Park {
			t.Fatalf("%+v, and then %+v", d, then)
		}
	})
}

func TestItNeverOversleeps(t *testing.T) {
	check(t, func(t *rapid.T, x situation, d Decision) {
		if d.Kind != Park {
			return
		}
		slept := time.Duration(rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Min(1)).Draw(t, "slept"))
		meanwhile := x.f.Now.Add(slept)
		if !d.Until.IsZero() && !meanwhile.Before(d.Until) {
			meanwhile = d.Until.Add(-1)
		}
		if then := x.at(meanwhile).decide(); then != d {
			t.Fatalf("%+v, but after %v %+v", d, slept, then)
		}
	})
}

func TestOnlyWhatIsPublishedAndNotThereIsPushedUnasked(t *testing.T) {
	check(t, func(t *rapid.T, x situation, d Decision) {
		if d.Kind != Sync || !d.Periodic {
			return
		}
		target, policy := x.f.Targets[d.Target], x.p.Targets[d.Target]
		switch {
		case d.Checkpoint == uuid.Nil || d.Checkpoint != x.f.Published.ID:
			t.Fatalf("%v is not the published checkpoint %v", d.Checkpoint, x.f.Published.ID)
		case d.Checkpoint == target.Committed:
			t.Fatalf("%v is there already", d.Checkpoint)
		case policy.PushEvery <= 0 || x.f.Now.Sub(target.PeriodicAt) < policy.PushEvery && !target.PeriodicAt.IsZero():
			t.Fatalf("every %v, last at %v", policy.PushEvery, target.PeriodicAt)
		case target.Failures > 0 && !target.FailedAt.IsZero() && x.f.Now.Sub(target.FailedAt) < policy.RetryWait(target.Failures):
			t.Fatalf("failure %d at %v", target.Failures, target.FailedAt)
		}
	})
}

func TestWhatIsAskedIsPushedAsAsked(t *testing.T) {
	check(t, func(t *rapid.T, x situation, d Decision) {
		if d.Kind == Sync && !d.Periodic && (d.Checkpoint == uuid.Nil || d.Checkpoint != x.f.Targets[d.Target].Asked) {
			t.Fatalf("%+v", d)
		}
	})
}

func TestOnlyIdleTargetsOfOursGetAJob(t *testing.T) {
	check(t, func(t *rapid.T, x situation, d Decision) {
		if d.Kind != Sync {
			return
		}
		if target := x.f.Targets[d.Target]; target.Busy || target.Fenced || target.Held {
			t.Fatalf("%+v", target)
		}
	})
}

func TestACheckpointIsTakenOnlyWhenItCanStartAndIsWorthIt(t *testing.T) {
	check(t, func(t *rapid.T, x situation, d Decision) {
		if d.Kind != TakeCheckpoint {
			return
		}
		none := x.f.Published.ID == uuid.Nil
		changed := x.f.Step > 0 && none || x.f.Step > x.f.Published.Step
		switch {
		case x.f.CheckpointRunning || x.f.CheckpointBlocked != "":
			t.Fatal("it cannot start")
		case d.Why == WhyCheckpointAsked && (!x.f.CheckpointAsked || x.f.Step < x.f.CheckpointCover):
			t.Fatal("it serves no request")
		case !changed && !none:
			t.Fatal("this state is saved already")
		case !changed && d.Why != WhyCheckpointAsked:
			t.Fatal("nobody asked for the empty state")
		case d.Why == WhyCheckpointDue && x.f.Now.Before(x.f.CheckpointEndedAt.Add(x.p.CheckpointEvery)):
			t.Fatalf("every %v, but the last attempt ended at %v", x.p.CheckpointEvery, x.f.CheckpointEndedAt)
		}
	})
}

// CASES A7
func TestNothingAboutStepsDelaysACheckpointOrAPush(t *testing.T) {
	check(t, func(t *rapid.T, x situation, d Decision) {
		if d.Kind != TakeCheckpoint && d.Kind != Sync {
			return
		}
		flooded := drawFacts(t, Policy{})
		x.f.Buffered, x.f.StepAsked, x.f.Paused, x.f.Phase = flooded.Buffered, flooded.StepAsked, flooded.Paused, flooded.Phase
		if then := x.decide(); then != d {
			t.Fatalf("%+v becomes %+v", d, then)
		}
	})
}

func TestAPausedCircuitTakesNoStep(t *testing.T) {
	check(t, func(t *rapid.T, x situation, d Decision) {
		if x.f.Paused && d.Kind == Step {
			t.Fatalf("%+v", d)
		}
	})
}

func TestEachTargetIsDecidedForAlone(t *testing.T) {
	check(t, func(t *rapid.T, x situation, d Decision) {
		if d.Kind != Sync {
			return
		}
		i := d.Target
		x.p.Targets, x.f.Targets = x.p.Targets[i:i+1], x.f.Targets[i:i+1]
		d.Target = 0
		if then := x.decide(); then != d {
			t.Fatalf("beside others %+v, alone %+v", d, then)
		}
	})
}

func TestTheGeneratorsReachEveryReason(t *testing.T) {
	situations := rapid.Custom(drawSituation)
	reached := map[string]int{}
	for seed := range 5000 {
		reached[situations.Example(seed).decide().Why]++
	}
	for _, why := range []string{
		WhyCheckpointAsked, WhyCheckpointFirst, WhyCheckpointDue, WhySyncAsked, WhyPushDue, WhyPushRetry, WhyReplaying, WhyBootstrapping,
		WhyStepAsked, WhyEnoughInput, WhyFlushDue, WhyAwaitCheckpoint, WhyAwaitPush, WhyAwaitRetry, WhyAwaitFlush, WhyIdle,
	} {
		if reached[why] < 20 {
			t.Errorf("%q was the reason only %d times", why, reached[why])
		}
	}
}
