package circuit

import (
	"errors"

	"github.com/hashicorp/go-hclog"
)

func (l *Loop) logFailure(what string, err error) { l.logFailureTo(l.cfg.Log, what, err) }

// logFailureTo writes one line, with the stack where a panic is behind it.
func (l *Loop) logFailureTo(log hclog.Logger, what string, err error) {
	var panicked *PanicError
	switch {
	case errors.As(err, &panicked):
		log.Error(what, "error", err, "stack", string(panicked.Stack))
	case errors.Is(err, ErrStopped):
		log.Info(what, "error", err)
	default:
		log.Warn(what, "error", err)
	}
}
