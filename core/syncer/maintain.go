package syncer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cairnsync/cairn/core/repository"
)

// ErrNoEpoch says that this host holds no epoch of the repository, so nothing may be retired, swept or pinned by it. A push that commits something
// claims one.
var ErrNoEpoch = errors.New("this host has not claimed the repository")

// MaintainRequest asks for one run of maintenance.
type MaintainRequest struct {
	DryRun    bool // read and plan as a real run would, and write nothing; a worker that holds no epoch can do this too
	Thorough  bool // sweep although nothing says that there is anything to sweep, as after a push that succeeded
	MaxDelete int  // in place of the policy's guard, for this run; 0 = the policy's
}

// MaintainReport is what a run did or, when it was dry, would do. After an error it holds what was done before.
type MaintainReport struct {
	DryRun   bool
	Epoch    uint64 // under which it ran; of a dry run without one, the next that could be claimed
	Started  time.Time
	Finished time.Time
	Requests int64 // calls made to the store

	Policy   *repository.Retention // nil = there is none: every commit is kept
	Verdicts []repository.Verdict  // each commit that was there, ascending by number; empty without a policy
	GC       uint64                // number of the gc object that was created; 0 = none was needed
	Kept     int                   // checkpoint commits that readers see afterwards
	Retired  int                   // checkpoint commits that they see no more
	Deleted  int                   // commit objects deleted, seals and remains of earlier runs among them
	Dangling []repository.Pin      // pins whose commit is not there
	Missing  []uint64              // commits that should be there and are proven not to be

	Sweep *SweepReport // nil = nothing said that a sweep is needed

	Failed []string // objects that the store did not delete, and why; the next run tries again
}

// SweepReport is what a sweep found and did.
type SweepReport struct {
	Packs, Bytes         int64 // that were there
	Orphans, OrphanBytes int64 // no commit named them and none ever can
	Undecided            int64 // no commit names them yet: they may belong to a push that is under way
	UndecidedBytes       int64
	Swept, SweptBytes    int64 // orphans deleted
	Foreign              int64 // objects between the packs that are none: left alone
	More                 bool  // there were more orphans than one run takes: the next goes on
}

// Maintain runs retention, then a sweep, under the epoch that the worker's session held when its last job had ended. It runs beside pushes and
// waits for none; of two calls the second waits for the first. What it needs is taken as a value before it reads anything, so that whatever
// a push does meanwhile lies above what is retired or swept. Any listing or reading that fails ends it before anything of that step is deleted; it
// may be killed anywhere, and run again.
//
// Without Config.Retention every commit is kept, and only the sweep runs. The errors to ask for are ErrNoEpoch, *FencedError, *VanishedError,
// *repository.MaxDeleteError, repository.ErrKeepsNothing, repository.ErrCorrupt and the codes of sdk.
func (w *Worker) Maintain(ctx context.Context, req MaintainRequest) (MaintainReport, error) {
	if err := w.takeUpkeep(ctx); err != nil {
		return MaintainReport{}, err
	}
	defer w.releaseUpkeep()
	report := MaintainReport{DryRun: req.DryRun, Started: w.cfg.Now().UTC(), Policy: w.cfg.Retention}
	u, err := w.beginUpkeep(req, &report)
	if err == nil {
		err = u.run(ctx)
		report.Requests = u.calls.note.snapshot().Requests
		w.harmed(ctx, u.found)
	}
	report.Finished = w.cfg.Now().UTC()
	if !req.DryRun && !errors.Is(err, ErrNoEpoch) && ctx.Err() == nil { // what was cut off by its caller has not failed
		w.maintained(report, err)
	}
	return report, err
}

// harmed remembers damage that a run has found. It waits for a running push, as a verification does.
func (w *Worker) harmed(ctx context.Context, found *Damage) {
	if found == nil || w.take(ctx) != nil {
		return
	}
	defer w.release()
	w.state.damaged(w.state.Damage.and(found))
	w.remember()
}

// takeUpkeep waits for the turn to maintain.
func (w *Worker) takeUpkeep(ctx context.Context) error {
	select {
	case w.upkeep <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("target %q: wait for the maintenance that runs: %w", w.cfg.Target, ctx.Err())
	}
}

