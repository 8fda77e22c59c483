package checkpoint

import (
	"github.com/google/uuid"
)

// Pipeline is pipeline.json: what a pipeline must remember beside its state.
type Pipeline struct {
	ID       uuid.UUID   `json:"id"`       // of the pipeline, the same on every machine
	Writer   uuid.UUID   `json:"writer"`   // of this storage path: two machines with one pipeline are two writers
	Desired  Desired     `json:"desired"`  // the state an operator asked for last
	Honoured []uuid.UUID `json:"honoured"` // values of start_from_checkpoint that were obeyed already
	History  History     `json:"history"`
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

// Pipeline reads pipeline.json. It answers fs.ErrNotExist only when the storage path holds no state and no checkpoint either: a
// missing file beside data, like a damaged one, is a *CorruptError.
func (d *Dir) Pipeline() (Pipeline, error) { panic("being built") }

// SavePipeline replaces pipeline.json, atomically and durably.
func (d *Dir) SavePipeline(p Pipeline) error { panic("being built") }
