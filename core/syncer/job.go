package syncer

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/sdk"
)

// Trigger says who asked for a job.
type Trigger string

// The triggers. Only Requested moves Status.Success and only Periodic moves Status.Periodic.
const (
	Periodic  Trigger = "periodic"  // push_interval
	Requested Trigger = "requested" // a person or a program, through the API
	Shutdown  Trigger = "shutdown"  // push_on_shutdown
	Repairing Trigger = "repair"    // Worker.Repair has found the newest commit broken

	Publication Trigger = "checkpoint" // of object storage, where a checkpoint counts once it is committed
)

// Job is one push: the checkpoint of that id shall be committed on the target.
type Job struct {
	Checkpoint uuid.UUID
	Trigger    Trigger
}

// JobState is how far a job came.
type JobState string

// The states of a job. All but Running are final.
const (
	JobRunning    JobState = "running"
	JobSucceeded  JobState = "succeeded"
	JobFailed     JobState = "failed"
	JobHeld       JobState = "held"       // the target's history is not ours, or ours is gone from it: nothing was written
	JobFenced     JobState = "fenced"     // another writer has taken over
	JobCancelled  JobState = "cancelled"  // the host gave it up; the commit may exist
	JobUnresolved JobState = "unresolved" // the store never answered: the commit may exist, the next job looks first
)

// JobRecord is what remains of a job.
type JobRecord struct {
	ID         uint64    `json:"id"` // counted per worker, from 1, across restarts
	Checkpoint uuid.UUID `json:"checkpoint"`
	Trigger    Trigger   `json:"trigger"`
	State      JobState  `json:"state"`
	Commit     uint64    `json:"commit,omitempty"` // the number under which the checkpoint is committed
	Attempts   int       `json:"attempts"`         // the most that any one call needed; 1 = nothing was repeated
	Started    time.Time `json:"started"`
	Finished   time.Time `json:"finished,omitzero"`
	Bytes      int64     `json:"bytes"`                // stored by this job
	Objects    int64     `json:"objects"`              // stored by this job
	Requests   int64     `json:"requests"`             // calls made to the store, repeated ones included
	Error      string    `json:"error,omitempty"`      // why it ended or, while it runs, why a call is repeated
	Next       time.Time `json:"next,omitzero"`        // while it runs: when that call is made again
	StuckSince time.Time `json:"stuck_since,omitzero"` // while it runs: since when nothing has succeeded
}

// tally counts what one job does; calls of several goroutines report to it.
type tally struct {
	mu  sync.Mutex
	now func() time.Time
	rec JobRecord
}

func newTally(now func() time.Time, rec JobRecord) *tally {
	rec.StuckSince = now()
	return &tally{now: now, rec: rec}
}

// called counts one answered call and that it was the given attempt.
func (t *tally) called(attempt int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rec.Requests++
	t.rec.Attempts = max(t.rec.Attempts, attempt)
	if err == nil {
		t.rec.Error, t.rec.Next, t.rec.StuckSince = "", time.Time{}, t.now()
	}
}

// waiting notes that a call failed and will be made again.
func (t *tally) waiting(err error, next time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rec.Error, t.rec.Next = explained(err), next
}

// stored counts an object that the store has taken.
func (t *tally) stored(size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rec.Objects++
	t.rec.Bytes += size
}

// snapshot is the record so far.
func (t *tally) snapshot() JobRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rec
}

// finish is the record as it is kept.
func (t *tally) finish(state JobState, commit uint64, err error) JobRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	rec := t.rec
	rec.State, rec.Commit, rec.Finished = state, commit, t.now()
	rec.Error, rec.Next, rec.StuckSince = "", time.Time{}, time.Time{}
	if err != nil {
		rec.Error = explained(err)
	}
	return rec
}

// explained is an error as a person reads it in status: with what the store's side says can be done about it.
func explained(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*sdk.Error](err); ok && e.Hint != "" && !strings.Contains(text, e.Hint) {
		return text + ": " + e.Hint
	}
	return text
}
