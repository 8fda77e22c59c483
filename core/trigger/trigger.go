// Package trigger decides what a circuit's loop does next: facts in, decision out.
//
// It has no clock, no I/O, no goroutine and no random source. Whoever calls it observes the world, stamps the time and acts on the
// answer; core/circuit is that caller.
package trigger

import (
	"time"

	"github.com/google/uuid"
)

// Policy is what the operator configured. It does not change while a loop runs.
type Policy struct {
	CheckpointEvery time.Duration // 0 = never
	MinBatch        int
	MaxDelay        time.Duration
	Targets         []TargetPolicy
}

// TargetPolicy is the schedule of one sync block.
type TargetPolicy struct {
	Name               string
	PushEvery          time.Duration // 0 = never
	RetryMin, RetryMax time.Duration
}

// Checkpoint names a published checkpoint.
type Checkpoint struct {
	ID   uuid.UUID // Nil = none
	Step uint64
	At   time.Time
}

// Facts is what the loop observed. It holds monotonic times only.
type Facts struct {
	Now               time.Time
	Step              uint64
	Buffered          int
	StepAsked, Paused bool
	Phase             Phase
	CheckpointAsked   bool
	CheckpointCover   uint64 // the step that the request must cover
	CheckpointRunning bool
	CheckpointBlocked string
	CheckpointEndedAt time.Time // of the last attempt, good or bad
	Published         Checkpoint
	Targets           []TargetFacts // in the order of Policy.Targets
}

// Phase is what the circuit is doing with its input.
type Phase uint8

// The phases of a circuit.
const (
	Running Phase = iota
	Replaying
	Bootstrapping
)

// TargetFacts is what is known of one target.
type TargetFacts struct {
	Committed          uuid.UUID // newest there, whoever asked
	Asked              uuid.UUID // head of its queue, Nil = none
	PeriodicAt         time.Time // end of the last periodic commit, else first start of the block
	FailedAt           time.Time
	Failures           int // periodic jobs failed in a row
	Busy, Fenced, Held bool
}

// State is what Decide remembers between two calls.
type State struct{ FlushAt time.Time }

// Kind is what the loop must do.
type Kind uint8

// The kinds of decision.
const (
	Park Kind = iota
	Step
	TakeCheckpoint
	Sync
)

// Decision is the answer.
type Decision struct {
	Kind       Kind
	Target     int
	Checkpoint uuid.UUID
	Periodic   bool
	Until      time.Time // Park; zero = for ever
	Why        string
}
