package trigger

import (
	"flag"
	"math"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", cases); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// The generators prefer edges: nothing, one, the moment itself and a nanosecond to either side, and numbers too large to add.

func drawDuration(t *rapid.T, label string) time.Duration {
	return rapid.OneOf(
		rapid.SampledFrom([]time.Duration{
			0, 1, -1, time.Millisecond, time.Second, 10 * time.Second, time.Hour, math.MaxInt64 / 2, math.MaxInt64 - 1, math.MaxInt64, math.MinInt64,
		}),
		rapid.Map(rapid.IntRange(0, 20), func(n int) time.Duration { return time.Duration(n) * time.Second }),
	).Draw(t, label)
}

// drawTime gives times such that the interval ends at or beside now, times around now, and none at all.
func drawTime(t *rapid.T, label string, interval time.Duration) time.Time {
	at := rapid.SampledFrom([]time.Time{{}, epoch, epoch.Add(-interval), epoch.Add(-interval / 2), ago(time.Second), in(time.Hour)}).Draw(t, label)
	if at.IsZero() {
		return at
	}
	return at.Add(rapid.SampledFrom([]time.Duration{0, 1, -1, time.Second}).Draw(t, label+" shift"))
}

func drawID(t *rapid.T, label string) uuid.UUID {
	return rapid.SampledFrom([]uuid.UUID{uuid.Nil, c(1), c(2), c(3)}).Draw(t, label)
}

func drawStepNumber(t *rapid.T, label string) uint64 {
	return rapid.SampledFrom([]uint64{0, 1, 2, 3, math.MaxUint64 - 1, math.MaxUint64}).Draw(t, label)
}

func drawTarget(t *rapid.T, name string) TargetPolicy {
	return TargetPolicy{
		Name: name, PushEvery: drawDuration(t, "push every"),
		RetryMin: drawDuration(t, "retry min"), RetryMax: drawDuration(t, "retry max"),
	}
}

func drawTargetFacts(t *rapid.T, p TargetPolicy) TargetFacts {
	f := TargetFacts{
		Committed:  drawID(t, "committed"),
		Asked:      rapid.SampledFrom([]uuid.UUID{uuid.Nil, uuid.Nil, uuid.Nil, uuid.Nil, c(1), c(2)}).Draw(t, "asked"),
		PeriodicAt: drawTime(t, "periodic at", p.PushEvery),
		Failures:   rapid.SampledFrom([]int{0, 1, 2, 5, 64, math.MaxInt, -1}).Draw(t, "failures"),
	}
	f.FailedAt = drawTime(t, "failed at", p.RetryWait(f.Failures))
	switch rapid.SampledFrom([]string{"", "", "", "busy", "fenced", "held"}).Draw(t, "trouble") {
	case "busy":
		f.Busy = true
	case "fenced":
		f.Fenced = true
	case "held":
		f.Held = true
	}
	return f
}

func drawPolicy(t *rapid.T) Policy {
	p := Policy{
		CheckpointEvery: drawDuration(t, "checkpoint every"), MaxDelay: drawDuration(t, "max delay"),
		MinBatch: rapid.SampledFrom([]int{0, 1, 2, math.MaxInt, -1}).Draw(t, "min batch"),
	}
	for _, name := range []string{"near", "far", "moon"}[:rapid.IntRange(0, 3).Draw(t, "targets")] {
		p.Targets = append(p.Targets, drawTarget(t, name))
	}
	return p
}

func drawFacts(t *rapid.T, p Policy) Facts {
	sometimes := func(label string) bool {
		return rapid.SampledFrom([]bool{false, false, false, false, true}).Draw(t, label)
	}
	f := Facts{
		Now: epoch, Step: drawStepNumber(t, "step"), StepAsked: sometimes("step asked"), Paused: sometimes("paused"),
		Buffered:        rapid.SampledFrom([]int{0, 0, 0, 1, 2, math.MaxInt, -1}).Draw(t, "buffered"),
		CheckpointAsked: sometimes("checkpoint asked"), CheckpointCover: drawStepNumber(t, "cover"),
		CheckpointRunning: sometimes("checkpoint running"), CheckpointEndedAt: drawTime(t, "ended", p.CheckpointEvery),
		Published: Checkpoint{ID: drawID(t, "published"), Step: drawStepNumber(t, "published step"), At: drawTime(t, "published at", p.CheckpointEvery)},
	}
	f.StepFailures = rapid.SampledFrom([]int{0, 0, 0, 1, 3, math.MaxInt, -1}).Draw(t, "step failures")
	f.StepFailedAt = drawTime(t, "step failed at", 2*time.Second)
	if sometimes("phase") {
		f.Phase = rapid.SampledFrom([]Phase{Replaying, Bootstrapping}).Draw(t, "which phase")
	}
	if sometimes("blocked") {
		f.CheckpointBlocked = "a transaction is open"
	}
	for _, target := range p.Targets {
		f.Targets = append(f.Targets, drawTargetFacts(t, target))
	}
	return f
}

// situation is all that Decide is given.
type situation struct {
	p Policy
	s State
	f Facts
}

func drawSituation(t *rapid.T) situation {
	p := drawPolicy(t)
	return situation{p: p, s: State{FlushAt: drawTime(t, "flush at", 0)}, f: drawFacts(t, p)}
}

func (x situation) decide() Decision {
	d, _ := Decide(x.p, x.s, x.f)
	return d
}

// at is the same situation when nothing but time has gone by since Decide was asked.
func (x situation) at(now time.Time) situation {
	_, x.s = Decide(x.p, x.s, x.f)
	x.f.Now = now
	return x
}
