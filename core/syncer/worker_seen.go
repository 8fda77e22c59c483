package syncer

import (
	"context"

	"github.com/google/uuid"
)

// Seen tells the worker of a checkpoint commit that a Reader has just read in its repository and that lies on the history of the state that
// runs: it exists, so status may name it as committed before the first push. It claims nothing, and the next push looks for itself.
func (w *Worker) Seen(ctx context.Context, number uint64, checkpoint uuid.UUID, step uint64) error {
	if err := w.take(ctx); err != nil {
		return err
	}
	defer w.release()
	w.state.Committed = &CommitRef{Number: number, Checkpoint: checkpoint, Step: step, At: w.cfg.Now().UTC()}
	err := w.save()
	w.show(func() {})
	return err
}
