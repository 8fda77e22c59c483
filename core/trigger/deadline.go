package trigger

import (
	"time"

	"github.com/google/uuid"
)

// deadline is a moment from which a rule holds, if nothing but time goes by. A rule tests it and park waits for it, so that the two
// cannot disagree. The zero deadline is none: only an event can make that rule hold.
//
// Moments are sums of a time and a duration. time.Time reaches 292 billion years, so that not even the longest duration overflows one.
type deadline struct {
	at    time.Time
	why   string // given when it has passed; never empty in a deadline that is set
	await string // given while it is waited for
}

func (d deadline) set() bool { return d.why != "" }

func (d deadline) passed(now time.Time) bool { return d.set() && !now.Before(d.at) }

// earlier of two deadlines, of which either may be none; a when they are equal.
func earlier(a, b deadline) deadline {
	if !a.set() || b.set() && b.at.Before(a.at) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// checkpointDeadline is when an automatic checkpoint falls due: none while one runs or is blocked, and none while the newest published
// one holds the current state. Without a checkpoint or an attempt to count from it has passed, as the zero time has.
func checkpointDeadline(p Policy, f Facts) deadline {
	var published Checkpoint // without one: the empty state of step 0, never saved and not worth it
	if f.Published.ID != uuid.Nil {
		published = f.Published
	}
	if p.CheckpointEvery <= 0 || !f.checkpointCanStart() || f.Step <= published.Step {
		return deadline{}
	}
	last := later(published.At, f.CheckpointEndedAt)
	if last.IsZero() {
		return deadline{why: WhyCheckpointFirst} // passed already
	}
	return deadline{at: last.Add(p.CheckpointEvery), why: WhyCheckpointDue, await: WhyAwaitCheckpoint}
}

// pushDeadline is when a periodic push of the newest published checkpoint falls due: none while the target cannot take a job or has that
// checkpoint already. After a failure it is the end of the retry wait, unless the interval ends later still.
func pushDeadline(p TargetPolicy, t TargetFacts, published uuid.UUID) deadline {
	if p.PushEvery <= 0 || !t.idle() || published == uuid.Nil || published == t.Committed {
		return deadline{}
	}
	due := t.PeriodicAt.Add(p.PushEvery)
	if t.Failures <= 0 {
		return deadline{at: due, why: WhyPushDue, await: WhyAwaitPush}
	}
	retry := t.FailedAt.Add(p.RetryWait(t.Failures))
	return deadline{at: later(due, retry), why: WhyPushRetry, await: WhyAwaitRetry}
}

// stepDeadline is when a step falls due: none while paused or while nothing asks for one, and the end of the flush delay when nothing else does.
// After one that found the disk full it is the end of the retry wait, unless the other ends later still.
func stepDeadline(p Policy, s State, f Facts) deadline {
	due := flushDeadline(s)
	if why := whyStep(p, f); why != "" {
		due = deadline{why: why} // passed already
	}
	switch {
	case f.Paused || !due.set():
		return deadline{}
	case f.StepFailures <= 0:
		return due
	}
	return deadline{at: later(due.at, f.StepRetryAt()), why: WhyStepRetry, await: WhyAwaitSpace}
}

// flushDeadline is when the buffered input has waited long enough: none while nothing is buffered.
func flushDeadline(s State) deadline {
	if s.FlushAt.IsZero() {
		return deadline{}
	}
	return deadline{at: s.FlushAt, why: WhyFlushDue, await: WhyAwaitFlush}
}
