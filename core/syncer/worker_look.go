package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cairnsync/cairn/core/checkpoint"
)

// Look asks, without writing, whether the repository is still the one that this storage path left: another writer may have taken it over while no host
// ran, or it may be gone. What it finds is what the first push would find, and becomes the Condition; a takeover ends the session. m is the state that
// runs, of which only ID, Step and History count. It keeps no push waiting, and when a job has looked meanwhile what that found stands; an adoption
// that has come meanwhile stands too: then it looks again.
// When it returns nil, or an error that has become the Condition, Status.Looked is set; any other error says that the target did not answer.
func (w *Worker) Look(ctx context.Context, m checkpoint.Manifest) error {
	for {
		if err := w.lookOnce(ctx, m); !errors.Is(err, errAdopted) {
			return err
		}
	}
}

// errAdopted says that the operator has spoken while a look was on its way: what it was to compare with is not what counts by now.
var errAdopted = errors.New("the target was adopted meanwhile")

func (w *Worker) lookOnce(ctx context.Context, m checkpoint.Manifest) error {
	if err := w.take(ctx); err != nil {
		return err
	}
	asked, untouched := w.session, w.untouched()
	past := *w.state // jobs go on with theirs
	past.Jobs = slices.Clone(past.Jobs)
	fresh := w.onlooker(&past, w.ownCalls())
	if untouched {
		w.show(func() { w.asking = fresh.calls.note })
	} else {
		w.show(func() { w.silence = "" }) // a job has seen it
	}
	w.release()
	if !untouched {
		return nil
	}
	err := fresh.glanced(ctx, m)
	defer w.asked()
	return w.looked(ctx, asked, fresh, err)
}

func (w *Worker) asked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking = nil
}

// onlooker is a session that only looks, as a new one would that remembers the past.
func (w *Worker) onlooker(past *state, calls *caller) *session {
	s := w.newSession()
	s.calls, s.was = calls, past.held()
	s.probe = func(ctx context.Context, _ bool) ProbeReport {
		return newProber(remote{calls: calls, store: w.cfg.Store, prefix: w.cfg.Prefix}, w.cfg.Writer.ID).look(ctx)
	}
	if past.recalled {
		s.knows = past.knows
	}
	return s
}

func (s *session) glanced(ctx context.Context, m checkpoint.Manifest) (err error) {
	defer recovered(&err)
	return s.glance(ctx, m)
}

// untouched says that no job of this incarnation has got so far as to know what the repository holds. The caller has the turn.
func (w *Worker) untouched() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, c := w.session, w.condition
	return s.phase == unclaimed && s.claiming == 0 && s.fence == nil && !s.looked && (c == Ready || c == Refused)
}

// looked makes what a look has found the worker's, unless a job was first, or an adoption: that begins the session anew.
func (w *Worker) looked(ctx context.Context, asked, fresh *session, err error) error {
	if taken := w.take(ctx); taken != nil {
		return errors.Join(err, taken)
	}
	defer w.release()
	c, _, _, _ := conditionAfter(err)
	if w.session != asked && w.untouched() {
		return errAdopted
	}
	switch {
	case !w.untouched():
		return err
	case err != nil && c == Ready:
		w.show(func() { w.unanswered(ctx, err, fresh.calls.note) })
		return err
	}
	w.session.fence = fresh.fence
	if fresh.rights != nil {
		w.state.Rights = fresh.rights
	}
	if isGone(err) {
		w.state.lose()
	}
	w.state.Looked = w.cfg.Now().UTC()
	saved := w.save()
	w.show(func() {
		w.judge(err)
		w.note(saved)
	})
	if err != nil {
		return fmt.Errorf("look at target %q: %w", w.cfg.Target, err)
	}
	return nil
}

// Resume claims the repository for this incarnation where an earlier one of the same storage path still holds it, so that Maintain and Pin can do their
// work before a push has anything to commit. m is the state that runs, as for Look. It waits for a running push, but not where that has claimed already.
// The errors are those of Push, and ErrNoEpoch: the newest epoch is another writer's, or there is nothing to maintain; then nothing was claimed.
func (w *Worker) Resume(ctx context.Context, m checkpoint.Manifest) error {
	if w.standsReady() {
		return nil
	}
	if err := w.take(ctx); err != nil {
		return err
	}
	defer w.release()
	switch s := w.session; {
	case s.fence != nil:
		return s.fence
	case s.phase == ready:
		return nil
	}
	w.calls.note = newTally(w.cfg.Now, JobRecord{})
	w.session.was = w.state.held()
	if w.state.recalled {
		w.session.knows = w.state.knows
	}
	err := w.resumed(ctx, m)
	w.opened(err)
	if err != nil {
		return fmt.Errorf("claim target %q anew: %w", w.cfg.Target, err)
	}
	w.cfg.Log.Info("repository claimed anew for maintenance", "target", w.cfg.Target, "epoch", w.session.epoch)
	return nil
}

func (w *Worker) resumed(ctx context.Context, m checkpoint.Manifest) (err error) {
	defer recovered(&err)
	return w.session.resume(ctx, m)
}

func (w *Worker) standsReady() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stand.fence == nil && w.stand.phase == ready
}

// opened makes what opening the session has come to the worker's state and status. The caller has the turn.
func (w *Worker) opened(err error) {
	now := w.cfg.Now().UTC()
	w.learn(err, now)
	w.sawRepository(err, now)
	saved := w.save()
	w.show(func() {
		w.epoch, w.head = w.session.epoch, w.session.last
		w.judge(err)
		w.note(saved)
	})
	if _, vanished := errors.AsType[*VanishedError](err); vanished {
		w.session = w.newSession()
	}
}

// sawRepository notes when the repository, or that it is not ours, was last seen.
func (w *Worker) sawRepository(err error, at time.Time) {
	if c, _, _, _ := conditionAfter(err); err == nil || c != Ready {
		w.state.Looked = at
	}
}
