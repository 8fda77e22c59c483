package pluginhost

import (
	"context"
	"errors"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// await answers the ready session, or why there is none.
func (s *Supervisor) await(ctx context.Context, op, key string) (*session, error) {
	late := make(<-chan time.Time)
	if _, bounded := ctx.Deadline(); !bounded {
		timer := time.NewTimer(s.opts.Timeouts.Ready)
		defer timer.Stop()
		late = timer.C
	}
	for {
		session, status, changed := s.look()
		if session != nil {
			return session, nil
		}
		if status.State == StateBroken || status.State == StateStopped {
			return nil, s.unready(op, key, status, nil)
		}
		select {
		case <-changed:
		case <-late:
			return nil, s.unready(op, key, status, nil)
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, &sdk.Error{Code: sdk.Cancelled, Op: op, Key: key, Err: ctx.Err()}
			}
			return nil, s.unready(op, key, status, ctx.Err())
		}
	}
}

func (s *Supervisor) look() (*session, Status, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, s.status, s.changed
}

func (s *Supervisor) unready(op, key string, status Status, err error) error {
	exit := status.LastExit
	if exit.Reason == "" {
		exit.Reason = "has not been started"
	}
	exit.Reason = "is " + string(status.State) + ": " + exit.Reason
	e := gone(s.spec, op, key, exit, err)
	switch status.State {
	case StateBroken:
		e.Err, e.Hint = permanentError{e.Err}, remedyBroken
	case StateStopped:
		e.Err = permanentError{e.Err}
	}
	return e
}

// remedyBroken names what ends in Reset.
const remedyBroken = "correct the cause; then a requested push (`cairn checkpoint push PIPELINE`) or `cairn pipeline start PIPELINE` starts the plugin again"

// permanentError is in the chain of an error that waiting does not cure.
type permanentError struct{ error }

// Permanent is true: whoever repeats calls stops at once.
func (permanentError) Permanent() bool { return true }

// Unwrap gives the error itself.
func (e permanentError) Unwrap() error { return e.error }
