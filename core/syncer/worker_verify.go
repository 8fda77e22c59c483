package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
)

// Verify is Reader.Verify for the worker's own repository, beside its pushes: what the worker knows to have been committed there must be there, or
// what has come after it, also once it was seen to be gone. A proof, and damage that was found, is kept and shown in Status, a proof beside the older ones that went deeper; while damage is known that this verification was not deep enough to see, the report
// says so and proves nothing. A running push does not delay it, but for the moment in which that is saved.
func (w *Worker) Verify(ctx context.Context, req VerifyRequest) (VerifyReport, error) {
	reader, err := w.reader()
	if err != nil {
		return VerifyReport{}, err
	}
	w.mu.Lock()
	if held := w.shown.held(); held != nil && (req.From == nil || *req.From == Selector{}) {
		req.Expect = max(req.Expect, held.Number)
	}
	known := w.shown.Damage
	w.mu.Unlock()
	req.Spool = w.cfg.Spool
	rep, err := reader.Verify(ctx, req)
	if err != nil || req.From != nil && known == nil && len(rep.Broken) == 0 {
		return rep, err
	}
	return w.verified(ctx, rep, req.From != nil, known)
}

// verified remembers what a verification has found, and tells its report what is known beyond that. It takes back only what was known when it
// began: what another one has found meanwhile may have come to be after it had looked there.
func (w *Worker) verified(ctx context.Context, rep VerifyReport, alone bool, known *Damage) (VerifyReport, error) {
	if err := w.take(ctx); err != nil {
		return rep, err
	}
	defer w.release()
	if w.state.Damage == known {
		w.state.damaged(known.after(rep, alone))
	} else {
		w.state.damaged(w.state.Damage.and(damageIn(rep, alone)))
	}
	rep = w.state.Damage.known(rep, alone)
	if rep.Proof != nil && !alone {
		w.state.proven(*rep.Proof)
	}
	w.remember()
	return rep, nil
}

func (w *Worker) remember() {
	err := w.save()
	w.show(func() { w.note(err) })
}

