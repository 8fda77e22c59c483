package syncer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
)

// VerifyLevel says how much of a repository a verification reads.
type VerifyLevel string

// The levels.
const (
	VerifyMetadata VerifyLevel = "metadata" // every object but packs, whose presence and size a listing shows
	VerifySample   VerifyLevel = "sample"   // and a part of the chunks
	VerifyDeep     VerifyLevel = "deep"     // and every chunk
)

// maxProblems is how many problems a report holds; more are counted.
const maxProblems = 1000

// VerifyRequest asks whether what a repository lists can be restored.
type VerifyRequest struct {
	Level    VerifyLevel // "" = VerifyMetadata
	Fraction float64     // VerifySample: of the chunks, above 0 and at most 1
	Seed     uint64      // VerifySample: picks the chunks; the same seed picks the same ones
	From     *Selector   // only this commit and its packs; nil = every commit that can be restored

	// Expect is a commit that the caller knows to have been made and to be the newest or have a newer one behind it: there must be one at or above
	// it. With From it goes with the newest alone. 0 = the caller knows of none.
	Expect uint64

	Spool    *Spool         // VerifySample, VerifyDeep
	Progress func(Progress) // nil = none; called from other goroutines, one call at a time, until Verify returns
}

// VerifyReport is what a verification has found.
type VerifyReport struct {
	Level    VerifyLevel
	Fraction float64 // 0 but for VerifySample
	Seed     uint64  // likewise
	Commits  int     // checkpoint commits that were verified
	Seals    int     // commits of kind seal that were verified with them
	Packs    int     // packs that the commits name
	Chunks   int     // distinct chunks that were read and checked
	Newest   *CommitInfo

	Orphans     int   // packs that no commit names and no push is making; a sweep takes them. 0 where a commit that cannot be read may name them
	OrphanBytes int64 // of them

	Bytes    int64 // of packs that were read
	Requests int64 // calls made to the store, repeated ones included
	Started  time.Time
	Finished time.Time

	Problems []Problem // the first thousand
	More     int       // problems beyond those
	Broken   []uint64  // commits that cannot be restored whole, ascending
	Proof    *Proof    // nil = something is wrong, or there is nothing to prove
	Known    *Damage   // what else the worker knows to be broken, and this was not deep enough to find: then nothing is proven; nil = nothing

	bad       map[repository.PackID]struct{} // packs that are missing or damaged
	inventory *repository.Inventory          // what was looked at
	gc        repository.GC                  // as read; zero where one commit was asked for
	head      uint64                         // highest number that is listed
}

// Proof says that a repository was verified and nothing was wrong.
type Proof struct {
	At         time.Time   `json:"at"`
	Level      VerifyLevel `json:"level"`
	Fraction   float64     `json:"fraction,omitempty"` // VerifySample
	Commit     uint64      `json:"commit"`             // newest that was verified
	Checkpoint uuid.UUID   `json:"checkpoint"`         // of that commit
	Commits    int         `json:"commits"`            // how many were
}

// depth orders verifications by the part of the chunks that they read.
func (p Proof) depth() float64 {
	switch p.Level {
	case VerifyDeep:
		return 1
	case VerifySample:
		return p.Fraction
	}
	return 0
}

// ProblemKind is a class of problem.
type ProblemKind string

// The kinds of problem.
const (
	MissingCommit  ProblemKind = "missing-commit"
	DamagedCommit  ProblemKind = "damaged-commit"
	BrokenLine     ProblemKind = "broken-line" // a commit that cannot stand where it stands
	MissingPack    ProblemKind = "missing-pack"
	DamagedPack    ProblemKind = "damaged-pack"
	DamagedFormat  ProblemKind = "damaged-format"
	DamagedEpoch   ProblemKind = "damaged-epoch"
	DamagedGC      ProblemKind = "damaged-gc"
	MissingHistory ProblemKind = "missing-history" // there were commits, and there are none
)

// Problem is one thing that is wrong, and what can be done.
type Problem struct {
	Kind    ProblemKind
	Object  string   // key of the object
	Commits []uint64 // those that it breaks, ascending; empty = it breaks none
	File    string   // a file that needs it; "" = not known
	What    string
	Remedy  string
}

// remedyCopy is the first remedy of most problems.
const remedyCopy = "put the object back from a copy of the target, if there is one"

func (c Commands) remedyRepair() string {
	return c.Repair() + " makes a whole commit of the newest local checkpoint; another commit that is named nowhere here can be restored meanwhile"
}

func (c Commands) remedyPack() string { return remedyCopy + "; without one, " + c.remedyRepair() }

