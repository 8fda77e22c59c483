package trigger

import (
	"time"

	"github.com/google/uuid"
)

// Policy is what the operator configured. It does not change while a loop runs.
type Policy struct {
	// CheckpointEvery is the time between automatic checkpoints; 0 or less = only on request.
	CheckpointEvery time.Duration

	// MinBatch is the number of buffered records that may wait for more to come; above it a step is taken at once. 0 or
	// less = none waits.
	MinBatch int

	// MaxDelay bounds how long buffered records wait for more. 0 or less = none waits.
	MaxDelay time.Duration

	// Targets are the sync blocks, in configuration order.
	Targets []TargetPolicy
}

// TargetPolicy is the schedule of one sync block.
type TargetPolicy struct {
	// Name is the target's, unique in the pipeline. It seeds the jitter of RetryWait.
	Name string

	// PushEvery is the time from the end of one periodic commit to the start of the next push; 0 or less = only on request.
	PushEvery time.Duration

	// RetryMin and RetryMax bound the wait after a failed periodic push. A RetryMin of 0 or less counts as one second, and a RetryMax
	// below RetryMin counts as RetryMin: no policy makes a failing target spin.
	RetryMin, RetryMax time.Duration
}

// Checkpoint names a published checkpoint.
type Checkpoint struct {
	ID   uuid.UUID // Nil = none; then the other fields mean nothing
	Step uint64    // the state it holds
	At   time.Time // when it was published
}

// Facts is what the loop observed. It holds monotonic times only; a zero time lies before every other.
type Facts struct {
	Now time.Time

	// Step is the circuit's last committed step. 0 = the empty state it starts from.
	Step uint64

	// Buffered is the number of records that wait for a step.
	Buffered int

	// StepAsked is the circuit's own wish for a step, whatever is buffered. Paused holds back every step.
	StepAsked, Paused bool

	// StepFailedAt is the end of the last step that found a disk full, and StepFailures how many did so in a row; a step that moves the
	// state sets it to 0. Such a step has changed nothing and is tried again.
	StepFailedAt time.Time
	StepFailures int

	Phase Phase

	// CheckpointAsked: somebody waits for a checkpoint that covers the step CheckpointCover. Of several that are not answered yet it is
	// the lowest: the one that is taken for it covers every other whose step has been reached.
	CheckpointAsked bool
	CheckpointCover uint64

	// CheckpointRunning: one is being written. CheckpointBlocked: why the circuit can give no snapshot now, "" = it can.
	CheckpointRunning bool
	CheckpointBlocked string

	// CheckpointEndedAt is the end of the last attempt, good or bad; zero = none yet in this run.
	CheckpointEndedAt time.Time

	// Published is the newest complete local checkpoint, also when it was restored or found at start. A failed attempt leaves it alone.
	Published Checkpoint

	// Targets stands in the order of Policy.Targets and is as long.
	Targets []TargetFacts
}

// Phase is what the circuit is doing with its input.
type Phase uint8

// The phases of a circuit.
const (
	Running       Phase = iota // steps follow input
	Replaying                  // input that was already seen goes through again: step after step
	Bootstrapping              // new state is computed from old input: step after step
)

// String names the phase as status and log do.
func (p Phase) String() string {
	switch p {
	case Replaying:
		return "replaying"
	case Bootstrapping:
		return "bootstrapping"
	default:
		return "running"
	}
}

// TargetFacts is what is known of one target.
type TargetFacts struct {
	// Committed is the newest checkpoint that is complete there, whoever asked for it; Nil = none known.
	Committed uuid.UUID

	// Asked is the head of the target's queue of requested syncs; Nil = the queue is empty.
	Asked uuid.UUID

	// PeriodicAt is the end of the last periodic commit; without one, the first start of the sync block. Requested syncs do not move it.
	PeriodicAt time.Time

	// FailedAt is the end of the last failed periodic push, and Failures how many failed in a row; a periodic commit sets it to 0.
	FailedAt time.Time
	Failures int

	// Busy: a job runs. Fenced: another writer has taken the repository. Held: its history is not ours. None of them gets a job.
	Busy, Fenced, Held bool
}

// State is what Decide remembers between two calls. The zero State is the right one to begin with, after every start.
type State struct {
	// FlushAt is when the oldest buffered record will have waited MaxDelay; zero = nothing is buffered.
	FlushAt time.Time
}

// Kind is what the loop must do.
type Kind uint8

// The kinds of decision.
const (
	Park           Kind = iota // wait until Decision.Until or for an event, whichever comes first
	Step                       // take one step
	TakeCheckpoint             // snapshot the circuit and write the checkpoint in the background
	Sync                       // start a job that pushes Decision.Checkpoint to Decision.Target
)

// String names the kind as log and stories do.
func (k Kind) String() string {
	switch k {
	case Step:
		return "step"
	case TakeCheckpoint:
		return "checkpoint"
	case Sync:
		return "sync"
	default:
		return "park"
	}
}

// Decision is the answer.
type Decision struct {
	Kind       Kind
	Target     int       // Sync: index into Policy.Targets
	Checkpoint uuid.UUID // Sync: what to push, never Nil
	Periodic   bool      // Sync: on the interval; false = requested
	Until      time.Time // Park: always later than Facts.Now; zero = for ever
	Why        string    // one of the Why constants
}
