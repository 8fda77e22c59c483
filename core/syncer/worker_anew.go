package syncer

import (
	"context"
	"errors"
	"fmt"

	"github.com/cairnsync/cairn/core/checkpoint"
)

// Reconsider asks a held target anew, for what holds it may have been put right, and whoever asks for something now is not answered from memory. It
// writes nothing. m is the state that runs, as for Look. Where nothing is in the way any more the target is ready; an error that becomes the Condition
// says what is so now, a takeover among them; after any other the target stays held, and Status tells that it did not answer. A target that is not held
// is not asked. It waits for a running job.
func (w *Worker) Reconsider(ctx context.Context, m checkpoint.Manifest) error {
	if !w.isHeld() {
		return nil
	}
	if err := w.take(ctx); err != nil {
		return err
	}
	defer w.release()
	if !w.isHeld() {
		return nil // an adoption was first
	}
	w.calls.note = newTally(w.cfg.Now, JobRecord{})
	newest, err := w.askedAnew(ctx, w.onlooker(w.state, w.calls), m)
	now := w.cfg.Now().UTC()
	switch {
	case err == nil:
		w.session = w.newSession() // the next push looks for itself, and claims
		w.state.committed(newest, now)
	case isGone(err):
		w.state.lose()
	}
	w.sawRepository(err, now)
	saved := w.save()
	w.show(func() {
		w.epoch, w.head = w.session.epoch, w.session.last
		w.judge(err)
		w.unanswered(ctx, err, w.calls.note)
		w.note(saved)
	})
	if err != nil {
		return fmt.Errorf("ask target %q anew: %w", w.cfg.Target, err)
	}
	return nil
}

// askedAnew looks with a fresh session. Where the old one holds an epoch it is asked first whether that stands: whoever has taken the target over
// is not fenced by a session that begins anew.
func (w *Worker) askedAnew(ctx context.Context, fresh *session, m checkpoint.Manifest) (newest *known, err error) {
	defer recovered(&err)
	if w.session.epoch != 0 {
		err := w.session.stillHighest(ctx)
		if _, vanished := errors.AsType[*VanishedError](err); err != nil && !vanished {
			return nil, err
		}
	}
	if newest, err = fresh.survey(ctx); err != nil {
		return nil, err
	}
	if err := fresh.displaced(ctx, newest); err != nil {
		w.session.fence = fresh.fence
		return nil, err
	}
	return newest, fresh.admits(newest, m)
}

func (w *Worker) isHeld() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.condition == Held
}
