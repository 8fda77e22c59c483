package circuit

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/trigger"
)

// The reasons an ending loop gives for what it does; they go to log and status beside those of the trigger.
const (
	WhyStopCheckpoint  = "stopping: final checkpoint"
	WhyStopPush        = "stopping: final push"
	WhyAwaitUnblocked  = "stopping: waiting until a snapshot can be taken"
	WhyAwaitWritten    = "stopping: waiting for a checkpoint to be written"
	WhyAwaitPushes     = "stopping: waiting for running pushes"
	WhyStepToUnblocked = "stopping: stepping until a snapshot can be taken"
)

// ending is a loop on its way out: what it still owes, until when, and what went wrong.
type ending struct {
	checkpoint bool // cover the current step
	push       bool // then push where PushOnShutdown
	wait       bool // let running jobs end
	deadline   time.Time
	noticed    bool // before the last look at the circuit

	cause   error           // a failed circuit, which is not touched again
	errs    []error         // of a stop: what it did not get done
	pushed  map[string]bool // targets whose final push has begun
	refused bool            // the final checkpoint has failed
}

func newStop(checkpoint bool, deadline time.Time) *ending {
	return &ending{checkpoint: checkpoint, push: checkpoint, wait: checkpoint, deadline: deadline, pushed: map[string]bool{}}
}

// newFailure is the end of a loop whose circuit failed: running jobs may end, nothing else is done.
func newFailure(cause error, deadline time.Time) *ending {
	return &ending{cause: cause, wait: true, deadline: deadline, noticed: true}
}

// abandon gives up what is still owed.
func (e *ending) abandon() { e.checkpoint, e.push, e.wait = false, false, false }

func (e *ending) enterCheckpoint(err error) {
	if err != nil {
		e.refused = true
		e.errs = append(e.errs, fmt.Errorf("final checkpoint: %w", err))
	}
}

func (e *ending) enterPush(target string, err error) {
	if err != nil {
		e.errs = append(e.errs, fmt.Errorf("final push to %s: %w", target, err))
	}
}

// result is what Run returns.
func (e *ending) result() error {
	if e.cause != nil {
		return e.cause
	}
	if len(e.errs) == 0 {
		return nil
	}
	return fmt.Errorf("stop: %w", errors.Join(e.errs...))
}

// decide takes the trigger's place while the loop is ending: checkpoint, pushes, running jobs, in this order. It also tells when all is
// done or given up.
func (e *ending) decide(targets []Target, f trigger.Facts) (d trigger.Decision, done bool) {
	switch {
	case !e.wait:
		return trigger.Decision{}, true
	case !f.Now.Before(e.deadline):
		e.giveUp(targets, f)
		return trigger.Decision{}, true
	case e.owesCheckpoint(f):
		return e.finalCheckpoint(f), false
	}
	for i, t := range targets {
		if e.owesPush(t, f.Targets[i], f.Published) && !f.Targets[i].Busy {
			e.pushed[t.Pusher.Name()] = true
			return trigger.Decision{Kind: trigger.Sync, Target: i, Checkpoint: f.Published.ID, Why: WhyStopPush}, false
		}
	}
	return e.awaitJobs(f)
}

// owesCheckpoint also holds for step 0 with nothing published only when somebody asked: the empty state is not worth one.
func (e *ending) owesCheckpoint(f trigger.Facts) bool {
	empty := f.Step == 0 && !f.CheckpointAsked
	return e.checkpoint && !e.refused && !empty && !covers(f.Published, f.Step)
}

func (e *ending) owesPush(t Target, at trigger.TargetFacts, published trigger.Checkpoint) bool {
	return e.push && t.PushOnShutdown && !e.pushed[t.Pusher.Name()] && !at.Fenced && !at.Held &&
		published.ID != uuid.Nil && published.ID != at.Committed
}

// finalCheckpoint goes on stepping where only steps can end what blocks a snapshot, unless the operator has paused the pipeline.
func (e *ending) finalCheckpoint(f trigger.Facts) trigger.Decision {
	switch {
	case f.CheckpointRunning:
		return trigger.Decision{Until: e.deadline, Why: WhyAwaitWritten}
	case f.CheckpointBlocked == "":
		return trigger.Decision{Kind: trigger.TakeCheckpoint, Why: WhyStopCheckpoint}
	case f.Phase != trigger.Running && !f.Paused && f.Now.Before(f.StepRetryAt()):
		return trigger.Decision{Until: earlier(f.StepRetryAt(), e.deadline), Why: WhyAwaitUnblocked + ": " + f.CheckpointBlocked}
	case f.Phase != trigger.Running && !f.Paused:
		return trigger.Decision{Kind: trigger.Step, Why: WhyStepToUnblocked}
	default:
		return trigger.Decision{Until: e.deadline, Why: WhyAwaitUnblocked + ": " + f.CheckpointBlocked}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (e *ending) awaitJobs(f trigger.Facts) (d trigger.Decision, done bool) {
	if f.CheckpointRunning {
		return trigger.Decision{Until: e.deadline, Why: WhyAwaitWritten}, false
	}
	for _, t := range f.Targets {
		if t.Busy {
			return trigger.Decision{Until: e.deadline, Why: WhyAwaitPushes}, false
		}
	}
	return trigger.Decision{}, true
}

// giveUp says what the deadline cut off.
func (e *ending) giveUp(targets []Target, f trigger.Facts) {
	if e.owesCheckpoint(f) {
		e.errs = append(e.errs, fmt.Errorf("final checkpoint of step %d: %w", f.Step, ErrShutdownTimeout))
	}
	for i, t := range targets {
		busy := f.Targets[i].Busy
		if busy || e.owesPush(t, f.Targets[i], f.Published) {
			e.errs = append(e.errs, fmt.Errorf("push to %s: %w", t.Pusher.Name(), ErrShutdownTimeout))
		}
	}
}
