package syncer

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
)

// keptJobs is how many job records are kept: a day's worth of failures at the trigger's longest backoff, a few kilobytes.
const keptJobs = 50

const stateFormat = 1

// state is what a worker remembers over restarts. It is a memory, not an authority: the repository is looked at before the first push.
type state struct {
	Target    string    `json:"target"`
	Prefix    string    `json:"prefix"`
	Pipeline  uuid.UUID `json:"pipeline"`
	FirstSeen time.Time `json:"first_seen"` // first start of this sync block

	Looked time.Time `json:"looked,omitzero"` // when a job, or a look, last saw the repository, or that it is not ours

	Committed  *CommitRef `json:"committed,omitempty"` // newest commit of ours there, whoever asked
	Lost       *CommitRef `json:"lost,omitempty"`      // what Committed was before the repository was seen to be gone
	Success    uuid.UUID  `json:"success"`
	Periodic   uuid.UUID  `json:"periodic"`
	PeriodicAt time.Time  `json:"periodic_at,omitzero"` // end of the last periodic commit

	Failure         *Failure  `json:"failure,omitempty"`          // last failed requested job, until a later one succeeds
	PeriodicFailure *Failure  `json:"periodic_failure,omitempty"` // last failed periodic job, until a later one succeeds
	FailedAt        time.Time `json:"failed_at,omitzero"`
	Failures        int       `json:"failures"` // periodic jobs failed in a row

	Maintenance *Maintenance `json:"maintenance,omitempty"` // the last run, as of the last job

	Rights  *ProbeReport `json:"rights,omitempty"` // as last probed; a memory for status, every session asks for itself
	Proof   *Proof       `json:"proof,omitempty"`  // of the last verification that found nothing wrong; never of a commit that Damage names
	Deeper  []Proof      `json:"deeper_proofs,omitempty"`
	Damage  *Damage      `json:"damage,omitempty"` // nil = none is known
	Adopted *adoption    `json:"adopted,omitempty"`
	LastJob uint64       `json:"last_job"`
	Jobs    []JobRecord  `json:"jobs"` // oldest first, at most keptJobs

	recalled bool // it was loaded; else it is new, or rebuilt from the target
}

// CommitRef names a commit and what it holds.
type CommitRef struct {
	Number     uint64    `json:"number"`
	Checkpoint uuid.UUID `json:"checkpoint"`
	Step       uint64    `json:"step"`
	At         time.Time `json:"at"` // when it was confirmed here
}

func refOf(c *known) CommitRef {
	return CommitRef{Number: c.Number, Checkpoint: c.Checkpoint.ID, Step: c.Checkpoint.Step}
}

// Failure is a job that failed.
type Failure struct {
	Checkpoint uuid.UUID `json:"checkpoint"`
	Error      string    `json:"error"`
	At         time.Time `json:"at"`
}

// adoption is the operator's word that our state shall follow that commit, although it is not on our history.
type adoption struct {
	Commit uint64            `json:"commit"`
	SHA256 repository.Digest `json:"sha256"`
}

// begin gives the next record.
func (s *state) begin(job Job, now time.Time) JobRecord {
	s.LastJob++
	if job.Trigger == Requested && s.Failure != nil && s.Failure.Checkpoint == job.Checkpoint {
		s.Failure = nil
	}
	return JobRecord{ID: s.LastJob, Checkpoint: job.Checkpoint, Trigger: job.Trigger, State: JobRunning, Started: now}
}

// keep stores the record of a job, in place of an earlier one of the same id.
func (s *state) keep(rec JobRecord) {
	if n := len(s.Jobs); n > 0 && s.Jobs[n-1].ID == rec.ID {
		s.Jobs[n-1] = rec
		return
	}
	s.Jobs = append(s.Jobs, rec)
	s.Jobs = slices.Delete(s.Jobs, 0, max(0, len(s.Jobs)-keptJobs))
}

// committed takes over what the repository was seen to hold: the newest commit of our line, confirmed, or none.
func (s *state) committed(newest *known, now time.Time) {
	switch {
	case newest == nil:
		s.Committed = nil
		return
	case s.Committed == nil || s.Committed.Number != newest.Number || s.Committed.Checkpoint != newest.Checkpoint.ID:
		s.Committed = &CommitRef{Number: newest.Number, Checkpoint: newest.Checkpoint.ID, Step: newest.Checkpoint.Step, At: now}
	}
	s.Lost = nil
}

// lose notes that the repository is gone, or is not ours any more: what was committed is not shown as committed, and not forgotten.
func (s *state) lose() {
	if s.Committed != nil {
		s.Committed, s.Lost = nil, s.Committed
	}
	s.Proof, s.Deeper, s.Damage = nil, nil, nil
}

// held is the newest commit of ours that we know to have been there; nil = none, or the operator gave it up.
func (s *state) held() *CommitRef { return cmp.Or(s.Committed, s.Lost) }