func (c Commands) remedyGone() string {
	return "see whether its disk is mounted, whether somebody wiped it, and whether the target names another place than before; put all of it back, if that can be done; then, or to begin a new repository there, run " + c.Adopt()
}

func (c Commands) remedyNone() string {
	return "see whether its disk is mounted, and whether its place and the prefix are the right ones; of a pipeline that is new, " + c.Push() + " makes the first commit"
}

func (c Commands) remedyCommit() string {
	return remedyCopy + "; without one, keep what it is elsewhere and delete it, for nothing can be restored from it, and " + c.remedyRepair()
}

func (c Commands) remedyWhole() string {
	return c.Verify() + " looks at every object and names the one that is damaged; " + remedyCopy
}

func (c Commands) remedyHead() string {
	return "put the objects back as they were, from an earlier version in the bucket or a copy of the target: until then nothing is written here, and nothing of what is left should be deleted; " +
		"if what is lost is given up, " + c.RestoreNumber(0) + " restores a commit that " + c.List() + " shows, and under another prefix the next push begins a new repository"
}

// Verify reads a repository and says what of it could not be restored. It never writes to the target. A problem of the repository is part of
// the report; an error says that it could not be verified: it cannot be reached, belongs to another pipeline (*OwnedError) or was written by
// a newer version (*repository.UnsupportedError), or there is none and the caller knows of none (ErrNoRepository). A repository without a
// checkpoint is no problem and proves nothing, unless traces of commits are left. It may run beside pushes, retention and sweeps.
func (r *Reader) Verify(ctx context.Context, req VerifyRequest) (VerifyReport, error) {
	req.Level = cmp.Or(req.Level, VerifyMetadata)
	if err := req.check(); err != nil {
		return VerifyReport{}, err
	}
	before := r.calls.note.snapshot().Requests
	v := &verification{reader: r, req: req, started: r.calls.now()}
	err := r.settled(ctx, func() error {
		v.reset()
		return v.readLine(ctx)
	})
	if err == nil {
		err = v.readPacks(ctx)
	}
	if err != nil {
		return VerifyReport{}, fmt.Errorf("verify: %w", err)
	}
	rep := v.finish()
	rep.Requests = r.calls.note.snapshot().Requests - before
	return rep, nil
}

func (req VerifyRequest) check() error {
	switch {
	case req.Level != VerifyMetadata && req.Level != VerifySample && req.Level != VerifyDeep:
		return fmt.Errorf("verify: level %q is unknown", req.Level)
	case req.Level == VerifySample && !(req.Fraction > 0 && req.Fraction <= 1):
		return fmt.Errorf("verify: a fraction of %v: want one above 0 and at most 1", req.Fraction)
	case req.Level != VerifyMetadata && req.Spool == nil:
		return errors.New("verify: chunks are read through a spool, and there is none")
	}
	return nil
}

// verification is one run of Verify.
type verification struct {
	reader  *Reader
	req     VerifyRequest
	started time.Time

	rep       VerifyReport
	inventory *repository.Inventory
	gc        repository.GC // as read after the commits
	epoch     uint64        // highest
	head      uint64        // highest number that is listed
	unread    bool          // a commit is damaged or missing: what it named is not known
}

// reset begins anew, for a repository that has changed while it was read.
func (v *verification) reset() {
	v.rep = VerifyReport{Level: v.req.Level, Started: v.started, bad: map[repository.PackID]struct{}{}}
	if v.req.Level == VerifySample {
		v.rep.Fraction, v.rep.Seed = v.req.Fraction, v.req.Seed
	}
	v.inventory, v.gc, v.epoch, v.head = &repository.Inventory{}, repository.GC{}, 0, 0
	v.unread = false
}

// found notes a problem.
func (v *verification) found(p Problem) {
	v.rep.Broken = append(v.rep.Broken, p.Commits...)
	if len(v.rep.Problems) == maxProblems {
		v.rep.More++
		return
	}
	v.rep.Problems = append(v.rep.Problems, p)
}

// finish completes the report.
func (v *verification) finish() VerifyReport {
	rep := v.rep
	slices.Sort(rep.Broken)
	rep.Broken = slices.Compact(rep.Broken)
	rep.Finished, rep.inventory, rep.gc, rep.head = v.reader.calls.now(), v.inventory, v.gc, v.head
	if len(rep.Problems) == 0 && rep.Newest != nil {
		rep.Proof = &Proof{
			At: rep.Finished.UTC(), Level: rep.Level, Fraction: rep.Fraction,
			Commit: rep.Newest.Number, Checkpoint: rep.Newest.Checkpoint.ID, Commits: rep.Commits,
		}
	}
	return rep
}
