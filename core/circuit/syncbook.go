package circuit

import (
	"bytes"
	"errors"
	"time"

	"github.com/google/uuid"
)

// refuse answers a target's whole queue with an error, as one that fails to start.
func (b *book) refuse(t *targetBook, now time.Time, err error) {
	queue := t.queue
	t.queue = nil
	for _, a := range queue {
		t.results[PushRequested] = &PushResult{
			Checkpoint: a.checkpoint.ID, Step: a.checkpoint.Step, Started: now, Ended: now, Error: err.Error(),
		}
		b.answerSync(t, a, now, err)
	}
}

// answerSync enters one target's answer to a queue entry; where that completes a request, the request is owed its answer.
func (b *book) answerSync(t *targetBook, a *syncAsk, now time.Time, err error) {
	for _, g := range a.groups {
		if !g.enter(t.Pusher.Name(), err) {
			continue
		}
		b.owed = append(b.owed, g)
		if verdict := g.verdict(); verdict != nil {
			b.sync.Failure = &SyncFailure{Checkpoint: g.checkpoint, Error: verdict.Error(), At: now}
		} else {
			b.sync.Success = newer(b.sync.Success, g.checkpoint)
		}
	}
}

// blame names the fence in the error of a push that met it, so that status can tell it from a failure.
func (b *book) blame(t *targetBook, err error) error {
	if err != nil && !errors.Is(err, ErrFenced) && t.Pusher.State().Fenced {
		return &fencedError{err}
	}
	return err
}

// fencedError is a push's own error, known to come from the fence.
type fencedError struct{ error }

func (e *fencedError) Unwrap() []error { return []error{e.error, ErrFenced} }

func (b *book) enterCommit(i int, p *push) {
	by := b.commits[p.checkpoint.ID]
	if by == nil {
		by = make([]bool, len(b.targets))
		b.commits[p.checkpoint.ID] = by
	}
	by[i] = true
}

// enterPeriodic moves the periodic part of sync status: forward once every target with an interval, fenced ones aside, has the checkpoint.
func (b *book) enterPeriodic(p *push, now time.Time, err error) {
	id := p.checkpoint.ID
	if err != nil {
		b.sync.PeriodicFailure = &SyncFailure{Checkpoint: id, Error: err.Error(), At: now}
		return
	}
	for i, t := range b.targets {
		s := t.Pusher.State()
		if t.policy.PushEvery > 0 && !s.Fenced && s.Committed != id && !b.commits[id][i] {
			return
		}
	}
	b.sync.Periodic = newer(b.sync.Periodic, id)
	b.sync.PeriodicFailure = nil
}

// forgetCommits keeps what can still become common to all targets: the newest checkpoint and those that are on their way.
func (b *book) forgetCommits() {
	live := map[uuid.UUID]bool{b.checkpoints.published.ID: true}
	for _, t := range b.targets {
		if t.running != nil {
			live[t.running.checkpoint.ID] = true
		}
		for _, a := range t.queue {
			live[a.checkpoint.ID] = true
		}
	}
	for id := range b.commits {
		if !live[id] {
			delete(b.commits, id)
		}
	}
}

// newer of two checkpoint ids: they are UUIDs of version 7, ordered by their bytes.
func newer(a, b uuid.UUID) uuid.UUID {
	if bytes.Compare(b[:], a[:]) > 0 {
		return b
	}
	return a
}
