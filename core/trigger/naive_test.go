package trigger

import (
	"cmp"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// twin is a second trigger that knows nothing of deadlines. It looks at a moment, lists all that could be done then, and takes what ranks
// first; and to know how long to park it looks at one second after the other.
type twin struct {
	p     Policy
	f     Facts
	since time.Time // when the oldest buffered record came
}

type option struct {
	rank int
	d    Decision
}

func (w twin) decide(now time.Time) Decision {
	options := slices.Concat(w.checkpoints(now), w.syncs(now), w.steps(now))
	if len(options) == 0 {
		return Decision{Kind: Park}
	}
	return slices.MinFunc(options, func(a, b option) int { return cmp.Compare(a.rank, b.rank) }).d
}

func (w twin) checkpoints(now time.Time) (options []option) {
	if w.f.CheckpointRunning || len(w.f.CheckpointBlocked) > 0 {
		return nil
	}
	exists := w.f.Published.ID != uuid.Nil
	savedStep, savedAt := uint64(0), time.Time{}
	if exists {
		savedStep, savedAt = w.f.Published.Step, w.f.Published.At
	}
	served := exists && savedStep >= w.f.CheckpointCover
	if w.f.CheckpointAsked && !served && w.f.Step >= w.f.CheckpointCover {
		options = append(options, option{1, Decision{Kind: TakeCheckpoint, Why: "checkpoint requested"}})
	}
	if w.p.CheckpointEvery <= 0 || w.f.Step <= savedStep {
		return options
	}
	if savedAt.IsZero() && w.f.CheckpointEndedAt.IsZero() {
		return append(options, option{2, Decision{Kind: TakeCheckpoint, Why: "nothing is saved yet"}})
	}
	if waited(now, savedAt, w.p.CheckpointEvery) && waited(now, w.f.CheckpointEndedAt, w.p.CheckpointEvery) {
		options = append(options, option{2, Decision{Kind: TakeCheckpoint, Why: "checkpoint interval passed"}})
	}
	return options
}

func (w twin) syncs(now time.Time) (options []option) {
	for i, t := range w.f.Targets {
		if t.Busy || t.Fenced || t.Held {
			continue
		}
		if t.Asked != uuid.Nil {
			options = append(options, option{10 + i, Decision{Kind: Sync, Target: i, Checkpoint: t.Asked, Why: "sync requested"}})
		}
		p, newest, why := w.p.Targets[i], w.f.Published.ID, "push interval passed"
		if p.PushEvery <= 0 || newest == uuid.Nil || newest == t.Committed || !waited(now, t.PeriodicAt, p.PushEvery) {
			continue
		}
		if t.Failures > 0 {
			why = "retrying a failed push"
			if !waited(now, t.FailedAt, retryByHand(p, t.Failures)) {
				continue
			}
		}
		options = append(options, option{20 + i, Decision{Kind: Sync, Target: i, Checkpoint: newest, Periodic: true, Why: why}})
	}
	return options
}

func (w twin) steps(now time.Time) (options []option) {
	full := w.f.StepFailures > 0
	if w.f.Paused || full && !waited(now, w.f.StepFailedAt, retryByHand(TargetPolicy{Name: "step", RetryMin: time.Second, RetryMax: 30 * time.Second}, w.f.StepFailures)) {
		return nil
	}
	for rank, wish := range []struct {
		holds bool
		why   string
	}{
		{w.f.Phase == Replaying, "replaying"},
		{w.f.Phase == Bootstrapping, "bootstrapping"},
		{w.f.StepAsked, "step requested"},
		{w.f.Buffered > 0 && w.f.Buffered > w.p.MinBatch, "enough input buffered"},
		{w.f.Buffered > 0 && waited(now, w.since, w.p.MaxDelay), "input waited long enough"},
	} {
		if full {
			wish.why = "retrying a step that found the disk full"
		}
		if wish.holds {
			options = append(options, option{30 + rank, Decision{Kind: Step, Why: wish.why}})
		}
	}
	return options
}

func waited(now, since time.Time, d time.Duration) bool { return now.Sub(since) >= d }

// retryByHand is RetryWait in numbers without end.
func retryByHand(p TargetPolicy, n int) time.Duration {
	ceiling := int64(ceilingByHand(p.RetryMin, p.RetryMax, n))
	extra := new(big.Int).Mul(big.NewInt(ceiling/2), new(big.Int).SetUint64(hash(p.Name, n)))
	return time.Duration(ceiling - ceiling/2 + extra.Rsh(extra, 64).Int64())
}

// horizon is how many seconds the twin looks ahead.
const horizon = 40

// drawSeconds is a situation in which all but the retry waits is in whole seconds, most of them within the horizon.
func drawSeconds(t *rapid.T) (situation, twin) {
	x := drawSituation(t)
	second := func(at time.Time) time.Time {
		if at.IsZero() {
			return at
		}
		return epoch.Add(-time.Duration(rapid.IntRange(-3, horizon).Draw(t, "seconds ago")) * time.Second)
	}
	interval := func(d time.Duration) time.Duration {
		if d > 0 && d < time.Hour {
			return time.Duration(rapid.IntRange(1, horizon).Draw(t, "interval")) * time.Second
		}
		return d
	}
	x.p.CheckpointEvery, x.p.MaxDelay = interval(x.p.CheckpointEvery), interval(x.p.MaxDelay)
	x.f.StepFailedAt = second(x.f.StepFailedAt)
	x.f.CheckpointEndedAt, x.f.Published.At = second(x.f.CheckpointEndedAt), second(x.f.Published.At)
	for i := range x.p.Targets {
		p, f := &x.p.Targets[i], &x.f.Targets[i]
		p.PushEvery, p.RetryMin, p.RetryMax = interval(p.PushEvery), interval(p.RetryMin), interval(p.RetryMax)
		f.PeriodicAt, f.FailedAt = second(f.PeriodicAt), second(f.FailedAt)
	}
	x.s = State{} // the first record is seen now
	return x, twin{p: x.p, f: x.f, since: epoch}
}

func TestTheNaiveTwinAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, naive := drawSeconds(t)
		first := x.decide()
		for s := range horizon {
			now := in(time.Duration(s) * time.Second)
			got, want := x.at(now).decide(), naive.decide(now)
			if want.Kind != Park {
				if first.Kind == Park && (first.Until.IsZero() || first.Until.After(now)) {
					t.Fatalf("the twin acts at second %d: %+v; the trigger sleeps until %v", s, want, first.Until)
				}
				if first.Kind == Park && !first.Until.After(now.Add(-time.Second)) {
					t.Fatalf("the twin parks until second %d, the trigger until %v", s, first.Until)
				}
				if got != want {
					t.Fatalf("second %d: %+v, the twin %+v", s, got, want)
				}
				return
			}
			if got.Kind != Park {
				t.Fatalf("second %d: %+v, the twin parks", s, got)
			}
		}
		if end := in((horizon - 1) * time.Second); !first.Until.IsZero() && !first.Until.After(end) {
			t.Fatalf("the twin parks beyond %v, the trigger until %v", end, first.Until)
		}
	})
}
