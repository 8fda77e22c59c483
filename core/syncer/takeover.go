package syncer

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
)

// TakeoverFacts are what a standby that takes over knows when it decides between its copy and the newest commit of the targets that it claimed.
type TakeoverFacts struct {
	Have   *checkpoint.Followed // the copy, or what it was before it turned out damaged; nil = nothing is here
	Passed bool                 // the copy has passed through Newest, so that nothing of Newest is missing from it
	Pinned uuid.UUID            // the one checkpoint to start from; Nil = the newest
	Origin *CommitInfo          // the newest of the repository that Have was pulled from; nil = that was not claimed
	Newest *CommitInfo          // of all claimed targets; never nil
	Target string               // where Newest lies
	Prefix string               // and below which prefix
}

// TakesNewest says whether Newest is to be taken rather than the copy. An error: neither may be without the operator's word, for Newest is
// older than the copy and no adoption explains that; with his word the copy is kept.
//
// As in NextPull, a repository's commits go by their numbers: one that went on from a lower step was adopted. Between repositories only the
// steps tell.
func TakesNewest(f TakeoverFacts) (bool, error) {
	have, newest := f.Have, f.Newest
	switch {
	case have == nil || have.Seed || f.Pinned != uuid.Nil || newest.Checkpoint.ID == have.Checkpoint:
		return true, nil
	case f.Origin != nil && f.Origin.Number >= have.Number:
		return true, nil
	case have.Target == f.Target && have.Prefix == f.Prefix:
		return false, wentBack(have, newest.Number)
	case newest.Checkpoint.Step >= have.Step:
		return true, nil
	case f.Origin != nil:
		return false, wentBack(have, f.Origin.Number)
	case f.Passed:
		return false, nil
	}
	return false, fmt.Errorf("commit %d of target %q (step %d) is older than the copy of commit %d of target %q (step %d), which was not claimed, and is not on its history; "+
		"what is here is kept, activate with --accept-local to go on from it",
		newest.Number, f.Target, newest.Checkpoint.Step, have.Number, have.Target, have.Step)
}

// wentBack tells of a repository whose newest commit has a lower number than one that was pulled from it.
func wentBack(have *checkpoint.Followed, newest uint64) error {
	return fmt.Errorf("target %q: %w: commit %d (step %d) was pulled from below %q, and the newest there is now commit %d: it was put back "+
		"to an earlier state, or made anew; what is here is kept, activate with --accept-local to go on from it",
		have.Target, repository.ErrCorrupt, have.Number, have.Step, have.Prefix, newest)
}
