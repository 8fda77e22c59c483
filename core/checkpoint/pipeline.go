package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
)

// Pipeline is pipeline.json: what a pipeline must remember beside its state.
type Pipeline struct {
	ID       uuid.UUID   `json:"id"`       // of the pipeline, the same on every machine; Nil until it is known, before the first state
	Writer   uuid.UUID   `json:"writer"`   // of this storage path: two machines with one pipeline are two writers
	Desired  Desired     `json:"desired"`  // the state an operator asked for last
	Honoured []uuid.UUID `json:"honoured"` // values of start_from_checkpoint that were obeyed already
	History  History     `json:"history"`

	// Openers are the runs one of which was the last to open the live state; Nil among them = it may not say. None = nothing is known, as in a file
	// from before this was noted.
	Openers []uuid.UUID `json:"openers,omitempty"`

	Restoring *Restoring `json:"restoring,omitempty"` // a restore in place that is neither done nor given up

	// What follows is a standby's. A pipeline that never was one has nothing of it in its file, as before there were standbys.

	Standby    bool        `json:"standby,omitempty"`    // it follows a target until it is activated, also while it is stopped
	Followed   *Followed   `json:"followed,omitempty"`   // the newest commit that is here whole; nil = none
	Activation *Activation `json:"activation,omitempty"` // asked for, and neither done nor refused
}

// Followed is a commit that a standby has pulled whole.
type Followed struct {
	Target     string    `json:"target"`
	Prefix     string    `json:"prefix"`
	Number     uint64    `json:"number"`
	Checkpoint uuid.UUID `json:"checkpoint"`
	Step       uint64    `json:"step"`
	Created    time.Time `json:"created"`        // of the checkpoint, by the clock of the host that took it
	Seed       bool      `json:"seed,omitempty"` // it is of the seed: nothing of our own was there
}

// Activation is an operator's word that a standby shall become the primary. It stands in the file from before anything is done about it
// until the state of the new primary stands, so that a restart goes on with it.
type Activation struct {
	AcceptLocal bool      `json:"accept_local,omitempty"` // the local copy will do when the newest commit cannot be had
	Target      string    `json:"target,omitempty"`       // only this one has to answer; "" = all of them
	Asked       time.Time `json:"asked"`
}

// Desired is the state that a pipeline shall be in after the next start of the host.
type Desired string

// The desired states.
const (
	Running Desired = "running"
	Paused  Desired = "paused"
	Stopped Desired = "stopped"
	Standby Desired = "standby"
)

// History is the line of descent of a state: one Reign after another, the last one being the current lineage.
type History []Reign

// Reign is a stretch of history: Lineage produced the steps up to and including UpTo.
type Reign struct {
	Lineage uuid.UUID `json:"lineage"`
	UpTo    uint64    `json:"up_to"`
}

const pipelineRemedy = "put the file back from a copy, or move the whole storage path away and start from a target"

// Pipeline reads pipeline.json. It answers fs.ErrNotExist only when the storage path holds no state and no checkpoint either: a
// missing file beside data, like a damaged one, is a *CorruptError.
func (d *Dir) Pipeline() (Pipeline, error) {
	path := d.pipelineFile()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Pipeline{}, d.withoutPipelineFile(err)
	}
	if err != nil {
		return Pipeline{}, err
	}
	var p Pipeline
	if err := openJSON(path, data, &p); err != nil {
		return Pipeline{}, withRemedy(err, pipelineRemedy)
	}
	if err := checkPipeline(p); err != nil {
		return Pipeline{}, &CorruptError{Path: path, Err: err, Remedy: pipelineRemedy}
	}
	return p, nil
}

// SavePipeline replaces pipeline.json, atomically and durably. A host saves it before it makes any state.
func (d *Dir) SavePipeline(p Pipeline) error {
	if err := checkPipeline(p); err != nil {
		return fmt.Errorf("save pipeline: %w", err)
	}
	data, err := sealJSON(p)
	if err != nil {
		return fmt.Errorf("save pipeline: %w", err)
	}
	return replaceFile(d.disk, d.pipelineFile(), data)
}

// RemovePipeline takes pipeline.json away again, durably, where nothing came of what it was made for. A storage path that holds a state needs it.
func (d *Dir) RemovePipeline() error {
	if err := os.Remove(d.pipelineFile()); err != nil {
		return fmt.Errorf("remove pipeline.json: %w", err)
	}
	return syncDir(d.disk, d.path)
}

func (d *Dir) pipelineFile() string { return filepath.Join(d.path, "pipeline.json") }

// withoutPipelineFile decides what the absence of the file means: an empty storage path, or a loss.
func (d *Dir) withoutPipelineFile(absent error) error {
	state, err := os.ReadDir(d.State())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	checkpoints, err := d.store.names(published)
	if err != nil {
		return err
	}
	if len(state) == 0 && len(checkpoints) == 0 {
		return absent
	}
	cause := fmt.Errorf("it is missing beside %d checkpoints and %d entries of live state", len(checkpoints), len(state))
	return &CorruptError{Path: d.pipelineFile(), Err: cause, Remedy: pipelineRemedy}
}

func checkPipeline(p Pipeline) error {
	if p.ID == uuid.Nil && len(p.History) > 0 {
		return errors.New("the pipeline id is missing")
	}
	switch p.Desired {
	case Running, Paused, Stopped, Standby:
		return p.Restoring.check()
	}
	return fmt.Errorf("desired state %q is unknown", p.Desired)
}

// withRemedy adds what to do to a *CorruptError; other errors pass.
func withRemedy(err error, remedy string) error {
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		return &CorruptError{Path: corrupt.Path, Err: corrupt.Err, Remedy: remedy}
	}
	return err
}
