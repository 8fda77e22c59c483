package trigger

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// world is the smallest loop that keeps the caller's promises, around a circuit, a disk and targets that do what the test says. It is
// the caller of Decide in the stories and in the properties of long runs. Its clock moves only in advance.
type world struct {
	t tb
	p Policy
	s State
	f Facts // but for the requests, which observe derives from asks and queues

	stepTakes time.Duration // how long a step keeps the loop from looking
	freeAt    time.Time     // the loop is inside a step until then
	replay    int           // steps left of a replay or bootstrap

	asks    []uint64       // the steps that unanswered checkpoint requests must cover
	writing Checkpoint     // while CheckpointRunning
	minted  byte           // the newest checkpoint id
	queues  [][]uuid.UUID  // requested syncs, by target
	jobs    []Decision     // by target, while Busy
	parked  Decision       // what the last look answered, when the loop is parked
	looks   int            // since the clock last moved
	events  []event        // what happened, in order
	counts  map[Kind]int   // decisions by kind
	pushed  map[string]int // completed pushes by "target checkpoint"
}

type event struct {
	at   time.Time
	what string
	why  string
}

// tb is what *testing.T and *rapid.T have in common and a world needs.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// spinning is more looks than any honest moment of these worlds needs, restless more wake-ups than any wait.
const (
	spinning = 200
	restless = 1000
)

func newWorld(t tb, p Policy) *world {
	w := &world{t: t, p: p, counts: map[Kind]int{}, pushed: map[string]int{}}
	w.f.Now, w.freeAt = epoch, epoch
	for range p.Targets {
		w.f.Targets = append(w.f.Targets, TargetFacts{PeriodicAt: epoch})
		w.queues = append(w.queues, nil)
		w.jobs = append(w.jobs, Decision{})
	}
	return w
}

// run is the loop: look, act, until it parks or is inside a step.
func (w *world) run() {
	w.t.Helper()
	for !w.f.Now.Before(w.freeAt) {
		w.observe()
		var d Decision
		d, w.s = Decide(w.p, w.s, w.f)
		w.counts[d.Kind]++
		if w.looks++; w.looks > spinning {
			w.t.Fatalf("the loop spins at %v: %+v", w.f.Now, d)
		}
		if w.parked = d; d.Kind == Park {
			w.note(parkText(d), d.Why)
			return
		}
		w.act(d)
	}
}

// advance lets time go by; the loop wakes when its parking or its step ends.
func (w *world) advance(d time.Duration) {
	w.t.Helper()
	end := w.f.Now.Add(d)
	for range restless {
		next := w.wakesAt()
		if next.IsZero() || next.After(end) {
			w.setNow(end)
			return
		}
		w.setNow(next)
		w.run()
	}
	w.t.Fatalf("the loop does not come to rest: %+v", w.parked)
}

// wakesAt is zero when only an event can wake the loop.
func (w *world) wakesAt() time.Time {
	if w.f.Now.Before(w.freeAt) {
		return w.freeAt
	}
	return w.parked.Until
}

func (w *world) setNow(now time.Time) {
	if now.After(w.f.Now) {
		w.f.Now, w.looks = now, 0
	}
}

// observe answers what the published checkpoint covers and derives the facts about requests from what is left.
func (w *world) observe() {
	w.asks = slices.DeleteFunc(w.asks, func(cover uint64) bool {
		covered := w.f.Published.ID != uuid.Nil && w.f.Published.Step >= cover
		if covered {
			w.note("answered", fmt.Sprintf("the request for step %d, with %s of step %d", cover, idText(w.f.Published.ID), w.f.Published.Step))
		}
		return covered
	})
	w.f.CheckpointAsked, w.f.CheckpointCover = len(w.asks) > 0, 0
	if w.f.CheckpointAsked {
		w.f.CheckpointCover = slices.Min(w.asks)
	}
	for i, queue := range w.queues {
		w.f.Targets[i].Asked = uuid.Nil
		if len(queue) > 0 {
			w.f.Targets[i].Asked = queue[0]
		}
	}
}

