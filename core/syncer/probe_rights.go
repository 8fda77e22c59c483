package syncer

import (
	"errors"
	"fmt"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// RightState is what a probe has seen of one right.
type RightState string

// The states of a right.
const (
	RightOK      RightState = "ok"      // it was used, and the store did what the contract says
	RightDenied  RightState = "denied"  // the store knows who asks and refuses
	RightFailed  RightState = "failed"  // the store answers, and not as the contract says
	RightUnknown RightState = "unknown" // no answer that tells, or not tried
)

// Right is what a probe has seen of one right: a value, which can be saved.
type Right struct {
	State    RightState    `json:"state"`
	Code     string        `json:"code,omitempty"`     // name of the error's sdk.Code; "" when the state is ok or it was not tried
	Error    string        `json:"error,omitempty"`    // why it is not ok
	Provider string        `json:"provider,omitempty"` // the store's own code and request id
	Hint     string        `json:"hint,omitempty"`     // what the plugin says can be done
	Took     time.Duration `json:"took"`               // of all calls for it, repeated ones and waits included

	err error // the error itself; nil after it was saved
}

// Rights are the rights that Cairn needs on a store, each for itself.
type Rights struct {
	Read        Right `json:"read"`        // an object whole and a range of it; an absent one is NotFound
	Write       Right `json:"write"`       // an object is created
	List        Right `json:"list"`        // what was just written is shown, in order
	Delete      Right `json:"delete"`      // an object is removed, and then absent
	Conditional Right `json:"conditional"` // a second create of one key is refused, and changes nothing
}

// ProbeReport is what one probe has seen.
type ProbeReport struct {
	Rights

	At   time.Time  `json:"at"`             // when it ended, by our clock
	Skew *ClockSkew `json:"skew,omitempty"` // nil = the store's listings tell no time, or none was made
}

// ClockSkew is how the store's clock stands to ours. Nothing depends on it: order is by number, never by time.
type ClockSkew struct {
	Ahead  time.Duration `json:"ahead"`  // of ours; negative = behind
	Within time.Duration `json:"within"` // how exact that is: what the call took, and the second that many stores round to
}

// skewOf judges the time that a store gave to an object created between two moments of our clock.
func skewOf(began, ended, modified time.Time) *ClockSkew {
	if modified.IsZero() {
		return nil
	}
	half := ended.Sub(began) / 2
	return &ClockSkew{Ahead: modified.Sub(began.Add(half)), Within: half + time.Second}
}

// stateOf says what an error tells of the right that was used. Credentials that are not accepted, a full store and one that does not answer
// say nothing about it: they are troubles of their own, which pass or are put right, and the next job asks again.
func stateOf(err error) RightState {
	switch sdk.CodeOf(err) {
	case sdk.PermissionDenied:
		return RightDenied
	case sdk.Unauthenticated, sdk.NoSpace, sdk.Throttled, sdk.Unavailable, sdk.Cancelled, sdk.PluginGone, sdk.PluginHung:
		return RightUnknown
	default:
		return RightFailed
	}
}

// good notes that the right was used as it should be, unless something else was seen before.
func (r *Right) good() {
	if r.State == "" {
		r.State = RightOK
	}
}

// bad notes what was seen against the right; the first such thing stands.
func (r *Right) bad(err error) {
	if r.State != "" && r.State != RightOK {
		return
	}
	r.State, r.Code, r.Error, r.err = stateOf(err), sdk.CodeOf(err).String(), err.Error(), err
	if e, ok := errors.AsType[*sdk.Error](err); ok {
		r.Provider, r.Hint = e.Provider, e.Hint
	}
}

// broken notes an answer that is none of the contract's.
func (r *Right) broken(op, key, format string, args ...any) {
	r.bad(&sdk.Error{Code: sdk.Unsupported, Op: op, Key: key, Err: fmt.Errorf(format, args...)})
}

// untried closes the record of a right that nothing was seen of.
func (r *Right) untried(why error) {
	if r.State != "" {
		return
	}
	r.State, r.Error, r.err = RightUnknown, "not tried", errors.New("not tried")
	if why != nil {
		r.Error, r.err = "not tried: "+why.Error(), fmt.Errorf("not tried: %w", why)
	}
}

// cause is the error behind a right that is not ok.
func (r Right) cause() error {
	if r.err != nil {
		return r.err
	}
	return errors.New(r.Error)
}
