package rpc

import (
	"context"
	"fmt"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// Clocks are the two patiences of the host with a call in progress.
type Clocks struct {
	Hung  time.Duration // without any event the plugin is PluginHung; 0 = 10 s, ten times the pace of its events
	Stall time.Duration // with events that move no byte the call is cancelled as Unavailable; 0 = 60 s
}

func (c Clocks) orDefault() Clocks {
	if c.Hung <= 0 {
		c.Hung = 10 * beatEvery
	}
	if c.Stall <= 0 {
		c.Stall = time.Minute
	}
	return c
}

// watch holds one call to both clocks. They run only while the host waits for the plugin: time that the host itself takes over what it
// got does not count. A clock that runs out cancels the call with its verdict as the cause. For one goroutine.
type watch struct {
	clocks      Clocks
	cancel      context.CancelCauseFunc
	hung, stall *time.Timer
	moved       int64
	over        <-chan struct{} // of the call
	pace        pace
}

// newWatch gives the context to make the call with. The clocks stand still until the first wait.
func newWatch(ctx context.Context, clocks Clocks) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{clocks: clocks, cancel: cancel, over: ctx.Done()}
	w.hung = time.AfterFunc(clocks.Hung, func() { cancel(hungVerdict(clocks.Hung)) })
	w.stall = time.AfterFunc(clocks.Stall, func() { cancel(stallVerdict(clocks.Stall)) })
	w.hung.Stop()
	return ctx, w
}

func hungVerdict(after time.Duration) *sdk.Error {
	return &sdk.Error{Code: sdk.PluginHung, Err: fmt.Errorf("the plugin has not said a word for %s", after), Hint: "the host ends the process and starts a new one"}
}

func stallVerdict(after time.Duration) *sdk.Error {
	return &sdk.Error{Code: sdk.Unavailable, Err: fmt.Errorf("no byte has moved for %s", after), Hint: "the plugin is alive; look at the store and the network to it, and in the log whether the plugin itself hangs in a call"}
}

// wait is called before the host waits for an event, heard when it has come.
func (w *watch) wait()  { w.hung.Reset(w.clocks.Hung) }
func (w *watch) heard() { w.hung.Stop() }

// progress tells the bytes that the call has moved so far. Only more of them is progress: a number that jumps to and fro is not.
func (w *watch) progress(bytes int64) {
	if bytes > w.moved {
		w.moved = bytes
		w.stall.Reset(w.clocks.Stall)
	}
}

// rest stops the stall clock while the host is busy with what it got; work starts it anew.
func (w *watch) rest() { w.stall.Stop() }
func (w *watch) work() { w.stall.Reset(w.clocks.Stall) }

// stop ends the call.
func (w *watch) stop() {
	w.hung.Stop()
	w.stall.Stop()
	w.cancel(context.Canceled)
}

// opened makes the call of a stream under the watch: without a stream from the plugin, and room for the request in it, no event can come.
func opened[S any](w *watch, call func() (S, error)) (S, error) {
	w.wait()
	defer w.heard()
	return call()
}

// next waits for one event of a stream under the watch.
func next[E any](w *watch, stream interface{ Recv() (*E, error) }) (*E, error) {
	w.pace.event(w.over)
	w.wait()
	defer w.heard()
	return stream.Recv()
}
