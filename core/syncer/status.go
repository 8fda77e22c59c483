package syncer

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
)

// Condition is what a worker can do at the moment.
type Condition string

// The conditions.
const (
	Ready   Condition = "ready"
	Pushing Condition = "pushing"
	Held    Condition = "held"    // the target's history is not ours, or what we committed there is gone; adopt is the way on
	Fenced  Condition = "fenced"  // another writer has taken over; this one has stopped
	Refused Condition = "refused" // this target cannot be used as it is; every job looks again

	// Unavailable is Ready of a target that did not answer when it was asked how it stands, at the start or for a claim, and has not since.
	Unavailable Condition = "unavailable"
)

// Status is what a worker knows about its target: a value, safe to keep. Nothing in it is told before the commit exists and was confirmed.
type Status struct {
	Target    string    `json:"target"`
	Prefix    string    `json:"prefix"`
	Condition Condition `json:"condition"`
	Reason    string    `json:"reason,omitempty"` // of a condition that is not ready, in words for an operator
	Behind    uint64    `json:"behind,omitempty"` // held: steps of the target's history that ours never passed through
	Epoch     uint64    `json:"epoch,omitempty"`  // ours, once claimed
	Head      uint64    `json:"head,omitempty"`   // newest commit number known, once listed

	Looked  time.Time    `json:"looked,omitzero"` // when the target was last asked whether the repository is still ours; zero = never. It was then as the status says
	Fencing Fencing      `json:"fencing"`
	Rights  *ProbeReport `json:"rights,omitempty"` // as last probed, in this run or one before; nil = never

	Committed  *CommitRef `json:"committed,omitempty"`
	Lost       *CommitRef `json:"lost,omitempty"`          // what Committed was before the repository was seen to be gone; nil = it was not
	Proof      *Proof     `json:"proof,omitempty"`         // of the last verification that found nothing wrong; nil = never, or what it proved has gone or is broken
	Deeper     []Proof    `json:"deeper_proofs,omitempty"` // older ones that went deeper than all after them, newest first; nobody changes them
	Damage     *Damage    `json:"damage,omitempty"`        // nil = none is known; nobody changes it
	Success    uuid.UUID  `json:"success"`                 // last id committed by a requested job; Nil = none
	Periodic   uuid.UUID  `json:"periodic"`                // last id committed by a periodic job; Nil = none
	PeriodicAt time.Time  `json:"periodic_at"`             // when that job ended, else the first start of this sync block

	Failure         *Failure  `json:"failure,omitempty"`
	PeriodicFailure *Failure  `json:"periodic_failure,omitempty"`
	FailedAt        time.Time `json:"failed_at,omitzero"`
	Failures        int       `json:"failures"` // periodic jobs failed in a row

	Maintenance *Maintenance `json:"maintenance,omitempty"` // the last run of retention and sweep; nil = never

	TakenBy *repository.Epoch `json:"taken_by,omitempty"` // fenced: who holds the repository
	Running *JobRecord        `json:"running,omitempty"`
	Jobs    []JobRecord       `json:"jobs"` // finished ones, newest last

	// Trouble is what went wrong with the worker's own records: a damaged state file, a full disk. Pushes go on.
	Trouble string `json:"trouble,omitempty"`
}

// Status answers at any time, also while a job runs. It makes no call to the store.
func (w *Worker) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Status{
		Target: w.cfg.Target, Prefix: w.cfg.Prefix,
		Condition: w.condition, Reason: w.reason, Behind: w.behind, Epoch: w.epoch, Head: w.head, TakenBy: w.takenBy,
		Looked: w.shown.Looked, Fencing: cmp.Or(w.cfg.Fencing, FencingRequired), Rights: w.shown.Rights,
		Committed: w.shown.Committed, Lost: w.shown.Lost, Proof: w.shown.Proof, Deeper: w.shown.Deeper, Damage: w.shown.Damage,
		Success: w.shown.Success, Periodic: w.shown.Periodic, PeriodicAt: w.shown.PeriodicAt,
		Failure: w.shown.Failure, PeriodicFailure: w.shown.PeriodicFailure, FailedAt: w.shown.FailedAt, Failures: w.shown.Failures,
		Trouble: w.trouble, Maintenance: w.maintenance,
	}
	if s.PeriodicAt.IsZero() {
		s.PeriodicAt = w.shown.FirstSeen
	}
	s.Jobs = slices.Clone(w.shown.Jobs)
	if w.running != nil {
		rec := w.running.snapshot()
		s.Running = &rec
		s.Jobs = slices.DeleteFunc(s.Jobs, func(r JobRecord) bool { return r.ID == rec.ID })
		if s.Condition == Ready {
			s.Condition = Pushing
		}
	}
	w.overlay(&s)
	return s
}
