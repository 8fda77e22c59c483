package sdk

import "time"

// Code classifies a failure; the host acts on codes, never on text. It is an error itself, so errors.Is(err, sdk.NotFound) holds
// for any chain that carries one. The list is append-only.
type Code uint8

// The codes.
const (
	Internal Code = iota // not classified: retried, counted as the plugin's defect
	NotFound
	Exists
	PermissionDenied
	Unauthenticated
	InvalidConfig
	Throttled
	Unavailable
	NoSpace
	Corrupt
	Cancelled
	Unsupported
	PluginGone // made by the host only
	PluginHung // made by the host only
)

// Error crosses the wire whole; the SDK sends the first Code in the chain that is not Internal.
type Error struct {
	Code       Code
	Op, Key    string
	Attribute  string        // path in the config body, for InvalidConfig
	Provider   string        // the store's own code and request id
	Hint       string        // what an operator can do
	RetryAfter time.Duration // 0 = by the host's backoff
	Err        error         // text only on the far side
}
