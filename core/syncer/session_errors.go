package syncer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// ErrUnresolved is in the chain of a job's error when the store never answered whether the commit exists. It may exist already, or
// come to exist still; the next job looks before it does anything else.
var ErrUnresolved = errors.New("the outcome is not known")

// ErrSuperseded is in the chain of a job's error when a newer state of the same line is committed already: committing an older one on
// top would make readers go back.
var ErrSuperseded = errors.New("a newer checkpoint is committed already")

// FencedError says that another writer holds the repository. This one has stopped, for good: only adopt or a new start claims again.
type FencedError struct {
	Target string
	Epoch  uint64           // ours
	By     repository.Epoch // theirs; only Number is set when the epoch object could not be read
	Run    Commands
}

func (e *FencedError) Error() string {
	var who strings.Builder
	if e.By.Host != "" {
		fmt.Fprintf(&who, " by host %q (incarnation %s) at %s", e.By.Host, e.By.Writer.Incarnation, e.By.Started.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("target %q: fenced: epoch %d was claimed%s, ours was %d; this host has stopped pushing there, keeps its local checkpoints and computes on: "+
		"stop it with %s%s; or take the target back with %s, which fences the other and overrules its commits", e.Target, e.By.Number, who.String(), e.Epoch, e.Run.Stop(), e.follow(), e.Run.Adopt())
}

func (e *FencedError) follow() string {
	if how := e.Run.Follow(true); how != "" {
		return ", or let it follow the other with " + how
	}
	return " (it can follow the other once one of its sync blocks has a pull_interval)"
}

// HeldError says that the newest commit is not on the history of our state. Nothing was claimed and nothing is pushed until the operator
// adopts the target, or restores from it.
type HeldError struct {
	Target     string
	Commit     uint64 // the newest checkpoint commit
	CommitStep uint64 // its step
	Step       uint64 // ours
	Fork       uint64 // the last step that both histories share; 0 = none
	Behind     uint64 // steps of theirs that ours never passed through

	Forgotten bool      // it was made from our own storage path, which knows nothing of it: Fork and Behind are not known
	Made      time.Time // forgotten: when, by the clock of its host

	Run Commands
}

func (e *HeldError) Error() string {
	if e.Forgotten {
		return fmt.Sprintf("target %q: held: commit %d there (step %d) was made from this storage path at %s, and what lies in it now (step %d) knows nothing of that: "+
			"it was put back to an earlier state, or is a copy that another host runs; %sto continue with the commit, stop the host and run %s, "+
			"which keeps what is here in a folder beside; to continue with what is here, and overrule the commit, run %s; either way the first push fences a host that runs the pipeline elsewhere",
			e.Target, e.Commit, e.CommitStep, e.Made.UTC().Format(time.RFC3339), e.Step, e.follow(), e.Run.RestoreInPlace(), e.Run.Adopt())
	}
	return fmt.Sprintf("target %q: held: commit %d there (step %d) is not on the history of our state (step %d): "+
		"%d of its steps, those after step %d, are not in ours; %sto continue with theirs, stop the host and run %s, which keeps ours in a folder beside; "+
		"to continue with ours, run %s; either way the first push fences a host that runs the pipeline elsewhere",
		e.Target, e.Commit, e.CommitStep, e.Step, e.Behind, e.Fork, e.follow(), e.Run.RestoreInPlace(), e.Run.Adopt())
}

// follow is the way on where another host has taken this one's place.
func (e *HeldError) follow() string {
	if how := e.Run.Follow(false); how != "" {
		return "where another host runs the pipeline now, let this one follow it with " + how + "; "
	}
	return ""
}

// VanishedError says that the repository is no longer the one that this host writes: its epoch is not there any more, or is another
// writer's, or it is in an earlier state. Nothing of the job counts. The next job begins as after a restart: by looking.
type VanishedError struct {
	Target, Prefix string
	Epoch          uint64            // ours
	By             *repository.Epoch // who has an epoch of that number there now; nil = nobody
	Commit         uint64            // not 0: the epoch may stand, and this commit is not there any more, is not whole, or has another content
	PutBack        bool              // the epoch stands: the repository is in an earlier state
}

func (e *VanishedError) Error() string {
	if e.PutBack {
		return fmt.Sprintf("target %q: commit %d below %q, which this host made or continued, is gone or not whole, while epoch %d, which is ours, stands: the repository "+
			"was put back to an earlier state, or somebody deletes by hand there, and what was committed since is lost from it; nothing of this push counts; "+
			"the next push looks anew and uploads again what is missing", e.Target, e.Commit, e.Prefix, e.Epoch)
	}
	if e.Commit != 0 {
		return fmt.Sprintf("target %q: commit %d below %q, which this host made or continued, is gone or was overwritten: another writer is at work there, "+
			"and fencing is only advisory: let one host alone write to it; the next push looks anew", e.Target, e.Commit, e.Prefix)
	}
	now := "or FORMAT.json beside it, is not there any more"
	if e.By != nil {
		now = fmt.Sprintf("is that of host %q (incarnation %s) since %s", e.By.Host, e.By.Writer.Incarnation, e.By.Started.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("target %q: the repository below %q has vanished while this host wrote to it: epoch %d, which was ours, %s: "+
		"see whether its disk is mounted and whether somebody wiped it; the next push looks anew", e.Target, e.Prefix, e.Epoch, now)
}

// LostError says that a repository which held a commit of ours holds none now. Nothing was written, and the target is held until the operator
// adopts it.
type LostError struct {
	Target, Prefix string
	Was            CommitRef // what was there
	Run            Commands
}

func (e *LostError) Error() string {
	return fmt.Sprintf("target %q: held: commit %d (checkpoint %s, step %d, confirmed %s) was below %q and nothing is there now: its disk may not "+
		"be mounted, it may have been wiped, or the target may name another place than before; bring it back, or correct the configuration and start the host again, and then run "+
		"%s; where it is gone for good, run %s, with which the next push begins a new repository",
		e.Target, e.Was.Number, e.Was.Checkpoint, e.Was.Step, e.Was.At.UTC().Format(time.RFC3339), e.Prefix, e.Run.Push(), e.Run.Adopt())
}

// OwnedError refuses a repository that belongs to another pipeline. Nothing was written.
type OwnedError struct {
	Target, Prefix  string
	Pipeline, Owner uuid.UUID
	Name, OwnerName string // OwnerName is what the owner was called when it made the repository
}

func (e *OwnedError) Error() string {
	return fmt.Sprintf("target %q: the repository below %q is owned by pipeline %s (%q when it was created); this is pipeline %s (%q): "+
		"give it another prefix or, to continue pipeline %s here, start on an empty storage path with start_from_checkpoint = \"latest\"", e.Target, e.Prefix, e.Owner, e.OwnerName, e.Pipeline, e.Name, e.Owner)
}

// RefusedError says that a target cannot be used safely.
type RefusedError struct {
	Target string
	Reason string
	Remedy string
	Err    error // what the store answered
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("target %q cannot be used: %s: %s (%v)", e.Target, e.Reason, e.Remedy, e.Err)
}

// Unwrap gives the store's error.
func (e *RefusedError) Unwrap() error { return e.Err }

// unanswered marks the error of a create that may have happened, or may happen still.
func unanswered(err error) error {
	switch sdk.CodeOf(err) {
	case sdk.PermissionDenied, sdk.Unauthenticated, sdk.InvalidConfig, sdk.NoSpace, sdk.Unsupported, sdk.Corrupt:
		return err // the store refused: that is an answer
	}
	return fmt.Errorf("%w: %w", ErrUnresolved, err)
}

// MisstoredError says that an object which was stored a moment ago is listed as something else: the store, or the plugin before it, does not keep what
// it has acknowledged. It is a repository.ErrCorrupt. The commit that it belongs to was not told as success to anyone.
type MisstoredError struct {
	Target, Key string
	Err         error // what is wrong with it
}

func (e *MisstoredError) Error() string {
	return fmt.Sprintf("target %q: %s was stored just now, and %v: the store, or the plugin before it, does not keep what it acknowledges, so nothing counts as committed; "+
		"see to the store and examine the plugin with `cairn plugin check`; the next push stores all of it anew", e.Target, e.Key, e.Err)
}

// Unwrap gives repository.ErrCorrupt and what is wrong.
func (e *MisstoredError) Unwrap() []error { return []error{repository.ErrCorrupt, e.Err} }
