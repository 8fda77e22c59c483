package syncer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// gcRounds bounds how often retention plans anew because the number of its gc object was taken: each time by an attempt of ours that landed late.
const gcRounds = 8

// retain is retention: read the highest gc object, then the commits and the pins, plan, create the next gc object, look at the epoch again, and delete
// what is gone, oldest first. Readers see the plan at once and whole when the gc object exists; what is deleted after it was no longer to be seen.
//
// While a commit is missing nothing is retired that nobody asks for: the next gc object would speak of its number, nobody would miss it any more, and
// what is above may need what went with it.
func (u *upkeepRun) retain(ctx context.Context) error {
	for range gcRounds {
		plan, err := u.plan(ctx)
		if err != nil {
			return err
		}
		u.note(plan)
		switch {
		case u.req.DryRun:
			return nil
		case len(u.report.Missing) > 0 && !u.req.Thorough:
			u.leave(plan)
			return nil
		}
		if plan.NeedsGC() && !u.wrong.deleteBeforeGC {
			err := u.createGC(ctx, repository.GC{UpTo: plan.UpTo, Kept: plan.Kept})
			if errors.Is(err, sdk.Exists) && !u.wrong.gcConflictIsOurs {
				continue // an older attempt of ours landed late, or there is another writer: either way it is read now
			}
			if err != nil && !errors.Is(err, sdk.Exists) {
				return err
			}
		}
		if err := u.deleteGone(ctx, plan.Gone()); err != nil {
			return err
		}
		u.report.GC = u.created(plan)
		return u.deleteOldGCs(ctx)
	}
	return fmt.Errorf("target %q: %d gc numbers in a row were taken by older attempts of this host: %w", u.target, gcRounds, ErrUnresolved)
}

// created is the number of the gc object that this plan needed; 0 = none.
func (u *upkeepRun) created(plan *repository.RetentionPlan) uint64 {
	if !plan.NeedsGC() {
		return 0
	}
	return u.gc.Number
}

// leave tells of a plan that is not followed, for commits are missing.
func (u *upkeepRun) leave(plan *repository.RetentionPlan) {
	if plan.Retire > 0 {
		u.trouble = append(u.trouble, fmt.Errorf("target %q: %d commits that no rule keeps were not retired, for %w",
			u.target, plan.Retire, u.missing()))
	}
	u.report.Kept, u.report.Retired = u.report.Kept+plan.Retire, 0
}

// missing says which commits are, and what can be done.
func (u *upkeepRun) missing() error {
	return fmt.Errorf("commits %v are missing: put those objects back from a copy or, if they are given up, run %s", u.report.Missing, u.commands.Sweep())
}

func (u *upkeepRun) note(plan *repository.RetentionPlan) {
	u.report.Verdicts, u.report.Kept, u.report.Retired, u.report.Dangling = plan.Verdicts, plan.Keep, plan.Retire, plan.Dangling
}

// plan reads the repository and decides. The order matters: a pin that was written before the gc object which this plan will follow is read.
func (u *upkeepRun) plan(ctx context.Context) (*repository.RetentionPlan, error) {
	u.packsListed = false // of an earlier plan of this run: a commit that came after that listing has packs that it does not hold
	if err := u.readGC(ctx); err != nil {
		return nil, err
	}
	rows, err := u.commits(ctx)
	if err != nil {
		return nil, err
	}
	pins, err := u.pins(ctx)
	if err != nil {
		return nil, err
	}
	facts := repository.RetentionFacts{GC: u.gc, Pins: pins, Verified: u.verified, Broken: u.broken(rows), Now: u.now()}
	if u.wrong.verifiedNotKept {
		facts.Verified = 0
	}
	if u.wrong.pinsUnread {
		facts.Pins = nil
	}
	for _, row := range rows {
		facts.Commits = append(facts.Commits, row.facts)
	}
	policy := *u.report.Policy
	if u.req.MaxDelete > 0 {
		policy.MaxDelete = u.req.MaxDelete
	}
	plan, err := repository.PlanRetention(policy, facts)
	if err == nil && plan.Retire > 0 {
		if facts.Broken, err = u.unseen(ctx, rows, facts.Broken); err != nil {
			return nil, err
		}
		plan, err = repository.PlanRetention(policy, facts)
	}
	if err == nil && u.req.Thorough {
		plan.GiveUp(u.report.Missing)
	}
	if plan != nil && err != nil {
		u.note(plan) // refused by its size: whoever asks shall see it
		u.report.Retired = 0
	}
	if guard, ok := errors.AsType[*repository.MaxDeleteError](err); ok {
		err = fmt.Errorf("%w; look at the plan with %s and at this host's clock and, if the plan is right, run %s once or raise max_delete",
			err, u.commands.Sweep("--dry-run"), u.commands.Sweep("--max-delete", fmt.Sprint(guard.Retire)))
	}
	if err != nil {
		return nil, fmt.Errorf("target %q: %w", u.target, err)
	}
	return plan, nil
}

// readGC reads the gc object that holds; one of a higher epoch ends the session.
func (u *upkeepRun) readGC(ctx context.Context) error {
	numbers, err := u.numbers(ctx, repository.GCPrefix(u.prefix), repository.ParseGCKey)
	if err != nil {
		return err
	}
	u.gc, u.oldGCs = repository.GC{}, nil
	if len(numbers) == 0 {
		return u.resend(ctx)
	}
	k := numbers[len(numbers)-1]
	data, err := u.get(ctx, repository.GCKey(u.prefix, k), repository.MaxSmall)
	if err != nil {
		return u.lost(ctx, err)
	}
	if u.gc, err = repository.DecodeGC(k, data); err != nil {
		return fmt.Errorf("target %q: %w", u.target, err)
	}
	if u.phase == ready && u.gc.Epoch > u.epoch {
		return u.takenOver(ctx, u.gc.Epoch)
	}
	u.oldGCs = numbers[:len(numbers)-1]
	return u.resend(ctx)
}

