package main

import (
	"errors"
	"net/http"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/host"
	"github.com/cairnsync/cairn/sdk/client"
)

// The exit codes. They are documented in docs/cli.md and stable.
const (
	exitDone        = 0 // it is done
	exitFailed      = 1 // it failed
	exitUsage       = 2 // the command line is wrong
	exitConfig      = 3 // the configuration has errors
	exitUnreachable = 4 // no host answers
	exitNotFound    = 5 // what was named does not exist
	exitNotNow      = 6 // it is not possible in the present state
	exitExam        = 7 // the plugin does not pass
	exitUnfit       = 8 // the target cannot be pushed to
	exitBroken      = 9 // a target does not hold all that it lists
)

// usageError is a command line that cannot be meant.
type usageError struct{ error }

// examError is a plugin that does not pass.
type examError struct{ error }

// unfitError is a target that cannot be pushed to.
type unfitError struct{ error }

// brokenError is a target that does not hold all that it lists.
type brokenError struct{ error }

// unreachableError is a host that does not answer.
type unreachableError struct{ error }

func (e unreachableError) Unwrap() error { return e.error }

// notFoundError is a name that nothing bears.
type notFoundError struct{ error }

// shownError has been told to the user already, at more length than a line.
type shownError struct{ error }

func (e *shownError) Unwrap() error { return e.error }

func exitCode(err error) int {
	switch {
	case is[usageError](err):
		return exitUsage
	case faulty(err):
		return exitConfig
	case is[unreachableError](err):
		return exitUnreachable
	case is[notFoundError](err):
		return exitNotFound
	case is[*host.NotNowError](err):
		return exitNotNow
	case is[examError](err):
		return exitExam
	case is[unfitError](err):
		return exitUnfit
	case is[brokenError](err):
		return exitBroken
	}
	var answered *client.Error
	if !errors.As(err, &answered) {
		return exitFailed
	}
	switch answered.Code {
	case client.CodeTargetBroken:
		return exitBroken
	case client.CodeInvalidTransition, client.CodeNotRunning, client.CodeNothingToSync, client.CodeNoSync, client.CodeFenced, client.CodeNoEpoch, client.CodeRetentionRefused, client.CodePinExists:
		return exitNotNow
	}
	if answered.Code == client.CodeBadRequest || answered.Code == client.CodeBadQuery && answered.Status == http.StatusBadRequest {
		return exitUsage // what was asked for cannot be meant: a query that writes, a name that no pin can have
	}
	if answered.Status == http.StatusNotFound {
		return exitNotFound
	}
	return exitFailed
}

// faulty says that the configuration is to be mended. One that could not be checked is not known to be.
func faulty(err error) bool {
	found, ok := errors.AsType[config.Diagnostics](err)
	return ok && found.HasFaults()
}

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