// knows says whether a commit of this storage path was pushed from what lies in it now, or was tried: each job's record is saved before its first
// call. Of one that is older than all the records, in a target that was put back, they say nothing; then it is for the history to say.
func (s *state) knows(c CommitRef) bool {
	held := s.held()
	return held != nil && held.Checkpoint == c.Checkpoint ||
		slices.ContainsFunc(s.Jobs, func(job JobRecord) bool { return job.Checkpoint == c.Checkpoint }) ||
		held != nil && c.Number < held.Number && s.olderThanRecords(c.Checkpoint)
}

// olderThanRecords goes by the ids of checkpoints, which rise with time (UUID version 7).
func (s *state) olderThanRecords(checkpoint uuid.UUID) bool {
	return len(s.Jobs) == keptJobs && !slices.ContainsFunc(s.Jobs, func(job JobRecord) bool {
		return bytes.Compare(job.Checkpoint[:], checkpoint[:]) < 0
	})
}

// forget gives up what was there: the operator has seen that it is not.
func (s *state) forget() {
	s.Committed, s.Lost = nil, nil
	s.Proof, s.Deeper, s.Damage = nil, nil, nil
}

// succeeded moves what the job's trigger may move. The commit exists and has been confirmed.
func (s *state) succeeded(rec JobRecord) {
	switch rec.Trigger {
	case Requested:
		s.Success, s.Failure = rec.Checkpoint, nil
	case Periodic:
		s.Periodic, s.PeriodicAt, s.PeriodicFailure, s.Failures = rec.Checkpoint, rec.Finished, nil, 0
	}
}

// failed notes a failure. Held, fenced and cancelled jobs count as no failure of the target: trying again changes nothing there.
func (s *state) failed(rec JobRecord) {
	failure := &Failure{Checkpoint: rec.Checkpoint, Error: rec.Error, At: rec.Finished}
	switch rec.Trigger {
	case Requested:
		s.Failure = failure
	case Periodic:
		s.PeriodicFailure = failure
		if rec.State == JobFailed || rec.State == JobUnresolved {
			s.Failures++
			s.FailedAt = rec.Finished
		}
	}
}

// interrupted closes the records of jobs that a crash cut short.
func (s *state) interrupted(now time.Time) {
	for i := range s.Jobs {
		if s.Jobs[i].State == JobRunning {
			s.Jobs[i].State, s.Jobs[i].Finished = JobCancelled, now
			s.Jobs[i].Error = "the host ended during this job"
		}
	}
}

// memory is where a state lies: a file, or memory in tests.
type memory interface {
	load() ([]byte, error) // fs.ErrNotExist when nothing was ever saved
	save(data []byte) error
	setAside() error // keeps a damaged state for whoever wants to look at it
}

type stateFile string

func (f stateFile) load() ([]byte, error) { return os.ReadFile(string(f)) }

func (f stateFile) save(data []byte) error {
	if err := os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
		return err
	}
	return checkpoint.ReplaceFile(string(f), data)
}

func (f stateFile) setAside() error { return os.Rename(string(f), string(f)+".damaged") }

// sealedState is a state as it is saved: with a digest, for damaged JSON may still be JSON.
type sealedState struct {
	Format int             `json:"format"`
	SHA256 string          `json:"sha256"`
	State  json.RawMessage `json:"state"`
}

func encodeState(s *state) ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode sync state: %w", err)
	}
	sum := sha256.Sum256(text)
	return json.Marshal(sealedState{Format: stateFormat, SHA256: hex.EncodeToString(sum[:]), State: text})
}

func decodeState(data []byte) (*state, error) {
	var sealed sealedState
	if err := json.Unmarshal(data, &sealed); err != nil {
		return nil, err
	}
	if sealed.Format != stateFormat {
		return nil, fmt.Errorf("format %d, this version reads %d", sealed.Format, stateFormat)
	}
	if sum := sha256.Sum256(sealed.State); hex.EncodeToString(sum[:]) != sealed.SHA256 {
		return nil, errors.New("its digest does not match")
	}
	s := &state{}
	if err := json.Unmarshal(sealed.State, s); err != nil {
		return nil, err
	}
	return s, nil
}

// recall loads the state of a sync block. What was damaged, if anything, is said in words: the state is then empty, the file is set
// aside, and what is committed will be known again from the repository.
func recall(m memory, fresh state) (s *state, damage string, err error) {
	data, err := m.load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &fresh, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("read sync state: %w", err)
	}
	s, err = decodeState(data)
	if err != nil {
		damage = fmt.Sprintf("the saved sync state was damaged (%v) and is set aside; it is rebuilt from the target", err)
		return &fresh, damage, m.setAside()
	}
	if s.Target != fresh.Target || s.Prefix != fresh.Prefix || s.Pipeline != fresh.Pipeline {
		return &fresh, "", nil // the block now names another repository: nothing that is remembered holds there
	}
	s.interrupted(fresh.FirstSeen)
	s.recalled = true
	return s, "", nil
}

func (s *state) adoptedCommit() uint64 {
	if s.Adopted == nil {
		return 0
	}
	return s.Adopted.Commit
}
