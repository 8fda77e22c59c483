package syncer

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

const (
	// readAtOnce is how many commits maintenance reads at a time: few, for pushes use the same slots, and a commit of a large checkpoint takes
	// tens of megabytes while it is decoded.
	readAtOnce = 2

	// maxRefs bounds the packs that are remembered of commits, about 50 MB: beyond, commits are read again for each sweep.
	maxRefs = 1 << 20

	// maxMissing is how many commits that a listing lacks are looked for one by one.
	maxMissing = 16

	deleteSize   = 128 << 20 // the volume that the deadline of a Delete is reckoned with: a thousand keys, on some stores one by one
	listPackSize = 512 << 20 // and that of a listing of packs: a million of them
)

// storedCommit is what maintenance asks of a commit.
type storedCommit struct {
	object sdk.Object // as it was listed: a commit never changes, and one that was made anew differs in this
	facts  repository.CommitFacts
	packs  []repository.PackID
	whole  bool // packs are known
}

// commits reads every commit that exists, those that gc hides among them; what an earlier run has read is not read again. The listing must hold
// what is known to be there.
func (u *upkeepRun) commits(ctx context.Context) ([]storedCommit, error) {
	objects, _, err := u.objects(ctx, repository.CommitPrefix(u.prefix), listSize)
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	var rows []storedCommit
	for _, obj := range objects {
		if n, err := repository.ParseCommitKey(u.prefix, obj.Key); err == nil {
			numbers, rows = append(numbers, n), append(rows, storedCommit{object: obj})
		}
	}
	if err := u.complete(ctx, numbers); err != nil {
		return nil, err
	}
	if u.newest = 0; len(numbers) > 0 {
		u.newest = numbers[len(numbers)-1]
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readAtOnce)
	for i, n := range numbers {
		if old, ok := u.memo.rows[n]; ok && old.object == rows[i].object && old.whole {
			rows[i] = old
			continue
		}
		group.Go(func() (err error) {
			rows[i], err = u.row(groupCtx, n, rows[i].object)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, u.lost(ctx, err)
	}
	u.memo.remember(rows)
	return rows, nil
}

func (u *upkeepRun) row(ctx context.Context, n uint64, obj sdk.Object) (storedCommit, error) {
	c, err := u.read(ctx, n)
	if err != nil {
		return storedCommit{}, err
	}
	return storedCommit{object: obj, facts: repository.FactsOf(c.Commit), packs: c.Packs, whole: true}, nil
}

// remember keeps the rows for the next run, within bounds.
func (m *memo) remember(rows []storedCommit) {
	m.rows, m.refs = make(map[uint64]storedCommit, len(rows)), 0
	for _, row := range slices.Backward(rows) { // the newest stay longest
		if m.refs += len(row.packs); m.refs > maxRefs {
			return
		}
		m.rows[row.facts.Number] = row
	}
}

// complete makes sure that a listing of commits can be the whole: it holds the newest that we have made, and what it lacks of those that must be
// there is proven to be absent.
func (u *upkeepRun) complete(ctx context.Context, numbers []uint64) error {
	// The newest that we knew may have gone in this very run, for a push has come meanwhile.
	if u.base != nil && (u.gc.Visible(u.base.Number) || u.wrong.retiredMustBeThere) && !slices.Contains(numbers, u.base.Number) {
		if err := u.stillHighest(ctx); err != nil {
			return err
		}
		return fmt.Errorf("target %q: commit %d, the newest that was confirmed, is not listed below %q: %w", u.target, u.base.Number, u.prefix, repository.ErrCorrupt)
	}
	missing := repository.MissingCommits(u.gc, numbers)
	if len(missing) > maxMissing {
		return fmt.Errorf("target %q: %d commits that must be there are not listed, commit %d among them: %w", u.target, len(missing), missing[0], repository.ErrCorrupt)
	}
	for _, n := range missing {
		_, err := u.read(ctx, n)
		if err == nil {
			return fmt.Errorf("target %q: commit %d is there and is not listed: the store's listings cannot be trusted", u.target, n)
		}
		if !isNotFound(err) {
			return err
		}
	}
	u.report.Missing = missing
	return nil
}

// objects lists what lies below a folder.
func (u *upkeepRun) objects(ctx context.Context, folder string, size int64) (found []sdk.Object, bytes int64, err error) {
	err = u.calls.do(ctx, "list "+folder, size, func(ctx context.Context) error {
		found, bytes = found[:0], 0
		for obj, err := range listed(ctx, u.store, sdk.ListRequest{Prefix: folder}, maxListed) {
			if err != nil {
				return err
			}
			found, bytes = append(found, obj), bytes+obj.Size
		}
		return nil
	})
	return found, bytes, err
}

// pins reads every pin. One that cannot be read, or what lies between them and is none, stops retention: it may be somebody's word that a commit
// shall stay.
func (u *upkeepRun) pins(ctx context.Context) ([]repository.Pin, error) {
	objects, _, err := u.objects(ctx, repository.PinPrefix(u.prefix), repository.MaxSmall)
	if err != nil {
		return nil, err
	}
	pins := make([]repository.Pin, 0, len(objects))
	for _, obj := range objects {
		name, err := repository.ParsePinKey(u.prefix, obj.Key)
		if err != nil {
			return nil, fmt.Errorf("target %q: %w: %w: if it is no pin, move it away", u.target, repository.ErrCorrupt, err)
		}
		data, err := u.get(ctx, obj.Key, repository.MaxSmall)
		if isNotFound(err) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		pin, err := repository.DecodePin(name, data)
		if err != nil {
			return nil, fmt.Errorf("target %q: %w: nothing is retired before it is repaired or removed with %s", u.target, err, u.commands.Unpin(name))
		}
		pins = append(pins, pin)
	}
	return pins, nil
}
