package client

import (
	"errors"
	"fmt"
	"time"
)

// ErrNoneSynced is what LastSuccessfulCheckpointSync returns before the first commit.
var ErrNoneSynced = errors.New("no checkpoints have been synced yet")

// Error is what the host answered instead of a success.
type Error struct {
	Message string         `json:"message"`
	Code    string         `json:"error_code"`
	Details map[string]any `json:"details"`

	Status     int           `json:"-"` // of the HTTP answer
	RetryAfter time.Duration `json:"-"` // 0 = not a matter of time
}

// Error is the host's message; Code says what kind of error it is.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the host answered with HTTP status %d", e.Status)
	}
	return e.Message
}

// is tells whether err is the host's answer with one code.
func is(err error, code string) bool {
	var answered *Error
	return errors.As(err, &answered) && answered.Code == code
}

// The error codes. They are part of the API: append-only.
const (
	CodeBadRequest          = "BadRequest"
	CodeNotFound            = "NotFound"
	CodePipelineNotFound    = "UnknownPipelineName"
	CodeInputNotFound       = "UnknownInput"
	CodeTargetNotFound      = "UnknownTarget"
	CodeInvalidTransition   = "InvalidTransition"
	CodeIncarnationMismatch = "IncarnationUuidMismatch"
	CodeNothingToSync       = "NothingToSync"
	CodeNoSync              = "NoSyncConfigured"
	CodeNotRunning          = "PipelineNotRunning"
	CodeTooLarge            = "BatchTooLarge"
	CodeFull                = "InputFull"
	CodeNoSpace             = "NoSpace"
	CodeBadQuery            = "BadQuery"
	CodeTarget              = "TargetError"
	CodeTargetBroken        = "TargetBroken" // it does not hold what was committed there
	CodeActivation          = "ActivationFailed"
	CodeFenced              = "Fenced"
	CodeNoEpoch             = "EpochNotHeld"
	CodeRetentionRefused    = "RetentionRefused"
	CodeCommitNotFound      = "UnknownCommit"
	CodePinNotFound         = "UnknownPin"
	CodePinExists           = "PinExists"
	CodeForbiddenHost       = "ForbiddenHost"
	CodeMediaType           = "UnsupportedMediaType"
	CodeInternal            = "InternalError"
)
