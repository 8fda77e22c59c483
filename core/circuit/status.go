package circuit

import (
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/trigger"
)

// State is where a loop is between New and the end of Run.
type State string

// The states of a loop.
const (
	StateStarting State = "starting" // Run has not been called
	StateRunning  State = "running"
	StatePaused   State = "paused"   // no steps; checkpoints and pushes go on
	StateStopping State = "stopping" // told to stop, or failed and waiting for jobs
	StateStopped  State = "stopped"  // with Error when not all of a stop could be done
	StateFailed   State = "failed"   // the circuit failed; Error tells how
)

// Status is one consistent look at a loop. It shares nothing with it. Moments carry the loop's clock.
type Status struct {
	State       State
	Error       string // of an ended or ending loop
	Incarnation uuid.UUID

	// What the circuit said at the last look.
	Step     uint64
	Buffered int
	Phase    Phase
	Blocked  string // why no snapshot can be taken, "" = it can
	Totals   Totals

	StepFailure *StepFailure // of steps that find a disk full; nil = the last one got through

	// The last decision, and the moment of the next look when the loop is parked on a timer.
	Doing string
	Why   string
	Until time.Time

	Checkpoint CheckpointStatus
	Sync       SyncSummary
	Targets    []TargetStatus // in configuration order
}

// Totals counts what the steps of this run did.
type Totals struct{ Steps, Applied, Rejected uint64 }

// CheckpointStatus is what Status tells about checkpoints.
type CheckpointStatus struct {
	Success   uint64             // greatest request sequence that was answered well; 0 = none
	Failure   *CheckpointFailure // last request that failed; nil = none
	Waiting   []uint64           // sequences without an answer
	Published trigger.Checkpoint // newest; a failed attempt leaves it alone
	Running   *RunningJob        // nil = none
	Last      *CheckpointAttempt // last one that ended, asked for or not; nil = none in this run
}

// CheckpointFailure is a request whose attempt failed.
type CheckpointFailure struct {
	Sequence uint64
	Error    string
	FailedAt time.Time
}

// CheckpointAttempt is a checkpoint that was published or failed.
type CheckpointAttempt struct {
	Step           uint64
	Started, Ended time.Time
	Checkpoint     uuid.UUID // Nil when it failed
	Error          string    // "" when it was published
}

// RunningJob is a job that has not ended.
type RunningJob struct {
	Checkpoint uuid.UUID // Nil for one that is being written
	Step       uint64
	Trigger    PushTrigger // "" for a checkpoint
	Since      time.Time
}

// SyncSummary is sync over all targets. Success moves only by requested syncs, Periodic only by periodic ones, both only after the commit exists
// on every addressed target that is not fenced.
type SyncSummary struct {
	Success         uuid.UUID    // newest; Nil = none
	Failure         *SyncFailure // last requested sync that failed; gone when a request for the same checkpoint starts
	Periodic        uuid.UUID    // newest; Nil = none
	PeriodicFailure *SyncFailure // last periodic push that failed; gone when Periodic moves
	Running         uuid.UUID    // newest checkpoint that is being pushed now; Nil = none
}

// SyncFailure is a sync that failed.
type SyncFailure struct {
	Checkpoint uuid.UUID
	Error      string
	At         time.Time // when it had failed: tells two failures of one checkpoint apart
}

// TargetStatus is what Status tells about one sync block.
type TargetStatus struct {
	Name         string
	Committed    uuid.UUID // newest checkpoint complete there; Nil = none known
	Fenced, Held bool
	Asked        []uuid.UUID // requested syncs that wait, in order
	Running      *RunningJob // nil = none
	NextPeriodic time.Time   // earliest start of the next periodic push; past = it waits for a new checkpoint or a running job; zero = never
	Failures     int         // periodic pushes that failed in a row

	// The last job of each kind that ended in this run; nil = none.
	Requested, Periodic, Shutdown *PushResult
}

// PushResult is a push that ended.
type PushResult struct {
	Checkpoint     uuid.UUID
	Step           uint64
	Started, Ended time.Time
	Error          string // "" when it committed
}

// Status may be called from any goroutine, at any time.
func (l *Loop) Status() Status {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	s := l.book.status()
	s.Incarnation = l.cfg.Incarnation
	return s
}

func (b *book) status() Status {
	s := Status{
		State: b.shownState(), Error: b.shownError(), Totals: b.totals,
		Step: b.seen.Step, Buffered: b.seen.Buffered, Phase: b.seen.Phase, Blocked: b.seen.Blocked,
		Doing: b.decision.Kind.String(), Why: b.decision.Why, Until: b.decision.Until,
		Checkpoint: b.checkpoints.status(), Sync: b.sync, StepFailure: b.steps.status(),
	}
	s.Sync = b.sync.copied()
	s.Sync.Success, s.Sync.Periodic = b.saved.success, b.saved.periodic
	for _, t := range b.targets {
		shown := t.status()
		s.Targets = append(s.Targets, shown)
		if shown.Running != nil {
			s.Sync.Running = newer(s.Sync.Running, shown.Running.Checkpoint)
		}
	}
	return s
}

func (b *book) shownState() State {
	switch {
	case b.state != StateRunning:
		return b.state
	case b.ending != nil:
		return StateStopping
	case b.paused:
		return StatePaused
	default:
		return StateRunning
	}
}

func (b *book) shownError() string {
	if b.err == nil && b.ending != nil {
		return text(b.ending.cause)
	}
	return text(b.err)
}

func (c *checkpointBook) status() CheckpointStatus {
	s := CheckpointStatus{Success: c.success, Failure: clone(c.failure), Published: c.published, Last: clone(c.last)}
	for _, a := range c.asks {
		s.Waiting = append(s.Waiting, a.sequence)
	}
	if c.running != nil {
		s.Running = &RunningJob{Step: c.running.step, Since: c.running.since}
	}
	return s
}

func (t *targetBook) status() TargetStatus {
	at := t.Pusher.State()
	s := TargetStatus{
		Name: t.Pusher.Name(), Committed: at.Committed, Fenced: at.Fenced, Held: at.Held,
		NextPeriodic: t.nextPeriodic(at), Failures: t.failures,
		Requested: clone(t.results[PushRequested]), Periodic: clone(t.results[PushPeriodic]), Shutdown: clone(t.results[PushShutdown]),
	}
	for _, a := range t.queue {
		s.Asked = append(s.Asked, a.checkpoint.ID)
	}
	if p := t.running; p != nil {
		s.Running = &RunningJob{Checkpoint: p.checkpoint.ID, Step: p.checkpoint.Step, Trigger: p.trigger, Since: p.since}
	}
	return s
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
