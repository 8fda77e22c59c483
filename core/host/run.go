package host

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// run is one incarnation: one circuit, opened once, and the loop that drives it. What is not guarded by its own mutex is by the pipeline's.
type run struct {
	id      uuid.UUID
	cancel  context.CancelFunc
	done    chan struct{}       // closed when everything of the run has ended
	circuit circuit.Circuit     // nil until it is open
	offset  uint64              // how far our step numbers are ahead of the circuit's own, see renumbered
	loop    *circuit.Loop       // nil until the circuit is open
	stands  checkpoint.Manifest // the state that the run began with, of which ID, Step and History are given; zero where nothing is on disk
	from    string              // what it started from, for people
	keepers []*keeper           // of the targets with a retention block
	late    []*syncer.Worker    // of the targets that were not claimed when this run was activated

	endFollow  context.CancelFunc // of a standby: the following ends, at once
	told       chan<- outcome     // whoever waits for the activation; nil = nobody
	activated  *client.Activated  // nil = this run was no standby
	verified   uuid.UUID          // the checkpoint that was just read from end to end, or pulled; Nil = none
	thenFollow bool               // when it has ended, the next run is a standby

	mu     sync.Mutex // guards what stands below
	doing  string     // on the way to the loop
	detail func() string
}

func newRun(cancel context.CancelFunc) *run {
	return &run{id: uuid.Must(uuid.NewV7()), cancel: cancel, done: make(chan struct{})}
}

// phase says what the start is doing from now on. detail, which may be nil, tells at any time why that takes long; "" = it cannot tell.
func (r *run) phase(doing string, detail func() string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doing, r.detail = doing, detail
}

// progress is what the start is doing, in words.
func (r *run) progress() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.detail == nil {
		return r.doing
	}
	if why := r.detail(); why != "" {
		return r.doing + ": " + why
	}
	return r.doing
}

// firstAnnouncement is how long a wait lasts before the log hears of it; each later line comes after twice the time.
const firstAnnouncement = time.Second

// announce tells the log after 1, 2, 4 … seconds what is being waited for, while doing says so, until the returned function is called; that
// waits for its end.
func announce(log hclog.Logger, what string, doing func() string) (stop func()) {
	var speaker sync.WaitGroup
	done := make(chan struct{})
	speaker.Go(func() {
		timer := time.NewTimer(firstAnnouncement)
		defer timer.Stop()
		for waited := firstAnnouncement; ; waited *= 2 {
			select {
			case <-done:
				return
			case <-timer.C:
				if now := doing(); now != "" {
					log.Info(what, "doing", now, "waited", waited)
				}
				timer.Reset(waited)
			}
		}
	})
	return func() {
		close(done)
		speaker.Wait()
	}
}

// panicError is a panic of a circuit outside of its loop, which catches its own.
type panicError struct {
	in    string
	value any
	stack []byte // for the log
}

func (e *panicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.in, e.value) }

// logFailure writes one line, with the stack where a panic is behind it.
func logFailure(log hclog.Logger, what string, err error) {
	keys := []any{"error", err}
	if panicked, ok := errors.AsType[*panicError](err); ok {
		keys = append(keys, "stack", string(panicked.stack))
	}
	log.Error(what, keys...)
}

// guarded runs f and turns a panic into an error: a circuit's fault ends its run, never the host.
func guarded(in string, f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{in: in, value: value, stack: debug.Stack()}
		}
	}()
	return f()
}
