package syncer

import (
	"context"
	"fmt"
	"slices"

	"github.com/cairnsync/cairn/core/repository"
)

// broken are the commits that are known not to restore: those that a verification has named, and those that need a pack which it has found missing or
// damaged.
func (u *upkeepRun) broken(rows []storedCommit) []uint64 {
	var numbers []uint64
	for _, row := range rows {
		if u.harm.breaks(row.facts.Number) || slices.ContainsFunc(row.packs, u.harm.spoils) {
			numbers = append(numbers, row.facts.Number)
		}
	}
	return numbers
}

// unseen adds to broken the newest commits whose packs are not all there, down to the first that is whole: what keeps others from being kept must be
// seen to be there. The packs are listed for the sweep anyway; a commit was read before them, so its packs were there by then.
func (u *upkeepRun) unseen(ctx context.Context, rows []storedCommit, broken []uint64) ([]uint64, error) {
	if err := u.listPacks(ctx); err != nil {
		return nil, err
	}
	found := &Damage{At: u.now().UTC(), Level: VerifyMetadata}
	for _, row := range slices.Backward(rows) {
		n := row.facts.Number
		if row.facts.Kind != repository.KindCheckpoint || !u.gc.Visible(n) || slices.Contains(broken, n) {
			continue
		}
		missing := slices.DeleteFunc(slices.Clone(row.packs), u.isStored)
		if len(missing) == 0 {
			break
		}
		broken = append(broken, n)
		found.Commits = united(found.Commits, []uint64{n})
		found = found.withPacks(missing)
	}
	if len(found.Commits) == 0 {
		return broken, nil
	}
	if err := u.stillHighest(ctx); err != nil { // else another's retention may have taken them
		return nil, err
	}
	u.harm, u.found = u.harm.and(found), found
	u.trouble = append(u.trouble, fmt.Errorf("target %q: commits %v need %d packs that are not there: an older commit that is whole is kept; "+
		"the next push uploads again what it needs, and %s does it at once", u.target, found.Commits, len(found.Packs), u.commands.Repair()))
	return broken, nil
}

func (u *upkeepRun) isStored(id repository.PackID) bool {
	_, there := slices.BinarySearchFunc(u.stored, id, func(p repository.StoredPack, id repository.PackID) int { return p.ID.Compare(id) })
	return there
}

// newestStands makes sure, before a gc object is created, that the highest commit which the plan knows is still there: in a repository that was
// put back to an earlier state the plan would hide what is left.
func (u *upkeepRun) newestStands(ctx context.Context) error {
	if u.newest == 0 {
		return nil
	}
	found, err := u.objectsFrom(ctx, repository.CommitPrefix(u.prefix), repository.CommitKey(u.prefix, u.newest-1), repository.ParseCommitKey)
	if err != nil {
		return fmt.Errorf("look whether commit %d still stands: %w", u.newest, err)
	}
	if len(found) == 0 || found[0].number != u.newest {
		return u.putBack(ctx, fmt.Sprintf("commit %d", u.newest))
	}
	return nil
}

// gcStands makes sure, before anything is deleted, that the gc object by which it goes is still there: in a repository that was put back to a state
// before it, what it had retired is to be seen again.
func (u *upkeepRun) gcStands(ctx context.Context) error {
	if u.gc.Number == 0 {
		return nil
	}
	found, err := u.objectsFrom(ctx, repository.GCPrefix(u.prefix), repository.GCKey(u.prefix, u.gc.Number-1), repository.ParseGCKey)
	if err != nil {
		return fmt.Errorf("look whether gc %d still stands: %w", u.gc.Number, err)
	}
	if len(found) == 0 || found[0].number != u.gc.Number {
		return u.putBack(ctx, fmt.Sprintf("gc %d", u.gc.Number))
	}
	return nil
}

// putBack explains what has gone: whoever has taken over may have retired it.
func (u *upkeepRun) putBack(ctx context.Context, what string) error {
	if err := u.stillHighest(ctx); err != nil {
		return err
	}
	return fmt.Errorf("target %q: %s, which was there a moment ago, is gone from below %q: the repository was put back to an earlier state, or somebody deletes by hand there; "+
		"nothing more is retired or deleted in this run, and the next push looks anew: %w", u.target, what, u.prefix, repository.ErrCorrupt)
}
