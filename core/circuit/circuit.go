package circuit

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/hashicorp/go-hclog"
)

// ErrDamaged is what Inspect returns when live state exists but must not be used.
var ErrDamaged = errors.New("live state is damaged")

// Circuit is one stateful computation. The loop's goroutine calls every method, one at a time, except where said.
type Circuit interface {
	// Identity is fixed from construction. A checkpoint of another Kind or Fingerprint is refused before Restore.
	Identity() Identity

	// Inspect says what live state lies in dir; it changes nothing. ErrDamaged when the state must not be used.
	Inspect(ctx context.Context, dir string) (Live, error)

	// Restore fills the empty dir with a live state equal to the checkpoint, which is verified and read-only:
	// files may be copied, reflinked, or hard-linked when the circuit never modifies them.
	Restore(ctx context.Context, checkpoint, dir string) error

	// Open takes dir as its live state and starts what it needs; an empty dir is a fresh start. Once, before Step.
	Open(ctx context.Context, env Env) error

	// Facts is cheap and never blocks.
	Facts() Facts

	// Step consumes buffered input and commits state and input positions together, or changes nothing. It returns soon after ctx ends, also in
	// the middle of its work; an error that then has ctx's error in its chain is no failure of the circuit, and neither is one with ErrNoSpace:
	// that step is tried again.
	Step(ctx context.Context) (StepResult, error)

	// Snapshot pins the state as of now, between two steps. It blocks the loop: milliseconds, whatever the size.
	Snapshot(ctx context.Context) (Snapshot, error)

	Close() error
}

// Snapshot is pinned state. Write runs on another goroutine while steps go on.
type Snapshot interface {
	Step() uint64
	// Write puts regular files below the empty dir. A hard link is allowed for a file nobody ever modifies again.
	Write(ctx context.Context, dir string) error
	Release() // once, after Write or instead of it
}

// Identity says which circuit a state belongs to.
type Identity struct {
	Kind        string   // "sql"
	Fingerprint [32]byte // of whatever makes a state of one configuration unusable under another
}

// Live is what lies in a live directory.
type Live struct {
	Exists bool
	Exact  bool   // Step is known; when false the live state is kept, never replaced by a checkpoint
	Step   uint64 // last committed step
}

// Env is what the host lends a circuit.
type Env struct {
	Dir  string // after Open the host keeps a hidden file of its own there, which Inspect passes over
	Wake func() // any goroutine may call it; it never blocks; calls coalesce. New input, end of a phase, a clock
	Log  hclog.Logger
}

// Facts is what the loop asks before every decision.
type Facts struct {
	Step      uint64 // last committed step; equal numbers mean equal state
	Buffered  int
	StepAsked bool
	Phase     Phase
	Blocked   string // why no snapshot can be taken now; "" = it can
}

// Phase is what the circuit is doing with its input.
type Phase uint8

// The phases of a circuit.
const (
	Running Phase = iota
	Replaying
	Bootstrapping
)

// StepResult tells what a step did.
type StepResult struct {
	Step              uint64
	Applied, Rejected int
}

// Ingester is optional; the API offers what the circuit has. Its methods are called concurrently.
type Ingester interface {
	// Ingest returns when the batch is applied and committed in the live state, whole or not at all.
	Ingest(ctx context.Context, input string, b Batch) (IngestResult, error)

	// Position is the greatest Seq of source that the live state holds for input; 0 when it holds none.
	Position(ctx context.Context, input, source string) (uint64, error)
}

// Batch is what one client sent in one request.
type Batch struct {
	Source string // "" = no deduplication: a client that repeats a request after a lost answer counts twice
	Seq    uint64 // per source, rising; a batch at or below the source's position is answered Duplicate
	Type   string // the body's Content-Type, as the client sent it; "" = it sent none
	Body   io.Reader
}

// IngestResult tells what became of a batch.
type IngestResult struct {
	Step              uint64 // ?wait=checkpoint and ?wait=commit wait until this step is covered
	Applied, Rejected int
	FirstRefusal      string // why the first of the rejected records was refused, with its position; "" = none was
	Duplicate         bool
	Note              string // what the client should know of a batch that was applied; "" = nothing
}

// Querier is optional: read-only questions to the live state.
type Querier interface {
	// Query streams rows; an error ends the sequence. Called concurrently with Step.
	Query(ctx context.Context, text string) (iter.Seq2[[]Column, error], error)
}

// Column is one value of a row.
type Column struct {
	Name  string
	Value any
}
