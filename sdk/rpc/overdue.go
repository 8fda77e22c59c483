package rpc

import (
	"context"
	"time"
)

// overdueAfter is how long a call may go on after its context has ended before the log is told. The contract says soon; the host has given the
// call up by then and sees a store that does not answer.
const overdueAfter = 10 * time.Second

// remindOf tells the log, once, of a call that goes on although its context has ended. The returned function ends the watch.
func (w *work) remindOf(ctx context.Context, op, key string) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		timer := time.NewTimer(w.overdue)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			w.log.Error("a call goes on although its context has ended: the plugin hangs in it, and its memory and connections stay in use; every method must return soon after",
				"op", op, "key", key, "ended_because", context.Cause(ctx), "since", w.overdue)
		}
	}()
	return func() { close(done) }
}
