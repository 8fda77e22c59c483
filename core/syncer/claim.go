package syncer

import (
	"context"
	"fmt"

	"github.com/cairnsync/cairn/core/repository"
)

// Claimed is what a Claim has come to.
type Claimed struct {
	Newest *CommitInfo // newest checkpoint commit of the line, below our seal; nil = none was ever made
	Epoch  uint64      // ours
	// Before is who held the repository until now, and is fenced from now on; nil = nobody, or it cannot be read any more.
	Before *repository.Epoch
}

// Claim opens the worker's session without a push: it looks, claims the next epoch, seals the line and finds the newest checkpoint below the
// seal, which no other writer can follow any more. It does not ask whether our state may follow that commit; the next push does. When it
// fails, Status.Epoch tells whether the epoch was claimed all the same: then the writer before is fenced already, and another Claim goes on from
// there. The errors are those of Push.
func (w *Worker) Claim(ctx context.Context) (Claimed, error) {
	if err := w.take(ctx); err != nil {
		return Claimed{}, err
	}
	defer w.release()
	w.calls.note = newTally(w.cfg.Now, JobRecord{})
	err := w.seize(ctx)
	claimed := Claimed{Epoch: w.session.epoch}
	if err == nil {
		claimed.Before = w.session.predecessor(ctx)
		if base := w.session.base; base != nil {
			info := infoOf(base.Commit)
			claimed.Newest = &info
		}
	}
	w.opened(err)
	w.show(func() { w.unanswered(ctx, err, w.calls.note) })
	if err != nil {
		return claimed, fmt.Errorf("claim target %q: %w", w.cfg.Target, err)
	}
	w.cfg.Log.Info("repository claimed", "target", w.cfg.Target, "epoch", claimed.Epoch)
	return claimed, nil
}

func (w *Worker) seize(ctx context.Context) (err error) {
	defer recovered(&err)
	w.session.was = w.state.held()
	return w.session.seize(ctx)
}

// predecessor reads whose epoch ours follows. It is told to people and nothing hangs on it, so an epoch that cannot be read is nobody's.
func (s *session) predecessor(ctx context.Context) *repository.Epoch {
	if s.epoch < 2 {
		return nil
	}
	data, err := s.get(ctx, repository.EpochKey(s.prefix, s.epoch-1), repository.MaxSmall)
	if err != nil {
		return nil
	}
	before, err := repository.DecodeEpoch(s.epoch-1, data)
	if err != nil {
		return nil
	}
	return &before
}
