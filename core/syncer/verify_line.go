package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/cairnsync/cairn/core/repository"
)

// readLine reads everything but packs. The order is that of every reader: commits, then gc. The epochs come after the commits, so that none
// of these can be of a later one.
func (v *verification) readLine(ctx context.Context) error {
	numbers, err := v.index(ctx)
	if err != nil {
		return err
	}
	if v.req.From != nil {
		return v.readOne(ctx)
	}
	hidden, err := v.reader.readGC(ctx)
	if err != nil {
		return v.damagedGC(err)
	}
	rows, err := v.reader.rows(ctx, visible(numbers, hidden), func(c *repository.Commit) { v.inventory.Add(c, v.req.Level != VerifyMetadata) })
	if err != nil {
		return err
	}
	if v.gc, err = v.reader.readGC(ctx); err != nil {
		return v.damagedGC(err)
	}
	if len(numbers) > 0 {
		v.head = numbers[len(numbers)-1]
	}
	if err := v.judgeLine(rows); err != nil {
		return err
	}
	if err := v.judgeNewest(ctx, numbers, rows); err != nil {
		return err
	}
	if err := v.readEpochs(ctx, rows); err != nil {
		return err
	}
	return v.judgeEmpty(ctx, numbers)
}

// index lists the commits. A FORMAT.json that is not there, or is damaged, is a problem; the commits are listed all the same. Where there is nothing at
// all and nothing is known to be missing, it is ErrNoRepository.
func (v *verification) index(ctx context.Context) ([]uint64, error) {
	r := v.reader
	numbers, format, err := r.index(ctx)
	if err == nil && format == nil && v.req.Expect == 0 {
		return nil, r.noRepository()
	}
	if !errors.Is(err, repository.ErrCorrupt) {
		return numbers, err
	}
	v.found(Problem{
		Kind: DamagedFormat, Object: repository.FormatKey(r.prefix), What: err.Error(),
		Remedy: remedyCopy + "; nothing here is readable or writable without it",
	})
	return r.numbers(ctx, repository.CommitPrefix(r.prefix), repository.ParseCommitKey)
}

// damagedGC ends the reading of the line where gc is damaged: which commits are there cannot be told without it.
func (v *verification) damagedGC(err error) error {
	if !errors.Is(err, repository.ErrCorrupt) {
		return err
	}
	v.found(Problem{
		Kind: DamagedGC, Object: repository.GCPrefix(v.reader.prefix), What: err.Error(),
		Remedy: remedyCopy + "; which commits are retired cannot be told without it, so nothing else was verified",
	})
	return nil
}

func visible(numbers []uint64, gc repository.GC) []uint64 {
	return slices.DeleteFunc(slices.Clone(numbers), func(n uint64) bool { return !gc.Visible(n) })
}

// readOne reads the commit that is asked for.
func (v *verification) readOne(ctx context.Context) error {
	c, err := v.reader.Find(ctx, *v.req.From)
	if lost, ok := errors.AsType[*HeadLostError](err); ok {
		v.headLost(lost.UpTo + 1)
		return nil
	}
	if errors.Is(err, repository.ErrCorrupt) {
		v.found(Problem{
			Kind: DamagedCommit, Object: repository.CommitPrefix(v.reader.prefix), What: err.Error(), Remedy: v.reader.commands.remedyWhole(),
		})
		return nil
	}
	if errors.Is(err, ErrNoCommit) && v.req.Expect > 0 {
		v.missingOne(v.req.Expect, v.req.Expect)
		return nil
	}
	if err != nil {
		return err
	}
	v.inventory.Add(c, v.req.Level != VerifyMetadata)
	info := infoOf(c)
	v.rep.Commits, v.rep.Newest, v.head, v.epoch = 1, &info, c.Number, c.Epoch
	if v.req.Expect > c.Number {
		v.missingOne(v.req.Expect, v.req.Expect)
	}
	return nil
}

// judgeLine checks that every commit which gc does not hide is there, whole, and stands on the one before it.
func (v *verification) judgeLine(rows []commitRow) error {
	var below *known
	next := uint64(1)
	for i := range rows {
		row := &rows[i]
		if !v.gc.Visible(row.number) {
			continue
		}
		v.missing(next, row.number)
		next = row.number + 1
		switch {
		case row.damage != nil:
			v.found(Problem{
				Kind: DamagedCommit, Object: repository.CommitKey(v.reader.prefix, row.number), Commits: []uint64{row.number},
				What: row.damage.Error(), Remedy: v.reader.commands.remedyCommit(),
			})
			below, v.unread = nil, true
			continue
		case row.Commit == nil: // it was there when it was listed
			return fmt.Errorf("commit %d is gone: %w", row.number, errMoved)
		}
		if below != nil {
			v.judgeOrder(*below, &row.known)
		}
		below = &row.known
		v.count(row.known)
	}
	v.missing(next, v.head+1)
	if expect := v.req.Expect; expect > v.head {
		v.missing(v.head+1, expect+1)
	}
	return nil
}

// judgeNewest asks whether the newest checkpoint that was found can be the newest: gc never hides that, so one stands above all that gc speaks of. A
// listing that has none there was overtaken by a push and a retention, and shows what pins keep; or, when a second one says the same, the
// newest is lost.
func (v *verification) judgeNewest(ctx context.Context, numbers []uint64, rows []commitRow) error {
	if v.rep.Newest == nil || v.gc.UpTo == 0 || newestRow(rows) > v.gc.UpTo {
		return nil
	}
	now, err := v.reader.numbers(ctx, repository.CommitPrefix(v.reader.prefix), repository.ParseCommitKey)
	switch {
	case err != nil:
		return err
	case !slices.Equal(now, numbers):
		return fmt.Errorf("commits above %d have come: %w", v.gc.UpTo, errMoved)
	}
	if !slices.ContainsFunc(v.rep.Broken, func(n uint64) bool { return n > v.gc.UpTo }) {
		v.headLost(max(v.head, v.gc.UpTo) + 1)
	}
	return nil
}

