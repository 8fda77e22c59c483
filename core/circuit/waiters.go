package circuit

import (
	"context"
	"slices"
)

// waiter is one caller that waits until a step is safe.
type waiter struct {
	step   uint64
	commit bool       // on every target; else in a published checkpoint
	done   chan error // room for the one answer
}

// WaitCheckpoint returns nil once a published checkpoint covers step; ctx's error when that ends first, ErrStopped when the loop does.
func (l *Loop) WaitCheckpoint(ctx context.Context, step uint64) error {
	return l.waitFor(ctx, &waiter{step: step, done: make(chan error, 1)})
}

// WaitCommit returns nil once every target of the pipeline holds a commit that covers step; ctx's error when that ends first, ErrStopped when
// the loop does, ErrNoTarget when there is no target. It waits for pushes and starts none.
func (l *Loop) WaitCommit(ctx context.Context, step uint64) error {
	if len(l.cfg.Targets) == 0 {
		return ErrNoTarget
	}
	return l.waitFor(ctx, &waiter{step: step, commit: true, done: make(chan error, 1)})
}

func (l *Loop) waitFor(ctx context.Context, w *waiter) error {
	l.book.mu.Lock()
	l.book.waiters = append(l.book.waiters, w)
	l.book.answerWaiters()
	l.book.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
	}
	return l.forsake(ctx, w)
}

// forsake takes a waiter off the list; an answer that came first still counts.
func (l *Loop) forsake(ctx context.Context, w *waiter) error {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	default:
	}
	l.book.waiters = slices.DeleteFunc(l.book.waiters, func(other *waiter) bool { return other == w })
	return ctx.Err()
}

// answerWaiters answers those whose step is covered and, once the loop has ended, all others.
func (b *book) answerWaiters() {
	b.waiters = slices.DeleteFunc(b.waiters, func(w *waiter) bool {
		switch {
		case b.safe(w):
			w.done <- nil
		case b.ended():
			w.done <- b.stopped()
		default:
			return false
		}
		return true
	})
}

func (b *book) safe(w *waiter) bool {
	if !w.commit {
		return covers(b.checkpoints.published, w.step)
	}
	for _, t := range b.targets {
		if !covers(t.committed, w.step) {
			return false
		}
	}
	return true
}
