package circuit

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// What requests and waits answer, and what a step may.
var (
	// ErrNoSpace marks an error of Step that a full disk has caused. Nothing has changed and the circuit can go on, so the loop does not end:
	// it takes no step until space may have come back, tries again with growing waits, and meanwhile does everything else.
	ErrNoSpace = errors.New("no space left on the disk")

	// ErrStopped answers what can no longer be done, because the loop is ending or has ended. It wraps the loop's own error, if any.
	ErrStopped = errors.New("pipeline is stopped or stopping")

	// ErrNothingToSync answers a sync request while no checkpoint is published.
	ErrNothingToSync = errors.New("nothing to sync: no checkpoint has been published yet; take one first")

	// ErrNoTarget answers a sync request or a wait for a commit when the pipeline has no sync block.
	ErrNoTarget = errors.New("nothing to sync to: the pipeline has no sync block")

	// ErrUnknownTarget answers a sync request that names a target without a sync block in this pipeline.
	ErrUnknownTarget = errors.New("unknown target")

	// ErrFenced answers a requested sync to a target whose repository another writer has taken.
	ErrFenced = errors.New("fenced: another writer has taken over the repository on this target")

	// ErrHeld answers a requested sync to a target whose commits are not on our history.
	ErrHeld = errors.New("held: the commits on this target are not on this pipeline's history, or what was committed there is gone")

	// ErrObstacle answers a wait for what cannot come until somebody acts; what is in the way follows it.
	ErrObstacle = errors.New("waiting is of no use")

	// ErrShutdownTimeout is part of Run's error when a stop ran out of time before all of it was done.
	ErrShutdownTimeout = errors.New("shutdown timeout passed")

	// ErrRunning is what a second Run of one Loop returns.
	ErrRunning = errors.New("loop has been run already")
)

// PanicError is a panic that was caught: in a job it is the job's error, in the circuit it is the loop's.
type PanicError struct {
	In    string // what was running: "step", "push"
	Value any    // what it panicked with
	Stack []byte // where; for the log, not part of Error
}

func (e *PanicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.In, e.Value) }

// Unwrap gives the panic's value when that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// guard runs f and turns a panic into an error.
func guard(in string, f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{In: in, Value: value, Stack: debug.Stack()}
		}
	}()
	return f()
}