func (w *world) act(d Decision) {
	switch d.Kind {
	case Step:
		w.takeStep(d.Why)
	case TakeCheckpoint:
		w.minted++
		w.writing = Checkpoint{ID: c(w.minted), Step: w.f.Step}
		w.f.CheckpointRunning = true
		w.note(fmt.Sprintf("checkpoint %s of step %d", idText(w.writing.ID), w.writing.Step), d.Why)
	case Sync:
		w.jobs[d.Target] = d
		w.f.Targets[d.Target].Busy = true
		w.note(fmt.Sprintf("sync %s to %s", idText(d.Checkpoint), w.p.Targets[d.Target].Name), d.Why)
	}
}

func (w *world) takeStep(why string) {
	w.f.Step++
	w.f.Buffered, w.f.StepAsked = 0, false
	w.freeAt = w.f.Now.Add(w.stepTakes)
	if w.replay > 0 {
		if w.replay--; w.replay == 0 {
			w.f.Phase = Running
		}
	}
	w.note("step", why)
}

// checkpointEnds is the event that the write which is running has succeeded or failed; a failure answers the requests it would have served.
func (w *world) checkpointEnds(good bool) {
	w.t.Helper()
	if !w.f.CheckpointRunning {
		w.t.Fatalf("no checkpoint is running")
	}
	w.f.CheckpointRunning, w.f.CheckpointEndedAt = false, w.f.Now
	if good {
		w.f.Published = Checkpoint{ID: w.writing.ID, Step: w.writing.Step, At: w.f.Now}
		return
	}
	w.asks = slices.DeleteFunc(w.asks, func(cover uint64) bool {
		served := cover <= w.writing.Step
		if served {
			w.note("answered", fmt.Sprintf("the request for step %d, with the failure of %s", cover, idText(w.writing.ID)))
		}
		return served
	})
}

// pushEnds is the event that the job on target i has committed or failed.
func (w *world) pushEnds(i int, good bool) {
	w.t.Helper()
	job, target := w.jobs[i], &w.f.Targets[i]
	if !target.Busy {
		w.t.Fatalf("no job is running on %s", w.p.Targets[i].Name)
	}
	target.Busy = false
	if good {
		target.Committed = job.Checkpoint
		w.pushed[w.p.Targets[i].Name+" "+idText(job.Checkpoint)]++
	}
	switch {
	case !job.Periodic:
		w.queues[i] = w.queues[i][1:]
	case good:
		target.PeriodicAt, target.Failures = w.f.Now, 0
	default:
		target.FailedAt = w.f.Now
		target.Failures++
	}
}

// restart is a new run of the host when the wall clock shows its present time plus gap, which is negative when it was set back. The
// circuit's live state, the newest checkpoint and what the syncer persists survive; jobs, requests and the loop's memory do not.
func (w *world) restart(gap time.Duration) {
	start := w.f.Now.Add(gap)
	w.s, w.asks, w.looks = State{}, nil, 0
	w.f.Now, w.freeAt = start, start
	w.f.CheckpointRunning, w.f.CheckpointEndedAt = false, time.Time{}
	w.f.Published.At = Clamp(w.f.Published.At, start)
	for i := range w.f.Targets {
		target := &w.f.Targets[i]
		w.queues[i], target.Busy = nil, false
		target.PeriodicAt, target.FailedAt = Clamp(target.PeriodicAt, start), Clamp(target.FailedAt, start)
	}
}

func (w *world) note(what, why string) {
	w.events = append(w.events, event{at: w.f.Now, what: what, why: why})
}

func parkText(d Decision) string {
	if d.Until.IsZero() {
		return "park"
	}
	return "park until " + clock(d.Until)
}

// clock prints a moment as the time since the epoch of the tests.
func clock(at time.Time) string {
	d := at.Sub(epoch)
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	text := fmt.Sprintf("%s%02d:%02d:%02d", sign, d/time.Hour, d/time.Minute%60, d/time.Second%60)
	if ms := d / time.Millisecond % 1000; ms != 0 {
		text += fmt.Sprintf(".%03d", ms)
	}
	return text
}

func idText(id uuid.UUID) string {
	return fmt.Sprintf("c%d", id[15])
}