// lost explains an object that was listed and is not there any more.
func (u *upkeepRun) lost(ctx context.Context, err error) error {
	if u.phase == ready {
		return u.vanished(ctx, err)
	}
	return err // whoever holds the epoch may have retired it: a dry run without one has no claim that it stays
}

// resend is for advisory fencing, where a create that had no answer may replace what is there by then: its number is aimed at with the same bytes
// until they are there.
func (u *upkeepRun) resend(ctx context.Context) error {
	sent := u.memo.sent
	if sent == nil || u.req.DryRun {
		return nil
	}
	if sent.Number != u.gc.Number+1 {
		u.memo.sent = nil
		return nil
	}
	if err := u.sendGC(ctx, *sent); err != nil && !errors.Is(err, sdk.Exists) {
		return err
	}
	u.memo.sent = nil
	return u.readGC(ctx)
}

// createGC creates the gc object that follows the highest.
func (u *upkeepRun) createGC(ctx context.Context, next repository.GC) error {
	if u.wrong.gcWithoutKept {
		next.Kept = nil
	}
	if err := u.newestStands(ctx); err != nil {
		return err
	}
	next.Number, next.Epoch, next.Writer, next.Created, next.WrittenBy = u.gc.Number+1, u.epoch, u.writer, u.now(), u.writtenBy
	if u.advisory {
		u.memo.sent = &next
	}
	if err := u.sendGC(ctx, next); err != nil {
		return err
	}
	if u.gc.Number > 0 { // it is below the highest now
		u.oldGCs = append(u.oldGCs, u.gc.Number)
	}
	u.memo.sent, u.gc = nil, next
	return nil
}

// sendGC creates a gc object. One of these very bytes that exists already is this attempt's, and its answer was lost.
func (u *upkeepRun) sendGC(ctx context.Context, gc repository.GC) error {
	body, err := repository.EncodeGC(gc)
	if err != nil {
		return err
	}
	key := repository.GCKey(u.prefix, gc.Number)
	err = u.create(ctx, key, sdk.ClassMeta, sdk.BytesBody(body))
	if errors.Is(err, sdk.Exists) {
		if found, readErr := u.get(ctx, key, repository.MaxSmall); readErr == nil && bytes.Equal(found, body) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("gc %d: %w", gc.Number, err)
	}
	return nil
}

// deleteGone deletes the objects of the commits that gc hides.
func (u *upkeepRun) deleteGone(ctx context.Context, gone []uint64) error {
	keys := make([]string, len(gone))
	for i, n := range gone {
		keys[i] = repository.CommitKey(u.prefix, n)
	}
	deleted, err := u.deleteAll(ctx, "commits", keys)
	if u.report.Deleted += len(deleted); len(deleted) > 0 {
		u.memo.swept = false // also when this run does not come to its sweep
	}
	return err
}

// deleteOldGCs deletes the gc objects below the highest. Nobody reads them: whoever has listed them before the highest came finds that it has
// moved, and looks again. Should a request of long ago bring one back to life, it lies below the highest all the same.
func (u *upkeepRun) deleteOldGCs(ctx context.Context) error {
	keys := make([]string, len(u.oldGCs))
	for i, k := range u.oldGCs {
		keys[i] = repository.GCKey(u.prefix, k)
	}
	_, err := u.deleteAll(ctx, "gc objects", keys)
	return err
}

// deleteAll deletes keys in their order, in batches, each after a look at the epoch and at gc, and gives those that went. Keys that the store did not
// delete are noted and left to the next run; a batch of which nothing went ends it.
func (u *upkeepRun) deleteAll(ctx context.Context, what string, keys []string) (gone []string, err error) {
	for batch := range slices.Chunk(keys, sdk.MaxDelete) {
		if err := u.stillHighest(ctx); err != nil {
			return gone, err
		}
		if err := u.gcStands(ctx); err != nil {
			return gone, err
		}
		err := u.calls.do(ctx, fmt.Sprintf("delete %d %s", len(batch), what), deleteSize, func(ctx context.Context) error {
			return u.store.Delete(ctx, batch)
		})
		left := undeleted(err, batch)
		gone = append(gone, slices.DeleteFunc(slices.Clone(batch), func(key string) bool { return slices.Contains(left, key) })...)
		if err == nil {
			continue
		}
		u.report.Failed = append(u.report.Failed, left...)
		u.trouble = append(u.trouble, fmt.Errorf("%d of %d %s were not deleted: %w", len(left), len(batch), what, err))
		if len(left) == len(batch) || ctx.Err() != nil {
			break
		}
	}
	return gone, nil
}

// undeleted are the keys of a batch that an error of Delete names; all of them when it names none.
func undeleted(err error, batch []string) []string {
	if err == nil {
		return nil
	}
	named := map[string]bool{}
	namedKeys(err, named)
	left := slices.DeleteFunc(slices.Clone(batch), func(key string) bool { return !named[key] })
	if len(left) == 0 {
		return batch
	}
	return left
}

func namedKeys(err error, named map[string]bool) {
	if e, ok := err.(*sdk.Error); ok && e.Key != "" {
		named[e.Key] = true
		return
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		namedKeys(e.Unwrap(), named)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			namedKeys(one, named)
		}
	}
}
