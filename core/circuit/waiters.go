package circuit

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// waiter is one caller that waits until a step is safe.
type waiter struct {
	step   uint64
	commit bool       // on every target; else in a published checkpoint
	done   chan error // room for the one answer
}

// WaitCheckpoint returns nil once a published checkpoint covers step; when ctx ends first its cause with what is waited for, ErrStopped when the
// loop does, ErrObstacle when no checkpoint will be published until somebody acts.
func (l *Loop) WaitCheckpoint(ctx context.Context, step uint64) error {
	return l.waitFor(ctx, &waiter{step: step, done: make(chan error, 1)})
}

// WaitCommit returns nil once every target of the pipeline holds a commit that covers step; when ctx ends first its cause with what is waited for,
// ErrStopped when the loop does, ErrNoTarget when there is no target, ErrObstacle when a target will take none until somebody acts. It waits for pushes and starts none. A commit that is known to be gone, or broken,
// covers nothing, also for a step that an earlier wait was told of.
func (l *Loop) WaitCommit(ctx context.Context, step uint64) error {
	if len(l.cfg.Targets) == 0 {
		return ErrNoTarget
	}
	return l.waitFor(ctx, &waiter{step: step, commit: true, done: make(chan error, 1)})
}

func (l *Loop) waitFor(ctx context.Context, w *waiter) error {
	l.book.enterWaiter(w)
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
	return fmt.Errorf("%w: %s", context.Cause(ctx), l.book.lacking(w))
}

// lacking is what a waiter waits for, in words.
func (b *book) lacking(w *waiter) string {
	if !w.commit {
		text := fmt.Sprintf("no checkpoint covers step %d yet", w.step)
		if last := b.checkpoints.last; last != nil && last.Error != "" {
			text += ": the last one failed: " + last.Error
		}
		return text
	}
	var lacks []string
	for i, s := range b.held() {
		t := b.targets[i]
		switch {
		case t.covers(w.step, s):
		case s.Reason != "":
			lacks = append(lacks, s.Reason)
		default:
			lacks = append(lacks, fmt.Sprintf("target %q holds no commit that covers step %d yet%s", t.Pusher.Name(), w.step, t.lastFailure()))
		}
	}
	return strings.Join(lacks, "; ")
}

// lastFailure tells of the last push, where it failed.
func (t *targetBook) lastFailure() string {
	var last *PushResult
	for _, r := range t.results {
		if last == nil || r.Ended.After(last.Ended) {
			last = r
		}
	}
	if last == nil || last.Error == "" {
		return ""
	}
	return ": its last push failed: " + last.Error
}

// held is what each target is known to hold now.
func (b *book) held() []PushState {
	states := make([]PushState, len(b.targets))
	for i, t := range b.targets {
		states[i] = t.Pusher.State()
		t.learn(b.checkpoints.published, states[i])
	}
	return states
}

// enterWaiter takes the mutex itself.
func (b *book) enterWaiter(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiters = append(b.waiters, w)
	b.answerWaiters()
}

// answerWaiters answers those whose step is covered, those who would wait in vain and, once the loop has ended, all others.
func (b *book) answerWaiters() {
	if len(b.waiters) == 0 {
		return
	}
	held := b.held()
	b.waiters = slices.DeleteFunc(b.waiters, func(w *waiter) bool {
		switch why := b.obstacle(w, held); {
		case b.safe(w, held):
			w.done <- nil
		case b.ended():
			w.done <- b.stopped()
		case why != "":
			w.done <- fmt.Errorf("%w: %s", ErrObstacle, why)
		default:
			return false
		}
		return true
	})
}

// obstacle is what makes a wait hopeless; "" = nothing is known to. A checkpoint or push that is asked for or under way may be the one that finds the target mended.
func (b *book) obstacle(w *waiter, held []PushState) string {
	if !w.commit {
		if b.hindrance == nil || b.checkpoints.running != nil || len(b.checkpoints.asks) > 0 {
			return ""
		}
		return b.hindrance()
	}
	for i, t := range b.targets {
		s := held[i]
		if !t.covers(w.step, s) && (s.Fenced || s.Held || s.Refused && t.running == nil && len(t.queue) == 0) && s.Reason != "" {
			return s.Reason
		}
	}
	return ""
}

func (b *book) safe(w *waiter, held []PushState) bool {
	if !w.commit {
		return covers(b.checkpoints.published, w.step)
	}
	for i, t := range b.targets {
		if !t.covers(w.step, held[i]) {
			return false
		}
	}
	return true
}

func (t *targetBook) covers(step uint64, s PushState) bool {
	return !s.Gone && covers(t.committed, step)
}
