package rpc

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/sdk"
)

// work is the plugin's account of the calls in progress: it lets them in, cancels them all, and waits for them.
type work struct {
	log     hclog.Logger
	overdue time.Duration // see overdueAfter; tests have less patience

	mu       sync.Mutex
	idle     chan struct{} // closed while draining and nothing runs
	draining bool
	cancels  map[int]context.CancelCauseFunc
	next     int
}

func newWork(log hclog.Logger) *work {
	return &work{log: log, overdue: overdueAfter, idle: make(chan struct{}), cancels: map[int]context.CancelCauseFunc{}}
}

// do runs one call to its end and gives its gRPC status. A panic is that call's error: the stack goes to the log.
func (w *work) do(ctx context.Context, op, key string, call func(ctx context.Context) error) (err error) {
	ctx, leave, err := w.enter(ctx)
	if err != nil {
		return toStatus(whole(err.(*sdk.Error), op, key))
	}
	defer leave()
	defer w.remindOf(ctx, op, key)()
	defer func() {
		if p := recover(); p != nil {
			w.log.Error("panic in a call", "op", op, "key", key, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = toStatus(&sdk.Error{Op: op, Key: key, Err: fmt.Errorf("the plugin panicked%s: %v", panickedAt(), p), Hint: panicHint})
		}
	}()
	if err := call(ctx); err != nil {
		return toStatus(drained(ctx, err))
	}
	return nil
}

func (w *work) enter(ctx context.Context) (context.Context, func(), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.draining {
		return ctx, nil, drainingError()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	id := w.next
	w.next++
	w.cancels[id] = cancel
	return ctx, func() { w.leave(id) }, nil
}

func (w *work) leave(id int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancels[id](nil)
	delete(w.cancels, id)
	if w.draining && len(w.cancels) == 0 {
		close(w.idle)
	}
}

// drain lets nothing in any more, cancels what runs and waits for its end, at most so long. It gives the number of calls still running.
func (w *work) drain(ctx context.Context, wait time.Duration) int {
	w.mu.Lock()
	if !w.draining {
		w.draining = true
		for _, cancel := range w.cancels {
			cancel(drainingError())
		}
		if len(w.cancels) == 0 {
			close(w.idle)
		}
	}
	w.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case <-w.idle:
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.cancels)
}

// drainingError is made anew each time, since its Op and Key are filled in.
func drainingError() *sdk.Error {
	return &sdk.Error{Code: sdk.Unavailable, Err: errors.New("the plugin is draining")}
}

// drained replaces the Cancelled of a call that the drain ended: the host did not give up, so it must not read that it did.
func drained(ctx context.Context, err error) error {
	var cause *sdk.Error
	if sdk.CodeOf(err) == sdk.Cancelled && errors.As(context.Cause(ctx), &cause) {
		return &sdk.Error{Code: cause.Code, Err: fmt.Errorf("%w: %w", cause.Err, err)}
	}
	return err
}
