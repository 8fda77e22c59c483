package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cairnsync/cairn/core/repository"
)

// begin opens the job's record.
func (w *Worker) begin(job Job) *tally {
	rec := w.state.begin(job, w.cfg.Now().UTC())
	w.state.keep(rec)
	t := newTally(w.cfg.Now, rec)
	w.calls.note = t
	err := w.save()
	w.show(func() {
		w.running = t
		w.note(err)
	})
	return t
}

// end closes it: what the job has shown is saved, then it becomes status. Success reaches both only here.
func (w *Worker) end(ctx context.Context, t *tally, err error) {
	s := w.session
	var number uint64
	if err == nil {
		number = s.base.Number
	}
	rec := t.finish(stateAfter(ctx, err), number, err)
	w.learn(err, rec.Finished)
	if rec.Requests > 0 { // else it was answered from memory
		w.sawRepository(err, rec.Finished)
	}
	if err == nil {
		w.state.succeeded(rec)
	} else {
		w.state.failed(rec)
	}
	w.state.keep(rec)
	w.state.Maintenance = w.Status().Maintenance
	saved := w.save()
	w.show(func() {
		w.running = nil
		if err != nil {
			w.failures++
		}
		w.epoch, w.head = s.epoch, s.last
		w.judge(err)
		if err == nil {
			w.trouble = "" // the repository was seen, so nothing that was lost is missing any more
		}
		w.note(saved)
	})
	w.log(rec, err)
}

// learn takes what the session has seen of the repository into the state.
func (w *Worker) learn(err error, at time.Time) {
	s := w.session
	if s.rights != nil {
		w.state.Rights = s.rights
	}
	if s.anew != 0 {
		w.state.damaged(w.state.Damage.below(s.anew))
		s.anew = 0
	}
	switch {
	case isGone(err):
		w.state.lose()
	case s.looked && s.confirmed:
		w.state.committed(s.base, at)
	}
}

// judge is for a change of show: it sets the condition, of which a call that failed says nothing new where the target was held or refused.
func (w *Worker) judge(err error) {
	if c, reason, behind, takenBy := conditionAfter(err); err == nil || c != Ready {
		w.condition, w.reason, w.behind, w.takenBy, w.silence = c, reason, behind, takenBy, ""
	}
}

// conditionAfter is what an ended job says about the target.
func conditionAfter(err error) (c Condition, reason string, behind uint64, takenBy *repository.Epoch) {
	if fenced, ok := errors.AsType[*FencedError](err); ok {
		return Fenced, err.Error(), 0, &fenced.By
	}
	if held, ok := errors.AsType[*HeldError](err); ok {
		return Held, err.Error(), held.Behind, nil
	}
	if _, lost := errors.AsType[*LostError](err); lost {
		return Held, err.Error(), 0, nil
	}
	_, vanished := errors.AsType[*VanishedError](err)
	_, owned := errors.AsType[*OwnedError](err)
	_, refused := errors.AsType[*RefusedError](err)
	_, unsupported := errors.AsType[*repository.UnsupportedError](err)
	if vanished || owned || refused || unsupported || errors.Is(err, repository.ErrCorrupt) {
		return Refused, err.Error(), 0, nil
	}
	return Ready, "", 0, nil
}

// isGone says that the repository which held our commits was seen not to be there.
func isGone(err error) bool {
	_, lost := errors.AsType[*LostError](err)
	_, vanished := errors.AsType[*VanishedError](err)
	_, headless := errors.AsType[*HeadLostError](err)
	return lost || vanished || headless
}

// stateAfter is how a job ended.
func stateAfter(ctx context.Context, err error) JobState {
	switch c, _, _, _ := conditionAfter(err); {
	case err == nil:
		return JobSucceeded
	case c == Fenced:
		return JobFenced
	case c == Held:
		return JobHeld
	case ctx.Err() != nil:
		return JobCancelled
	case errors.Is(err, ErrUnresolved):
		return JobUnresolved
	}
	return JobFailed
}

func (w *Worker) log(rec JobRecord, err error) {
	keys := []any{
		"target", w.cfg.Target, "checkpoint", rec.Checkpoint, "trigger", rec.Trigger, "took", rec.Finished.Sub(rec.Started),
		"bytes", rec.Bytes, "objects", rec.Objects, "requests", rec.Requests,
	}
	if rec.State == JobSucceeded {
		w.cfg.Log.Info("checkpoint pushed", append(keys, "commit", rec.Commit)...)
		return
	}
	keys = append(keys, "state", rec.State, "error", rec.Error)
	if p, ok := errors.AsType[*panicError](err); ok {
		keys = append(keys, "stack", string(p.stack))
	}
	w.cfg.Log.Warn("push ended", keys...)
}

// save keeps the state for the next run; the caller has the turn. Nothing is shown before it is saved, and nobody who asks for status waits
// for the disk.
func (w *Worker) save() error {
	data, err := encodeState(w.state)
	if err != nil {
		return err
	}
	if err := w.memory.save(data); err != nil {
		return fmt.Errorf("save sync state: %w", err)
	}
	return nil
}

// show lets status see the state as it is now, together with a change of what else it shows.
func (w *Worker) show(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shown = *w.state
	w.shown.Jobs = slices.Clone(w.state.Jobs)
	w.stand = w.session.standing()
	change()
}

// note is for a change of show. It keeps trouble with the worker's own file from failing a push: the repository is what counts, and it is looked at after a restart.
func (w *Worker) note(err error) {
	if err != nil {
		w.trouble = err.Error()
		w.cfg.Log.Error("sync state not saved", "target", w.cfg.Target, "error", err)
	}
}
