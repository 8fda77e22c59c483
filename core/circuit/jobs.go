package circuit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/trigger"
)

// job runs f on a goroutine that Run waits for. What f runs for others has guards of its own; a panic past those, of our own bookkeeping or
// of a Pusher's State, leaves the book in doubt and ends the loop.
func (l *Loop) job(name string, f func()) {
	l.jobs.Go(func() {
		if err := guard(name, func() error { f(); return nil }); err != nil {
			l.fail(err)
			l.Wake()
		}
	})
}

// takeCheckpoint pins the state between two steps and has it written on a goroutine of its own.
func (l *Loop) takeCheckpoint(ctx, turns context.Context, f trigger.Facts) {
	a := l.beginCheckpoint(f.Step)
	pinned, step, err := l.snapshot(turns)
	if err != nil {
		if panicked := (*PanicError)(nil); errors.As(err, &panicked) {
			l.fail(err)
		}
		l.endCheckpoint(turns, trigger.Checkpoint{}, err)
		return
	}
	l.book.mu.Lock()
	a.step = step
	l.book.mu.Unlock()
	l.job("checkpoint job", func() {
		made, err := l.write(ctx, pinned, step)
		l.endCheckpoint(ctx, made, err)
	})
}

func (l *Loop) beginCheckpoint(step uint64) *attempt {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	a := l.book.checkpoints.begin(l.cfg.Now(), step)
	a.last = l.book.ending != nil && l.book.ending.checkpoint
	return a
}

func (l *Loop) snapshot(ctx context.Context) (s Snapshot, step uint64, err error) {
	err = l.call("snapshot", func() (err error) {
		if s, err = l.cfg.Circuit.Snapshot(ctx); err == nil {
			step = s.Step()
		}
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("snapshot: %w", err)
	}
	return s, step, nil
}

// write publishes a snapshot and releases it, whatever happens.
func (l *Loop) write(ctx context.Context, s Snapshot, step uint64) (made trigger.Checkpoint, err error) {
	defer func() {
		// What was written stays good when the release goes wrong, so that is logged, not returned.
		if err := guard("release of a snapshot", func() error { s.Release(); return nil }); err != nil {
			l.logFailure("snapshot not released", err)
		}
	}()
	err = guard("checkpoint", func() (err error) {
		made, err = l.cfg.Checkpointer.Write(ctx, s)
		return err
	})
	switch {
	case err != nil:
		return trigger.Checkpoint{}, err
	case made.ID == uuid.Nil || made.Step != step:
		return trigger.Checkpoint{}, fmt.Errorf("checkpointer answered id %v, step %d for a snapshot of step %d", made.ID, made.Step, step)
	default:
		return made, nil
	}
}

// endCheckpoint may run on any goroutine.
func (l *Loop) endCheckpoint(ctx context.Context, made trigger.Checkpoint, err error) {
	err = interrupted(ctx, err)
	took := l.book.endCheckpoint(l.cfg.Now(), made, err)
	if err != nil {
		l.logFailure("checkpoint failed", err)
	} else {
		l.cfg.Log.Info("checkpoint published", "checkpoint", made.ID, "step", made.Step, "took", took)
	}
	l.Wake()
}

// startPush has a checkpoint pushed on a goroutine of its own.
func (l *Loop) startPush(ctx context.Context, f trigger.Facts, d decided) {
	p := l.beginPush(f, d)
	pusher := l.cfg.Targets[d.Target].Pusher
	l.job("push job", func() {
		err := guard("push", func() error {
			return pusher.Push(ctx, PushJob{Checkpoint: p.checkpoint.ID, Trigger: p.trigger})
		})
		l.endPush(ctx, d.Target, p, err)
	})
}

func (l *Loop) beginPush(f trigger.Facts, d decided) *push {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	t, now := l.book.targets[d.Target], l.cfg.Now()
	switch {
	case d.final:
		return t.begin(now, f.Published, PushShutdown)
	case d.Periodic:
		return t.begin(now, f.Published, PushPeriodic)
	}
	if failure := l.book.sync.Failure; failure != nil && failure.Checkpoint == d.Checkpoint {
		l.book.sync.Failure = nil
	}
	return t.begin(now, t.queue[0].checkpoint, PushRequested)
}

// endPush runs on the job's goroutine. The loop goes on at once; the requesters hear of it when it is saved.
func (l *Loop) endPush(ctx context.Context, target int, p *push, err error) {
	err = interrupted(ctx, err)
	now := l.cfg.Now()
	l.book.endPush(target, now, err)
	log := l.cfg.Log.With("target", l.cfg.Targets[target].Pusher.Name(), "checkpoint", p.checkpoint.ID, "trigger", p.trigger)
	l.logPush(log, err, now.Sub(p.since))
	l.Wake()
	l.settle()
}

// logPush is for whoever debugs the loop: the pusher itself tells of each push. Only of its panic it cannot.
func (l *Loop) logPush(log hclog.Logger, err error, took time.Duration) {
	switch panicked := (*PanicError)(nil); {
	case errors.As(err, &panicked):
		l.logFailureTo(log, "push failed", err)
	case err != nil:
		log.Debug("push failed", "error", err, "took", took)
	default:
		log.Debug("push committed", "took", took)
	}
}

// interrupted marks the error of a job that was cut off by the end of the loop.
func interrupted(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrStopped, err)
}
