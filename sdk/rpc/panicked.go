package rpc

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// panicHint is what can be done about a panic in a call.
const panicHint = "a defect of the plugin, not of the store: its log has the whole stack"

// panickedAt gives " at target.go:87", the line of a plugin that panicked, to the deferred function that recovers; "" = it is not known.
func panickedAt() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for panicking := false; ; {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			panicking = true // what comes next is what called panic, or the runtime in its place
		case panicking && !strings.HasPrefix(frame.Function, "runtime."):
			return fmt.Sprintf(" at %s:%d", filepath.Base(frame.File), frame.Line)
		}
		if !more {
			return ""
		}
	}
}
