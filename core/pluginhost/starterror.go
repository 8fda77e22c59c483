package pluginhost

import (
	"errors"
	"strings"
)

var errNotRegular = errors.New("not a regular file")

// Cause says why a plugin did not start. Code acts on it, people read the error's text.
type Cause uint8

// The causes of a failed start.
const (
	CauseOther       Cause = iota // the operating system refused for a reason that Err names
	CauseNotFound                 // there is no such file
	CauseNotRunnable              // unreadable, not a regular file, or no execute permission
	CauseInsecure                 // others may write the file or its directory
	CauseChecksum                 // the content is not the one that was configured
	CauseNoExec                   // the runtime directory lies on a file system mounted noexec
	CauseFormat                   // built for another machine, or no program at all
	CauseInterpreter              // the interpreter of a script, or the loader of a dynamic binary, is missing
	CauseExited                   // ended before the handshake
	CauseTimeout                  // no handshake or no answer in time
	CauseHandshake                // runs, but speaks no or another version of the protocol
	CauseConfig                   // the plugin refuses the target's configuration
	CauseLibrary                  // a dynamic binary lacks a shared library
	CauseBreach                   // answers in a way that the contract does not allow
)

// StartError is one failed start: which file, what is wrong, what to do.
type StartError struct {
	Cause  Cause
	Path   string   // the plugin's file, as configured
	What   string   // what is wrong with it
	Remedy string   // what a person can do
	Stderr []string // the last lines the process wrote, when it ran; oldest first
	Err    error    // may be nil
}

// Error names path, trouble, last words and remedy on one line, whatever characters the plugin put into it.
func (e *StartError) Error() string {
	var b strings.Builder
	b.WriteString("start plugin " + e.Path + ": " + e.What)
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if n := len(e.Stderr); n > 0 {
		b.WriteString(" (its last line: " + e.Stderr[n-1] + ")")
	}
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return printable(b.String())
}

// Unwrap answers what the operating system or the plugin said.
func (e *StartError) Unwrap() error { return e.Err }
