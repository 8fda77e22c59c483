package circuit

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/trigger"
)

// CheckpointRequest is a checkpoint that was asked for.
type CheckpointRequest struct {
	// Sequence numbers the requests of one incarnation, from 1. Status tells the greatest that was answered well, and the last failure.
	Sequence uint64

	// Done yields exactly one value: nil once a published checkpoint covers the step that was committed when the request came; the error of
	// the attempt that failed; ErrStopped when the loop ended before.
	Done <-chan error
}

// SyncRequest is a push that was asked for.
type SyncRequest struct {
	Checkpoint uuid.UUID

	// Done yields exactly one value, when every addressed target has answered: nil when all hold the commit, else their errors joined.
	Done <-chan error
}

// RequestCheckpoint asks for a checkpoint of the current state. Requests that wait are served by one checkpoint. While the published
// checkpoint holds the current state it is the answer, and nothing is written.
func (l *Loop) RequestCheckpoint() (CheckpointRequest, error) {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	if err := l.book.refused(); err != nil {
		return CheckpointRequest{}, err
	}
	a := l.book.checkpoints.ask()
	l.Wake()
	return CheckpointRequest{Sequence: a.sequence, Done: a.done}, nil
}

// RequestSync asks for a push of the newest published checkpoint to the target of that name, or to every target when it is "". Each target
// takes its requests in the order asked; a later one never supersedes an earlier one.
func (l *Loop) RequestSync(target string) (SyncRequest, error) {
	for {
		newest, err := l.syncable(target)
		if err != nil {
			return SyncRequest{}, err
		}
		release, err := l.pin(newest.ID)
		if err == nil {
			return l.enqueueSync(target, newest, release)
		}
		if again, stop := l.syncable(target); stop != nil || again.ID == newest.ID {
			return SyncRequest{}, fmt.Errorf("pin checkpoint %v: %w", newest.ID, err)
		} // else a newer checkpoint was published meanwhile and this one collected
	}
}

// syncable is the checkpoint that a sync request names now.
func (l *Loop) syncable(target string) (trigger.Checkpoint, error) {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	if err := l.book.refused(); err != nil {
		return trigger.Checkpoint{}, err
	}
	if _, err := l.book.addressed(target); err != nil {
		return trigger.Checkpoint{}, err
	}
	if l.book.checkpoints.published.ID == uuid.Nil {
		return trigger.Checkpoint{}, ErrNothingToSync
	}
	return l.book.checkpoints.published, nil
}

// pin guards both what the host gives: Pin, and the release, which may be called on any goroutine.
func (l *Loop) pin(id uuid.UUID) (release func(), err error) {
	if l.cfg.Pin == nil {
		return func() {}, nil
	}
	var unpin func()
	err = guard("pin", func() (err error) {
		unpin, err = l.cfg.Pin(id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return func() {
		if err := guard("release of a pin", func() error { unpin(); return nil }); err != nil {
			l.logFailure("checkpoint not released", err)
		}
	}, nil
}

func (l *Loop) enqueueSync(target string, c trigger.Checkpoint, release func()) (SyncRequest, error) {
	g, err := l.book.enqueueSync(target, c, release)
	if err != nil {
		release()
		return SyncRequest{}, err
	}
	l.Wake()
	return SyncRequest{Checkpoint: c.ID, Done: g.done}, nil
}

// enqueueSync takes the mutex itself.
func (b *book) enqueueSync(target string, c trigger.Checkpoint, release func()) (*syncGroup, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.refused(); err != nil {
		return nil, err
	}
	targets, err := b.addressed(target)
	if err != nil {
		return nil, err
	}
	g := &syncGroup{checkpoint: c.ID, waiting: len(targets), done: make(chan error, 1), release: release}
	for _, t := range targets {
		t.enqueue(c, g)
	}
	return g, nil
}

// addressed lists the targets that a sync request names.
func (b *book) addressed(name string) ([]*targetBook, error) {
	switch {
	case len(b.targets) == 0:
		return nil, ErrNoTarget
	case name == "":
		return b.targets, nil
	}
	for _, t := range b.targets {
		if t.Pusher.Name() == name {
			return []*targetBook{t}, nil
		}
	}
	return nil, fmt.Errorf("%w %q: the pipeline has no sync block for it", ErrUnknownTarget, name)
}

// RequestStep asks for one step, whatever is buffered. Requests that wait are served by one step; while paused they wait. The answer is nil
// after a step that began after the request, an error with ErrNoSpace when that found a disk full, or ErrStopped.
func (l *Loop) RequestStep() (<-chan error, error) {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	if err := l.book.refused(); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	l.book.stepAsks = append(l.book.stepAsks, done)
	l.Wake()
	return done, nil
}

// Pause holds back steps, from the end of the one that may be running. Checkpoints and pushes go on. Pausing twice is pausing once.
func (l *Loop) Pause() error { return l.setPaused(true) }

// Resume ends a pause. It does nothing when there is none.
func (l *Loop) Resume() error { return l.setPaused(false) }

func (l *Loop) setPaused(paused bool) error {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	if err := l.book.refused(); err != nil {
		return err
	}
	l.book.paused = paused
	l.Wake()
	return nil
}

// Stop ends the loop; Run then returns. With checkpoint it first takes a checkpoint that covers the current step, unless the published one does,
// pushes it to the targets with PushOnShutdown, and lets running jobs end, all within ShutdownTimeout; a step that is still running then is
// cancelled. Without, it cancels the running step and running jobs and does none of that; so does a Stop(false) while an earlier Stop is under
// way. From the call on, no new request is taken.
func (l *Loop) Stop(checkpoint bool) error {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	switch {
	case l.book.ended():
		return l.book.stopped()
	case l.book.ending == nil:
		l.book.ending = newStop(checkpoint, l.cfg.Now().Add(l.shutdownTimeout()))
	case !checkpoint:
		l.book.ending.abandon()
	}
	l.bound()
	l.Wake()
	return nil
}

// refused is why no request is taken: ErrStopped once the loop is ending.
func (b *book) refused() error {
	if b.ending != nil || b.ended() {
		return b.stopped()
	}
	return nil
}

func (b *book) ended() bool { return b.state == StateStopped || b.state == StateFailed }

// stopped is ErrStopped, with what the loop ended with.
func (b *book) stopped() error {
	if b.err == nil {
		return ErrStopped
	}
	return fmt.Errorf("%w: %w", ErrStopped, b.err)
}
