package sdk

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Code classifies a failure; the host acts on codes, never on text. It is an error itself, so errors.Is(err, sdk.NotFound) holds
// for any chain that carries one. The list is append-only; a code that the other side does not know is read as Internal.
type Code uint8

// The codes, and what the host does on each.
const (
	Internal         Code = iota // not classified: retried, counted as the plugin's defect
	NotFound                     // the object is proven absent
	Exists                       // a Put with IfAbsent met an object
	PermissionDenied             // the store knows who asks and refuses; says nothing about whether the object exists
	Unauthenticated              // the store does not accept the credentials
	InvalidConfig                // the configuration cannot work; Error.Attribute says where
	Throttled                    // the store asks for fewer requests: retried more slowly
	Unavailable                  // the store cannot be reached or does not answer now: retried
	NoSpace                      // the store is full
	Corrupt                      // bytes are missing, too many, or not those that were declared
	Cancelled                    // the caller gave up
	Unsupported                  // the store cannot do this at all, or the request breaks the contract
	PluginGone                   // made by the host only: the process or its connection ended
	PluginHung                   // made by the host only: the process lives and says nothing
)

// codeNames is in the order of the constants: the name in logs and JSON, and the words of Error.
func codeNames() [14][2]string {
	return [...][2]string{
		{"Internal", "internal error"},
		{"NotFound", "not found"},
		{"Exists", "already exists"},
		{"PermissionDenied", "permission denied"},
		{"Unauthenticated", "credentials not accepted"},
		{"InvalidConfig", "invalid configuration"},
		{"Throttled", "throttled by the store"},
		{"Unavailable", "store unavailable"},
		{"NoSpace", "no space left on the store"},
		{"Corrupt", "corrupt data"},
		{"Cancelled", "cancelled"},
		{"Unsupported", "not supported"},
		{"PluginGone", "plugin gone"},
		{"PluginHung", "plugin hung"},
	}
}

// Known tells whether this SDK has a meaning for the code; one from a newer SDK is to be read as Internal.
func (c Code) Known() bool { return c <= PluginHung }

// String is the code's name, such as "NotFound".
func (c Code) String() string {
	if !c.Known() {
		return "Code(" + strconv.Itoa(int(c)) + ")"
	}
	return codeNames()[c][0]
}

// Error is the code in words, such as "not found".
func (c Code) Error() string {
	if !c.Known() {
		return "unknown error code " + strconv.Itoa(int(c))
	}
	return codeNames()[c][1]
}

// MarshalText writes the name, so that a code in JSON is "NotFound" and not a number.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a name; one from a newer SDK becomes Internal.
func (c *Code) UnmarshalText(text []byte) error {
	*c = Internal
	for i, names := range codeNames() {
		if names[0] == string(text) {
			*c = Code(i)
		}
	}
	return nil
}

// Error is a failure with everything the host acts on and a person reads. It crosses the wire whole. A method may return one, wrap
// one, or return any other error: the SDK sends what CodeOf finds.
type Error struct {
	Code       Code
	Op, Key    string        // what was done to what, such as "put" and "pack/…"
	Attribute  string        // path in the config body, for InvalidConfig
	Provider   string        // the store's own code and request id
	Hint       string        // what an operator can do
	RetryAfter time.Duration // 0 = by the host's backoff
	Err        error         // the cause; text only on the far side
}

// Error reads "put a/b: permission denied: <cause> (AccessDenied, request 7)". The hint is left to whoever shows the error.
func (e *Error) Error() string {
	var parts []string
	if what := strings.TrimSpace(e.Op + " " + e.Key); what != "" {
		parts = append(parts, what)
	}
	if e.Attribute != "" {
		parts = append(parts, e.Attribute)
	}
	// A code without a cause, or one that says more than "unclassified", is part of the sentence.
	if e.Err == nil || e.Code != Internal {
		parts = append(parts, e.Code.Error())
	}
	if e.Err != nil && e.Err.Error() != e.Code.Error() {
		parts = append(parts, e.Err.Error())
	}
	text := strings.Join(parts, ": ")
	if e.Provider != "" {
		text += " (" + e.Provider + ")"
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, sdk.NotFound) true for an Error with that code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// CodeOf gives the first code in the chain of err that is not Internal, depth first. A bare context.Canceled is Cancelled and a bare
// context.DeadlineExceeded is Unavailable; anything else without a code is Internal. It must not be asked about nil.
func CodeOf(err error) Code {
	if code := firstCode(err); code != Internal {
		return code
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return Unavailable
	}
	return Internal
}

func firstCode(err error) Code {
	switch e := err.(type) {
	case nil:
		return Internal
	case Code:
		return e
	case *Error:
		if e.Code != Internal {
			return e.Code
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return firstCode(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if code := firstCode(one); code != Internal {
				return code
			}
		}
	}
	return Internal
}
