package trigger

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// A long run is a world that lives through events in any order. The world itself fails when its loop spins.

func drawWorld(t *rapid.T) *world {
	seconds := rapid.Map(rapid.IntRange(0, 30), func(n int) time.Duration { return time.Duration(n) * time.Second })
	p := Policy{
		CheckpointEvery: seconds.Draw(t, "checkpoint every"),
		MinBatch:        rapid.IntRange(0, 3).Draw(t, "min batch"), MaxDelay: seconds.Draw(t, "max delay"),
	}
	for _, name := range []string{"near", "far"}[:rapid.IntRange(0, 2).Draw(t, "targets")] {
		p.Targets = append(p.Targets, TargetPolicy{
			Name: name, PushEvery: seconds.Draw(t, "push every"),
			RetryMin: seconds.Draw(t, "retry min"), RetryMax: seconds.Draw(t, "retry max"),
		})
	}
	w := newWorld(t, p)
	w.stepTakes = time.Duration(rapid.IntRange(0, 2).Draw(t, "step takes")) * time.Second
	w.run()
	return w
}

// live lets one thing happen, whatever it is.
func (w *world) live(t *rapid.T) {
	happen := map[string]func(){
		"wait":   func() { w.advance(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "for"))) },
		"input":  func() { w.f.Buffered += rapid.IntRange(1, 3).Draw(t, "records") },
		"step":   func() { w.f.StepAsked = true },
		"pause":  func() { w.f.Paused = !w.f.Paused },
		"replay": func() { w.f.Phase, w.replay = Replaying, rapid.IntRange(1, 20).Draw(t, "steps") },
		"block": func() {
			w.f.CheckpointBlocked = rapid.SampledFrom([]string{"", "a transaction is open"}).Draw(t, "why")
		},
		"ask": func() {
			w.asks = append(w.asks, w.f.Step+uint64(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "ahead")))
		},
		"written": func() {
			if w.f.CheckpointRunning {
				w.checkpointEnds(rapid.Bool().Draw(t, "good"))
			}
		},
		"restart": func() { w.restart(time.Duration(rapid.IntRange(-100, 100).Draw(t, "gap")) * time.Second) },
	}
	names := []string{"wait", "wait", "input", "input", "step", "pause", "replay", "block", "ask", "written", "written", "written", "restart"}
	for i := range w.p.Targets {
		name := w.p.Targets[i].Name
		happen[name] = func() { w.liveTarget(t, i) }
		names = append(names, name, name, name)
	}
	happen[rapid.SampledFrom(names).Draw(t, "what")]()
	w.run()
}

func (w *world) liveTarget(t *rapid.T, i int) {
	target := &w.f.Targets[i]
	switch {
	case target.Busy:
		w.pushEnds(i, rapid.Bool().Draw(t, "good"))
	case w.f.Published.ID != uuid.Nil && rapid.Bool().Draw(t, "ask"):
		w.queues[i] = append(w.queues[i], w.f.Published.ID)
	default:
		target.Held = !target.Held
	}
}

// calm lets everything go well for so long that all that is owed must have been done.
func (w *world) calm() {
	w.f.Paused, w.f.CheckpointBlocked = false, ""
	for i := range w.f.Targets {
		w.f.Targets[i].Held = false
	}
	for range 20 {
		w.run()
		w.advance(time.Minute)
		if w.f.CheckpointRunning {
			w.checkpointEnds(true)
		}
		for i := range w.f.Targets {
			if w.f.Targets[i].Busy {
				w.pushEnds(i, true)
			}
		}
	}
	w.run()
}

func TestAfterAnyRunWhatIsOwedIsDoneAndThenItRests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			w.live(t)
		}
		w.input(1) // reaches the step that a request may be ahead
		w.calm()
		w.expectNothingOwed()
		told := len(w.events)
		w.advance(365 * 24 * time.Hour)
		if rest := w.events[told:]; len(rest) > 0 {
			t.Fatalf("in a year without news: %+v", rest)
		}
	})
}

func (w *world) expectNothingOwed() {
	w.t.Helper()
	if w.f.Buffered > 0 || w.f.StepAsked || w.f.Phase != Running {
		w.t.Fatalf("not stepped: %+v", w.f)
	}
	if len(w.asks) > 0 {
		w.t.Fatalf("at step %d these are unanswered: %v", w.f.Step, w.asks)
	}
	if w.p.CheckpointEvery > 0 && w.f.Published.Step != w.f.Step {
		w.t.Fatalf("step %d is not saved, but %+v", w.f.Step, w.f.Published)
	}
	for i, target := range w.f.Targets {
		if len(w.queues[i]) > 0 {
			w.t.Fatalf("not served on %s: %v", w.p.Targets[i].Name, w.queues[i])
		}
		if w.p.Targets[i].PushEvery > 0 && target.Committed != w.f.Published.ID {
			w.t.Fatalf("%s has %v, not %v", w.p.Targets[i].Name, target.Committed, w.f.Published.ID)
		}
	}
}
