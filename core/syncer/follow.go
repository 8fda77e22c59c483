package syncer

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
)

// FollowFacts are what a standby knows when it decides what to pull.
type FollowFacts struct {
	Target, Prefix string // of the repository that it follows

	Pinned uuid.UUID            // the one checkpoint to have; Nil = always the newest
	Have   *checkpoint.Followed // what is here whole; nil = nothing

	Own   *CommitInfo // what the followed repository has of what is wanted; nil = proven absence
	Holds bool        // it holds a checkpoint at all

	SeedName string
	Seed     *CommitInfo // likewise; only looked at where the followed repository holds nothing
}

// FollowStep is what a standby does next.
type FollowStep struct {
	Pull *CommitInfo // nil = nothing is to be pulled
	Seed bool        // it is the seed's
	Why  string      // a sentence for status
}

// NextPull decides which commit a standby pulls. A repository that has gone back, or whose commits are gone, is an error: the copy that is
// here is kept and the operator is told.
func NextPull(f FollowFacts) (FollowStep, error) {
	have := f.have()
	switch {
	case f.Own != nil && have != nil && f.Own.Checkpoint.ID == have.Checkpoint:
		return FollowStep{Why: "the newest commit is here"}, nil
	case f.Own != nil && have != nil && f.Pinned == uuid.Nil && f.Own.Number < have.Number:
		return FollowStep{}, wentBack(have, f.Own.Number)
	case f.Own != nil:
		return FollowStep{Pull: f.Own, Why: fmt.Sprintf("commit %d of target %q is to be pulled", f.Own.Number, f.Target)}, nil
	case have != nil && f.Pinned != uuid.Nil && have.Checkpoint == f.Pinned:
		return FollowStep{Why: "the checkpoint that is asked for is here; it is not on the target any more"}, nil
	case have != nil && !f.Holds:
		return FollowStep{}, fmt.Errorf("target %q: %w: commit %d (step %d) was pulled from below %q and nothing is there now: its disk may not be mounted, or it was "+
			"wiped; what is here is kept, activate with --accept-local to go on from it", f.Target, repository.ErrCorrupt, have.Number, have.Step, f.Prefix)
	case f.Holds:
		return FollowStep{Why: fmt.Sprintf("target %q does not hold checkpoint %s", f.Target, f.Pinned)}, nil
	}
	return f.fromSeed(), nil
}

// fromSeed is the step where nothing of our own exists.
func (f FollowFacts) fromSeed() FollowStep {
	switch {
	case f.Seed == nil && f.SeedName == "":
		return FollowStep{Why: fmt.Sprintf("target %q holds no checkpoint yet", f.Target)}
	case f.Seed == nil:
		return FollowStep{Why: fmt.Sprintf("neither target %q nor the seed %q holds what is wanted yet", f.Target, f.SeedName)}
	case f.Have != nil && f.Have.Seed && f.Have.Checkpoint == f.Seed.Checkpoint.ID:
		return FollowStep{Why: fmt.Sprintf("target %q holds no checkpoint yet; that of the seed %q is here", f.Target, f.SeedName)}
	}
	return FollowStep{Pull: f.Seed, Seed: true, Why: fmt.Sprintf("target %q holds no checkpoint yet; commit %d of the seed %q is to be pulled", f.Target, f.Seed.Number, f.SeedName)}
}

// have is what is here of the repository that is followed now: a seed's, or another repository's from before the configuration was changed,
// is no part of its history.
func (f FollowFacts) have() *checkpoint.Followed {
	if f.Have == nil || f.Have.Seed || f.Have.Target != f.Target || f.Have.Prefix != f.Prefix {
		return nil
	}
	return f.Have
}

// followBackoffCap bounds the wait after failures, where the pull interval itself is not longer.
const followBackoffCap = time.Minute

// NextLook is how long a standby waits for its next look: the interval, doubled for each failure in a row after the first, up to a minute or
// the interval, whichever is longer. jitter, in [0, 1), takes up to half off the waits after failures.
func NextLook(every time.Duration, failures int, jitter float64) time.Duration {
	if failures == 0 {
		return every
	}
	longest := max(every, followBackoffCap)
	wait := every
	for range failures - 1 {
		if wait *= 2; wait >= longest {
			wait = longest
			break
		}
	}
	return wait - time.Duration(jitter/2*float64(wait))
}

// Place is a repository as a standby knows it.
type Place struct {
	Target, Prefix string
	Seed           bool // it is the seed's, of another pipeline
}

// Lag is by how much one commit is older than another. The zero value: by nothing.
type Lag struct {
	Age     time.Duration // between the moments at which their checkpoints were taken
	Steps   uint64        // 0 where NoSteps
	Commits uint64        // by their numbers, where seals of takeovers count; 0 where NoCommits

	NoSteps   bool // by how many steps cannot be told: each pipeline counts its own
	NoCommits bool // nor by how many commits: each repository counts its own
}

// LagOf is how far what is here lies behind the newest commit that was seen, which lies in that place.
func LagOf(have *checkpoint.Followed, seen *CommitInfo, in Place) Lag {
	switch {
	case seen == nil:
		return Lag{}
	case have == nil:
		return Lag{Steps: seen.Checkpoint.Step, Commits: seen.Number}
	case have.Checkpoint == seen.Checkpoint.ID:
		return Lag{}
	}
	from := Place{Target: have.Target, Prefix: have.Prefix, Seed: have.Seed}
	lag := Lag{
		Age:       max(0, seen.Checkpoint.Created.Sub(have.Created)),
		NoCommits: from != in || have.Number == 0,
		NoSteps:   from != in && (from.Seed || in.Seed),
	}
	if !lag.NoSteps {
		lag.Steps = seen.Checkpoint.Step - min(seen.Checkpoint.Step, have.Step)
	}
	if !lag.NoCommits {
		lag.Commits = seen.Number - min(seen.Number, have.Number)
	}
	return lag
}
