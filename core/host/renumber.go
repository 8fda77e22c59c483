package host

import (
	"context"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/trigger"
)

// A circuit whose live state is not exact cannot tell its step over a restart, and may count from the beginning again. Checkpoints are
// ordered by step, here and on targets: counted from the beginning, its new ones would be older than its old ones, none would fall due, and
// the next removal of old ones would take the newest. So its steps are renumbered to go on above the newest checkpoint.

// offsetAbove is what must be added to the circuit's step so that its state counts as later than the checkpoint: it may have moved on.
func offsetAbove(step uint64, newest trigger.Checkpoint) uint64 {
	if newest == (trigger.Checkpoint{}) || step > newest.Step {
		return 0
	}
	return newest.Step + 1 - step
}

// renumber adds offset to every step number that the loop hears.
func renumber(c circuit.Circuit, offset uint64) circuit.Circuit {
	if offset == 0 {
		return c
	}
	return renumbered{c, offset}
}

type renumbered struct {
	circuit.Circuit

	offset uint64
}

// Facts is the circuit's.
func (r renumbered) Facts() circuit.Facts {
	facts := r.Circuit.Facts()
	facts.Step += r.offset
	return facts
}

// Step is the circuit's.
func (r renumbered) Step(ctx context.Context) (circuit.StepResult, error) {
	result, err := r.Circuit.Step(ctx)
	result.Step += r.offset
	return result, err
}

// Snapshot is the circuit's.
func (r renumbered) Snapshot(ctx context.Context) (circuit.Snapshot, error) {
	s, err := r.Circuit.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return renumberedSnapshot{s, r.offset}, nil
}

type renumberedSnapshot struct {
	circuit.Snapshot

	offset uint64
}

// Step is the snapshot's.
func (s renumberedSnapshot) Step() uint64 { return s.Snapshot.Step() + s.offset }
