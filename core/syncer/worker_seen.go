package syncer

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Seen tells the worker of a checkpoint commit that a Reader has read in its repository and that lies on the history of the state that runs: it existed
// at that time, so status may name it as committed, and since when that is known, before the first push. It claims nothing, and the next push looks
// for itself.
func (w *Worker) Seen(ctx context.Context, number uint64, checkpoint uuid.UUID, step uint64, at time.Time) error {
	if err := w.take(ctx); err != nil {
		return err
	}
	defer w.release()
	seen := CommitRef{Number: number, Checkpoint: checkpoint, Step: step, At: at.UTC()}
	if c := w.state.Committed; c != nil && c.Number == number && c.Checkpoint == checkpoint && c.At.After(at) {
		seen.At = c.At
	}
	w.state.Committed = &seen
	err := w.save()
	w.show(func() {})
	return err
}