func (w *Worker) releaseUpkeep() { <-w.upkeep }

// upkeepRun is one run of maintenance. Its session is a copy, as the last job left it.
type upkeepRun struct {
	*session

	req      MaintainRequest
	report   *MaintainReport
	memo     *memo
	verified uint64 // number of the newest commit that was proven to restore; 0 = none
	failures uint64 // jobs that had failed when it began
	gc       repository.GC
	oldGCs   []uint64 // numbers below gc's
	newest   uint64   // highest number of a commit, as last listed
	harm     *Damage  // what it goes by; nil = none
	found    *Damage  // what of that it has found itself

	stored      []repository.StoredPack // as listed in this run, ascending
	foreign     int64                   // what lies between them and is none
	packsListed bool
	trouble     []error // deletions that failed: they end nothing
}

// memo is what maintenance knows of an earlier run under the same epoch. It belongs to the run that has the turn of upkeep.
type memo struct {
	epoch    uint64
	rows     map[uint64]storedCommit
	refs     int            // packs in rows
	swept    bool           // a sweep has left nothing that a later one could take
	failures uint64         // jobs that had failed by then
	sent     *repository.GC // where fencing is advisory: what a create without an answer sent
}

// beginUpkeep takes what maintenance goes by.
func (w *Worker) beginUpkeep(req MaintainRequest, report *MaintainReport) (*upkeepRun, error) {
	w.mu.Lock()
	stand, failures, proof, damage := w.stand, w.failures, w.shown.Proof, w.shown.Damage
	w.mu.Unlock()
	s := *stand
	s.calls = w.ownCalls()
	u := &upkeepRun{session: &s, req: req, report: report, failures: failures, harm: damage}
	if proof != nil {
		u.verified = proof.Commit
	}
	switch {
	case s.fence != nil:
		return nil, s.fence
	case s.phase == ready:
	case !req.DryRun:
		return nil, fmt.Errorf("target %q: %w: nothing is retired, swept or pinned there before a push has committed something in this run of the host", s.target, ErrNoEpoch)
	}
	if w.memo == nil || w.memo.epoch != s.epoch {
		w.memo = &memo{epoch: s.epoch, rows: map[uint64]storedCommit{}}
	}
	u.memo, report.Epoch = w.memo, s.epoch
	return u, nil
}

// ownCalls are calls that no job's record counts.
func (w *Worker) ownCalls() *caller {
	t := tuning{slots: w.cfg.Slots, budget: w.cfg.RetryBudget, jitter: w.cfg.Jitter, log: w.cfg.Log}.withDefaults()
	calls := t.caller(w.cfg.Target, w.cfg.Now, newTally(w.cfg.Now, JobRecord{}))
	calls.log = w.cfg.Log
	return calls
}

// standing is a copy of the session for those who run beside its jobs.
func (s *session) standing() *session {
	copied := *s
	copied.listed, copied.cache, copied.sent = nil, nil, nil
	return &copied
}

func (u *upkeepRun) run(ctx context.Context) (err error) {
	defer recovered(&err)
	if u.phase != ready {
		if err := u.pretend(ctx); err != nil {
			return err
		}
	}
	if u.report.Policy != nil {
		if err := u.retain(ctx); err != nil {
			return fmt.Errorf("retention: %w", err)
		}
	}
	if u.sweepIsDue() {
		if err := u.sweep(ctx); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
	}
	return errors.Join(u.trouble...)
}

// pretend makes a dry run's session one that has just claimed: every pack that is there is then of an older epoch.
func (u *upkeepRun) pretend(ctx context.Context) error {
	epochs, err := u.numbers(ctx, repository.EpochPrefix(u.prefix), repository.ParseEpochKey)
	if err != nil {
		return err
	}
	u.base, u.last, u.epoch = nil, 0, 1
	if n := len(epochs); n > 0 {
		u.epoch = epochs[n-1] + 1
	}
	u.report.Epoch = u.epoch
	return nil
}

// sweepIsDue says whether there may be something to sweep: commits went, a push failed, or the last sweep of this
// epoch, if there was one, left something.
func (u *upkeepRun) sweepIsDue() bool {
	return u.req.Thorough || u.req.DryRun || u.report.Deleted > 0 || !u.memo.swept || u.memo.failures != u.failures
}
