package circuit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/trigger"
)

// DefaultShutdownTimeout is the default of host.shutdown_timeout.
const DefaultShutdownTimeout = 30 * time.Second

// Config is what a Loop is built from. Circuit, Checkpointer, Now and Log are required.
type Config struct {
	// Circuit is opened by the host before Run, with Loop.Wake as Env.Wake, and closed by the host after Run.
	Circuit Circuit

	// Policy is the schedule; Policy.Targets stand in the order of Targets and under the same names.
	Policy trigger.Policy

	Checkpointer Checkpointer
	Targets      []Target

	// Pin keeps the files of a published checkpoint until release is called; an error when the checkpoint is gone. The loop pins what a
	// requested sync names for as long as that waits or runs. Called from any goroutine. Nil = nothing is ever collected.
	Pin func(id uuid.UUID) (release func(), err error)

	// Obstacle, when set, tells why no checkpoint will be published until somebody acts, in words for people; "" = nothing is known. It is as
	// Pusher.State: cheap, and called from any goroutine.
	Obstacle func() string

	// Now reads the clock; its times carry a monotonic reading, as time.Now's do. Called from any goroutine.
	Now func() time.Time
	Log hclog.Logger

	// Incarnation names this run of the host in Status.
	Incarnation uuid.UUID

	// Restored is the newest published checkpoint at start, restored from or merely found; the zero value when there is none.
	Restored trigger.Checkpoint

	// Opened is what the circuit answers to Facts as it was opened: what a status tells before the loop has looked for the first time. The zero value: not known.
	Opened Facts

	// LastSync is what sync status said when the last run ended; status carries on from there.
	LastSync SyncSummary

	// SaveSync, when set, hears what sync status is about to say, after each push that ended and each requested sync that was refused, so that
	// the host can keep it for the next run. Only when it has returned does Status show the progress and are the requesters answered: what was
	// told to anyone is still true after a kill. Calls come one at a time, in order, from the jobs' goroutines; they may block.
	SaveSync func(SyncSummary)

	// Paused starts the loop without steps until Resume.
	Paused bool

	// ShutdownTimeout bounds a Stop, from the request to the end of the last job, and the wait for jobs after a failed step. 0 =
	// DefaultShutdownTimeout.
	ShutdownTimeout time.Duration
}

// Target is one sync block.
type Target struct {
	Pusher         Pusher
	PushOnShutdown bool // Stop pushes the newest checkpoint here
}

// Checkpointer publishes checkpoints.
type Checkpointer interface {
	// Write publishes a checkpoint of s and returns once it is complete on disk. The loop runs it on a goroutine of its own, one at a time,
	// and releases s afterwards, whatever came of it. The answer names the step of s; an id is never used twice and later ids are greater.
	Write(ctx context.Context, s Snapshot) (trigger.Checkpoint, error)
}

// Pusher moves checkpoints to one target. Push is called one job at a time, on a goroutine of its own; Name and State from any goroutine.
type Pusher interface {
	// Name is the target's, unique in the pipeline.
	Name() string

	// Push returns nil only when the checkpoint's commit exists on the target and State shows it; retries of calls lie within it. An error
	// leaves the job undone. It returns soon after ctx ends.
	Push(ctx context.Context, job PushJob) error

	// State is cheap, never blocks and never calls the loop. What changes in it outside of Push is followed by a Loop.Wake.
	State() PushState
}

// PushJob is one push.
type PushJob struct {
	Checkpoint uuid.UUID
	Trigger    PushTrigger
}

// PushTrigger is what a push was started by.
type PushTrigger string

// What starts a push.
const (
	PushPeriodic  PushTrigger = "periodic"
	PushRequested PushTrigger = "requested"
	PushShutdown  PushTrigger = "shutdown"
)

// PushState is what a target is known to hold. The loop reads PeriodicAt, FailedAt and Failures once, when Run begins; they are wall times of
// an earlier run, and from then on the loop keeps its own.
type PushState struct {
	Committed  uuid.UUID // newest checkpoint complete there, whoever asked; Nil = none known
	PeriodicAt time.Time // end of the last periodic commit, else first start of the sync block; zero = this is the first start
	FailedAt   time.Time // end of the last failed periodic push
	Failures   int       // periodic pushes that failed in a row
	Fenced     bool      // another writer has taken the repository
	Held       bool      // the commits there are not on our history
	Gone       bool      // what was complete there is gone, or known to be broken: no wait for a commit ends by it
	Refused    bool      // it cannot be used as it is; each push tries again
	Reason     string    // why it is fenced, held or gone, or takes no push, in words; "" = nothing is known to be wrong
}

// Validate tells what is missing or does not fit, all of it.
func (c Config) Validate() error {
	var errs []error
	missing := func(absent bool, name string) {
		if absent {
			errs = append(errs, fmt.Errorf("%s is missing", name))
		}
	}
	missing(c.Circuit == nil, "Circuit")
	missing(c.Checkpointer == nil, "Checkpointer")
	missing(c.Now == nil, "Now")
	missing(c.Log == nil, "Log")
	if c.ShutdownTimeout < 0 {
		errs = append(errs, fmt.Errorf("ShutdownTimeout is negative: %v", c.ShutdownTimeout))
	}
	return errors.Join(append(errs, c.validateTargets())...)
}

func (c Config) validateTargets() error {
	if len(c.Targets) != len(c.Policy.Targets) {
		return fmt.Errorf("%d targets for %d target policies", len(c.Targets), len(c.Policy.Targets))
	}
	seen := map[string]bool{}
	for i, t := range c.Targets {
		if t.Pusher == nil {
			return fmt.Errorf("target %d has no Pusher", i)
		}
		name := t.Pusher.Name()
		if policy := c.Policy.Targets[i].Name; name != policy || seen[name] {
			return fmt.Errorf("target %d is named %q, its policy %q: names are equal and unique", i, name, policy)
		}
		seen[name] = true
	}
	return nil
}
