package circuit

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/trigger"
)

// targetBook is the part of the book about one sync block. Its times are on the loop's clock.
type targetBook struct {
	Target
	policy     trigger.TargetPolicy
	periodicAt time.Time
	failedAt   time.Time
	failures   int
	queue      []*syncAsk
	running    *push
	committed  trigger.Checkpoint // of the highest step that a push of this run is known to have committed
	results    map[PushTrigger]*PushResult
}

// push is one running job.
type push struct {
	checkpoint trigger.Checkpoint
	trigger    PushTrigger
	since      time.Time
	ask        *syncAsk // of a requested push
}

// syncAsk is one entry of a target's queue. Requests for a checkpoint that waits there already share its entry.
type syncAsk struct {
	checkpoint trigger.Checkpoint
	groups     []*syncGroup
}

// syncGroup is one request over the targets that it addresses.
type syncGroup struct {
	checkpoint uuid.UUID
	waiting    int // targets that have not answered
	committed  int
	errs       []error    // of every target that did not commit
	fatal      []error    // of those, where the target is not fenced
	done       chan error // room for the one answer
	release    func()     // of the pin; may block
}

// load reads what an earlier run left, once.
func (t *targetBook) load(start time.Time) {
	s := t.Pusher.State()
	t.periodicAt = trigger.Clamp(s.PeriodicAt, start)
	if t.periodicAt.IsZero() {
		t.periodicAt = start
	}
	t.failedAt, t.failures = trigger.Clamp(s.FailedAt, start), s.Failures
}

func (t *targetBook) facts(s PushState) trigger.TargetFacts {
	f := trigger.TargetFacts{
		Committed: s.Committed, PeriodicAt: t.periodicAt, FailedAt: t.failedAt, Failures: t.failures,
		Busy: t.running != nil, Fenced: s.Fenced, Held: s.Held,
	}
	if len(t.queue) > 0 {
		f.Asked = t.queue[0].checkpoint.ID
	}
	return f
}

// because adds to a refusal what is known of its cause.
func (s PushState) because(err error) error {
	if s.Reason == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, s.Reason)
}

// enqueue adds a request's share to the end of the queue, or to the entry of the same checkpoint.
func (t *targetBook) enqueue(c trigger.Checkpoint, g *syncGroup) {
	for _, a := range t.queue {
		if a.checkpoint.ID == c.ID {
			a.groups = append(a.groups, g)
			return
		}
	}
	t.queue = append(t.queue, &syncAsk{checkpoint: c, groups: []*syncGroup{g}})
}

// begin makes the job that is to start.
func (t *targetBook) begin(now time.Time, c trigger.Checkpoint, by PushTrigger) *push {
	t.running = &push{checkpoint: c, trigger: by, since: now}
	if by == PushRequested {
		t.running.ask, t.queue = t.queue[0], t.queue[1:]
	}
	return t.running
}

// end enters the outcome of the running job. Only periodic jobs move the timers.
func (t *targetBook) end(now time.Time, err error) {
	p := t.running
	t.running = nil
	t.results[p.trigger] = &PushResult{
		Checkpoint: p.checkpoint.ID, Step: p.checkpoint.Step, Started: p.since, Ended: now, Error: text(err),
	}
	if err == nil && !covers(t.committed, p.checkpoint.Step) {
		t.committed = p.checkpoint
	}
	switch {
	case p.trigger != PushPeriodic:
	case err == nil:
		t.periodicAt, t.failures = now, 0
	default:
		t.failedAt, t.failures = now, t.failures+1
	}
}

// learn takes over the step of what the target holds when that is the newest published checkpoint. Where it holds nothing any more, what this run
// has committed there counts no more either.
func (t *targetBook) learn(published trigger.Checkpoint, s PushState) {
	if s.Committed == uuid.Nil {
		t.committed = trigger.Checkpoint{}
	}
	if s.Committed != uuid.Nil && s.Committed == published.ID && !covers(t.committed, published.Step) {
		t.committed = published
	}
}

// nextPeriodic is when the next periodic push may start, whatever it will push; zero = never.
func (t *targetBook) nextPeriodic(s PushState) time.Time {
	if t.policy.PushEvery <= 0 || s.Fenced || s.Held || t.periodicAt.IsZero() {
		return time.Time{}
	}
	due := t.periodicAt.Add(t.policy.PushEvery)
	if t.failures > 0 {
		if retry := t.failedAt.Add(t.policy.RetryWait(t.failures)); retry.After(due) {
			return retry
		}
	}
	return due
}

// enter takes one target's outcome and tells whether it was the last one.
func (g *syncGroup) enter(target string, err error) (last bool) {
	g.waiting--
	if err == nil {
		g.committed++
	} else {
		err = fmt.Errorf("sync to %s: %w", target, err)
		g.errs = append(g.errs, err)
		if !errors.Is(err, ErrFenced) {
			g.fatal = append(g.fatal, err)
		}
	}
	return g.waiting == 0
}

// verdict of an answered request for status: nil when the checkpoint is on every addressed target that is not fenced, and on one at least.
func (g *syncGroup) verdict() error {
	if g.committed > 0 && len(g.fatal) == 0 {
		return nil
	}
	return errors.Join(g.errs...)
}