// headLost notes that the newest checkpoint is gone though gc keeps it above all that it speaks of: commit n, or a later one. See HeadLostError.
func (v *verification) headLost(n uint64) {
	v.unread = true
	v.found(Problem{
		Kind: MissingCommit, Object: repository.CommitKey(v.reader.prefix, n), Commits: []uint64{n},
		What: fmt.Sprintf("commit %d, or a later one that was the newest checkpoint, was made and not retired, and is not there", n), Remedy: v.reader.commands.remedyHead(),
	})
}

// missing notes the commits of [from, to) that gc does not hide: numbers are contiguous, so they were deleted.
func (v *verification) missing(from, to uint64) {
	for _, n := range v.gc.Kept {
		if n >= from && n < to {
			v.missingOne(n, n)
		}
	}
	from = max(from, v.gc.UpTo+1)
	for ; from < to && to-from <= maxProblems; from++ {
		v.missingOne(from, from)
	}
	if from < to { // a number that no repository comes to: not each of them is a line of the report
		v.missingOne(from, to-1)
	}
}

func (v *verification) missingOne(first, last uint64) {
	v.unread = true
	which := fmt.Sprintf("commit %d was made and not retired, and is not there", first)
	if last > first {
		which = fmt.Sprintf("commits %d to %d were made and not retired, and are not there", first, last)
	}
	remedy := v.reader.commands.remedyPack()
	if v.head == 0 {
		which, remedy = which+", nor is any other", v.reader.commands.remedyGone()
	}
	if v.gc.Number > 0 && v.head <= v.gc.UpTo { // no push goes on there, see HeadLostError
		remedy = v.reader.commands.remedyHead()
	}
	v.found(Problem{Kind: MissingCommit, Object: repository.CommitKey(v.reader.prefix, first), Commits: []uint64{first}, What: which, Remedy: remedy})
}

func (v *verification) judgeOrder(below known, c *known) {
	err := v.reader.follows(below, c)
	if err == nil {
		return
	}
	v.found(Problem{
		Kind: BrokenLine, Object: repository.CommitKey(v.reader.prefix, c.Number), Commits: []uint64{c.Number}, What: err.Error(),
		Remedy: "something wrote below this prefix that is no Cairn, or overwrote an object: see who can, and keep a copy before anything else",
	})
}

func (v *verification) count(c known) {
	if c.Kind != repository.KindCheckpoint {
		v.rep.Seals++
		return
	}
	v.rep.Commits++
	info := infoOf(c.Commit)
	v.rep.Newest = &info
}

// readEpochs reads the epochs. The highest must be there, for the next writer counts from it; older ones are only for people.
func (v *verification) readEpochs(ctx context.Context, rows []commitRow) error {
	r := v.reader
	numbers, err := r.numbers(ctx, repository.EpochPrefix(r.prefix), repository.ParseEpochKey)
	if err != nil {
		return err
	}
	if len(numbers) > 0 {
		v.epoch = numbers[len(numbers)-1]
	}
	for _, row := range slices.Backward(rows) {
		if row.Commit == nil {
			continue
		}
		if row.Epoch > v.epoch {
			v.found(Problem{
				Kind: DamagedEpoch, Object: repository.EpochKey(r.prefix, row.Epoch),
				What:   fmt.Sprintf("commit %d is of epoch %d, and that is not there: another writer could claim it again", row.number, row.Epoch),
				Remedy: remedyCopy + ", and let no host write here before",
			})
			v.epoch = row.Epoch
		}
		break // epochs never go down along the line
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(DefaultConcurrency)
	damage := make([]error, len(numbers))
	for i, e := range numbers {
		group.Go(func() (err error) {
			damage[i], err = v.readEpoch(groupCtx, e)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, err := range damage {
		if err != nil {
			v.found(Problem{Kind: DamagedEpoch, Object: repository.EpochKey(r.prefix, numbers[i]), What: err.Error(), Remedy: remedyCopy})
		}
	}
	return nil
}

func (v *verification) readEpoch(ctx context.Context, e uint64) (damage, err error) {
	data, err := v.reader.get(ctx, repository.EpochKey(v.reader.prefix, e), repository.MaxSmall)
	if isNotFound(err) {
		return nil, fmt.Errorf("epoch %d is gone: %w", e, errMoved)
	}
	if err != nil {
		return nil, err
	}
	if _, err = repository.DecodeEpoch(e, data); errors.Is(err, repository.ErrCorrupt) {
		return err, nil
	}
	return nil, err
}

// judgeEmpty asks of a repository without a checkpoint whether it ever had one.
func (v *verification) judgeEmpty(ctx context.Context, numbers []uint64) error {
	if v.rep.Newest != nil || len(v.rep.Problems) > 0 {
		return nil
	}
	err := v.reader.neverCommitted(ctx, numbers, v.gc)
	if !errors.Is(err, repository.ErrCorrupt) {
		return err
	}
	v.found(Problem{Kind: MissingHistory, Object: repository.CommitPrefix(v.reader.prefix), What: err.Error(), Remedy: remedyCopy})
	return nil
}
