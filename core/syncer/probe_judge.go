package syncer

import (
	"fmt"

	"github.com/cairnsync/cairn/sdk"
)

// Fencing says what keeps two writers of one repository apart.
type Fencing string

// The kinds of fencing.
const (
	FencingRequired Fencing = "required" // the store's create-if-absent, proven by a probe; "" means the same
	FencingAdvisory Fencing = "advisory" // looking before and after each write: one writer alone is safe, two may overwrite each other
)

// AdvisoryWarning is what every status says of a target whose fencing is advisory.
const AdvisoryWarning = `fencing = "advisory": two writers cannot be told apart on this target, and each may overwrite what the other has reported as committed; ` +
	`let one host alone write there, or use a store that keeps create-if-absent and remove the attribute`

// Use is what a target is good for, by what a probe has seen.
type Use string

// The uses.
const (
	UseUnknown  Use = "unknown"   // no answer that tells: to be tried again
	UsePush     Use = "usable"    // pushes are safe
	UseAdvisory Use = "advisory"  // pushes are safe while there is one writer
	UseReadOnly Use = "read-only" // restores only
	UseNone     Use = "refused"   // the store cannot be worked with as it is
)

// Verdict is what the rights on a store mean.
type Verdict struct {
	Use    Use
	Reason string   // why pushes do not go there; "" when they do
	Remedy string   // what an operator can do about that
	Limits []string // what does not work though pushes do, in words

	cause error // of a verdict that refuses, or that must be tried again
}

// Judge decides what the rights mean under a kind of fencing. What is known to be wrong decides before what is not known.
func (r ProbeReport) Judge(fencing Fencing) Verdict {
	switch {
	case r.List.lacking():
		return refused(UseNone, r.List, r.List.without("list")+" a push cannot prove that its epoch stands", "grant it, for the whole prefix")
	case r.Read.lacking():
		return refused(UseNone, r.Read, r.Read.without("read")+" a push cannot tell whose the repository is", "grant it, for the whole prefix")
	case r.Write.lacking():
		return refused(UseReadOnly, r.Write, "it can be read and not written: restores work, pushes do not", "grant the right to write below the prefix")
	case fencing != FencingAdvisory && r.Conditional.lacking():
		return refused(UseNone, r.Conditional, "it does not keep create-if-absent, so two writers could overwrite each other",
			`use a store that keeps it or, where one host alone ever writes there, set fencing = "advisory" in the sync block`)
	}
	for _, right := range []Right{r.Read, r.List, r.Write, r.Conditional} {
		if right.State == RightUnknown {
			return Verdict{Use: UseUnknown, Reason: "what the store allows is not known: " + right.Error, Remedy: "it is tried again", cause: right.cause()}
		}
	}
	v := Verdict{Use: UsePush}
	if fencing == FencingAdvisory {
		v.Use = UseAdvisory
	}
	if r.Delete.State != RightOK {
		v.Limits = append(v.Limits, fmt.Sprintf("the right to delete is %s: pushes go on, nothing there can be removed, and each probe leaves two small objects: %s", r.Delete.State, r.Delete.Error))
	}
	return v
}

// lacking says that the right is known not to be there.
func (r Right) lacking() bool { return r.State == RightDenied || r.State == RightFailed }

// without begins the reason why nothing goes without a right.
func (r Right) without(right string) string {
	if r.State == RightFailed {
		return "the attempt to " + right + " does not end as the contract says, and without it"
	}
	return "the right to " + right + " is missing, and without it"
}

func refused(use Use, right Right, reason, remedy string) Verdict {
	switch {
	case right.Code == sdk.Internal.String():
		remedy = "look at the log of the plugin, which gives no code for this error: that, or a panic, is a defect of the plugin; `cairn plugin check FILE` puts it through the exam"
	case right.State == RightFailed:
		remedy += "; what the store answered is not what the contract says: `cairn plugin check FILE` puts the plugin through the exam"
	}
	return Verdict{Use: use, Reason: reason, Remedy: remedy, cause: right.cause()}
}

// Refusal is the error of a push to a target that is not good for it; nil when it is, or when that is not known.
func (v Verdict) Refusal(target string) error {
	if v.Use != UseNone && v.Use != UseReadOnly {
		return nil
	}
	return &RefusedError{Target: target, Reason: v.Reason, Remedy: v.Remedy, Err: v.cause}
}

// Warnings are what a status says of a target that is pushed to all the same. report may be nil: nothing was probed yet.
func Warnings(fencing Fencing, report *ProbeReport) []string {
	warnings := []string{}
	if fencing == FencingAdvisory {
		warnings = append(warnings, AdvisoryWarning)
	}
	if report != nil {
		warnings = append(warnings, report.Judge(fencing).Limits...)
	}
	return warnings
}