// reader reads the worker's repository, with the worker's retries and a count of calls of its own.
func (w *Worker) reader() (*Reader, error) {
	r, err := NewReader(ReaderConfig{
		Target: w.cfg.Target, Prefix: w.cfg.Prefix, Store: w.cfg.Store, Pipeline: w.cfg.Pipeline, PipelineName: w.cfg.PipelineName, Origin: w.cfg.Origin,
		Slots: w.cfg.Slots, RetryBudget: w.cfg.RetryBudget, Now: w.cfg.Now, Jitter: w.cfg.Jitter, Log: w.cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	r.decode = w.codec.decode
	return r, nil
}

// ErrNothingLocal says that a repair has no local checkpoint to work from.
var ErrNothingLocal = errors.New("there is no local checkpoint to repair from")

// RepairRequest asks for the newest commit to be whole.
type RepairRequest struct {
	Checkpoint uuid.UUID // the newest local one; Nil = there is none
	Deep       bool      // read every chunk of the newest commit; else presence and sizes decide, unless reading has found damage before
	Progress   func(Progress)
}

// RepairReport is what a repair has found and done.
type RepairReport struct {
	Found    VerifyReport // before
	Commit   *CommitRef   // the commit that was made; nil = the newest one is whole already
	Bytes    int64        // stored by it
	Broken   []uint64     // commits that stay broken, ascending; retention lets them go
	Restored bool         // the newest commit was broken, and the newest one is whole now
}

// beyondRepair is why no commit could be read even if it were whole, which a push does not mend; nil = nothing of that kind was found.
func (rep VerifyReport) beyondRepair() error {
	for _, p := range rep.Problems {
		switch p.Kind {
		case DamagedFormat, DamagedGC, MissingHistory:
			return fmt.Errorf("%s: %w: %s: %s", p.Object, repository.ErrCorrupt, p.What, p.Remedy)
		}
	}
	return nil
}

// Repair looks whether the newest commit is whole and, if it is not, commits a local checkpoint anew in whose plan the packs that are missing
// or damaged count as absent. What is damaged is never overwritten: older commits that need it stay broken and are named. It has the
// worker's turn, so it waits for a running push. The errors are those of Verify and Push; ErrNothingLocal when the newest commit is broken
// and no local checkpoint is left; repository.ErrCorrupt when what is broken makes every commit unreadable.
func (w *Worker) Repair(ctx context.Context, req RepairRequest) (RepairReport, error) {
	if err := w.take(ctx); err != nil {
		return RepairReport{}, err
	}
	defer w.release()
	found, err := w.diagnose(ctx, req)
	if err != nil {
		return RepairReport{}, fmt.Errorf("repair: %w", err)
	}
	rep := RepairReport{Found: found, Broken: found.Broken}
	if found.Known != nil {
		rep.Broken = united(found.Broken, found.Known.Commits)
	}
	if err := found.beyondRepair(); err != nil {
		return rep, fmt.Errorf("repair target %q: no push mends %w", w.cfg.Target, err)
	}
	sick, lost := unsoundOf(found), lostAbove(found)
	if sick.upTo == 0 && lost == 0 {
		return rep, nil
	}
	if req.Checkpoint == uuid.Nil {
		return rep, fmt.Errorf("repair target %q: commit %d is broken: %w; restore an older commit that is whole (%s), or put the objects back from a copy of the target",
			w.cfg.Target, max(sick.upTo, lost), ErrNothingLocal, w.commands().RestoreNumber(0))
	}
	w.reopen(ctx, found.head)
	job := Job{Checkpoint: req.Checkpoint, Trigger: Repairing}
	tally := w.begin(job)
	w.session.unsound = sick
	err = w.push(ctx, job)
	w.session.unsound = unsound{}
	w.end(ctx, tally, err)
	if err != nil {
		return rep, fmt.Errorf("repair: %w", err)
	}
	if lost != 0 {
		w.state.damaged(w.state.Damage.below(found.head + 1))
		w.remember()
	}
	rep.Commit, rep.Bytes, rep.Restored = w.state.Committed, tally.snapshot().Bytes, true
	return rep, nil
}

// reopen begins the session anew where the commits that it would go on behind are lost, and its epoch stands: behind them its next commit would lie
// above a gap for ever, a seal closes the line where it ends.
func (w *Worker) reopen(ctx context.Context, head uint64) {
	w.calls.note = newTally(w.cfg.Now, JobRecord{})
	if s := w.session; s.fence == nil && s.phase == ready && s.last > head && s.stillHighest(ctx) == nil {
		w.session = w.newSession()
	}
}

// lostAbove is the newest commit that a report misses above all that is listed; 0 = none.
func lostAbove(rep VerifyReport) uint64 {
	if n := len(rep.Broken); n > 0 && rep.Broken[n-1] > rep.head {
		return rep.Broken[n-1]
	}
	return 0
}

// diagnose looks at all commits and, for a deep repair or where content is known to be damaged, into the newest. What it
// finds is remembered. The caller has the turn.
func (w *Worker) diagnose(ctx context.Context, req RepairRequest) (VerifyReport, error) {
	reader, err := w.reader()
	if err != nil {
		return VerifyReport{}, err
	}
	ask := VerifyRequest{Spool: w.cfg.Spool, Progress: req.Progress}
	if held := w.state.held(); held != nil {
		ask.Expect = held.Number
	}
	found, err := reader.Verify(ctx, ask)
	if err != nil {
		return found, err
	}
	w.state.damaged(w.state.Damage.after(found, false))
	if found.Newest != nil && (req.Deep || w.state.Damage.inContent()) {
		ask.Level, ask.From, ask.Expect = VerifyDeep, &Selector{Number: found.Newest.Number}, 0
		deep, err := reader.Verify(ctx, ask)
		if err != nil {
			return found, err
		}
		deep = deep.among(found)
		w.state.damaged(w.state.Damage.after(deep, true))
		found = found.with(deep)
	}
	w.remember()
	return w.state.Damage.known(found, false), nil
}

// among makes what was found in one commit a finding for all that a report speaks of: others share its packs.
func (rep VerifyReport) among(all VerifyReport) VerifyReport {
	for id := range rep.bad {
		rep.Broken = append(rep.Broken, visible(all.inventory.NamedBy(id), all.gc)...)
	}
	slices.Sort(rep.Broken)
	rep.Broken, rep.gc = slices.Compact(rep.Broken), all.gc
	return rep
}

// with adds what a deeper look at one commit has found. The level stays that at which all of them were looked at.
func (rep VerifyReport) with(deep VerifyReport) VerifyReport {
	for _, p := range deep.Problems {
		if !slices.ContainsFunc(rep.Problems, func(q Problem) bool { return q.Object == p.Object }) {
			rep.Problems = append(rep.Problems, p)
		}
	}
	for id := range deep.bad {
		rep.bad[id] = struct{}{}
	}
	rep.Chunks, rep.Bytes, rep.Requests = deep.Chunks, deep.Bytes, rep.Requests+deep.Requests
	rep.Broken = append(rep.Broken, deep.Broken...)
	slices.Sort(rep.Broken)
	rep.Broken = slices.Compact(rep.Broken)
	if rep.Finished = deep.Finished; len(rep.Problems) > 0 {
		rep.Proof = nil
	}
	return rep
}

// unsound is what a session must not rely on. Its zero value is nothing.
type unsound struct {
	upTo  uint64                         // no commit up to this one may stay the newest; 0 = the newest one is whole
	bad   map[repository.PackID]struct{} // packs that are missing or damaged
	sound *repository.Inventory          // nothing but these was looked at; nil = all others are trusted
}

func (u unsound) has(commit uint64) bool { return commit <= u.upTo }

func (u unsound) lost(id repository.PackID) bool {
	_, bad := u.bad[id]
	return bad || u.sound != nil && !u.sound.Needs(id)
}

// unsoundOf is what a report says of the newest commits: the newest that can be read, and those above it that are listed and cannot. What those
// above hold was not looked at, for the session may know them and the store does not. Those above all that is listed are lost, see reopen.
func unsoundOf(rep VerifyReport) unsound {
	if len(rep.Broken) == 0 {
		return unsound{}
	}
	newest := uint64(0)
	if rep.Newest != nil {
		newest = rep.Newest.Number
	}
	u := unsound{bad: rep.bad, sound: rep.inventory}
	for _, n := range rep.Broken {
		if n >= newest && n <= rep.head {
			u.upTo = n
		}
	}
	return u
}
