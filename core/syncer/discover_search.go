package syncer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
)

// firstBlock is how many commits a search reads at first; each block is twice the one before.
const firstBlock = 2 * DefaultConcurrency

// descent is one attempt to find the newest commit that a selector by checkpoint or time names. It reads growing blocks of commits from the newest
// down, the calls of each side by side, so that what lies near the newest takes a few round trips however long the history is.
type descent struct {
	reader  *Reader
	wanted  Selector
	numbers []uint64    // as listed
	newest  uint64      // checkpoint commit met first; 0 = none
	above   *known      // the commit met before; nil = none, or damage
	oldest  *CommitInfo // checkpoint commit met last
	damaged []error
}

// run gives the commit's number; 0 = there is none.
func (d *descent) run(ctx context.Context) (uint64, error) {
	numbers, format, err := d.reader.index(ctx)
	if err != nil || format == nil {
		return 0, err
	}
	d.numbers = numbers
	rest := numbers
	for size := firstBlock; len(rest) > 0; size *= 2 {
		cut := max(0, len(rest)-size)
		if n, err := d.block(ctx, rest[cut:]); n != 0 || err != nil {
			return n, err
		}
		rest = rest[:cut]
	}
	switch {
	case len(d.damaged) > 0:
		return 0, errors.Join(d.damaged...) // any of them may be what is wanted
	case d.oldest == nil:
		gc, err := d.reader.readGC(ctx)
		if err != nil {
			return 0, err
		}
		return 0, d.reader.neverCommitted(ctx, numbers, gc)
	case !d.wanted.AsOf.IsZero():
		return 0, fmt.Errorf("target %q, prefix %q: %s: the first that is there, commit %d, was taken at %s: %w", d.reader.calls.target, d.reader.prefix,
			d.wanted, d.oldest.Number, d.oldest.Checkpoint.Created.UTC().Format(time.RFC3339), ErrNoCommit)
	}
	return 0, nil
}

// block goes down through the next commits. It reads gc after them: a commit that gc does not hide then was whole when it was read.
func (d *descent) block(ctx context.Context, numbers []uint64) (uint64, error) {
	rows, err := d.reader.rows(ctx, numbers, func(*repository.Commit) {})
	if err != nil {
		return 0, err
	}
	gc, err := d.reader.readGC(ctx)
	if err != nil {
		return 0, err
	}
	for i := len(rows) - 1; i >= 0; i-- {
		if !gc.Visible(numbers[i]) {
			continue // of no account, see newestOf
		}
		found, err := d.meet(&rows[i])
		if err == nil && !d.wanted.AsOf.IsZero() && d.newest != 0 { // else what is lost may be it
			err = d.reader.aboveGC(ctx, d.numbers, d.newest, gc)
		}
		if found || err != nil {
			return numbers[i], err
		}
	}
	return 0, nil
}

// meet says whether a commit is the one. Damage ends a search by time, for the damaged commit may be it; one by checkpoint goes on, for another commit
// of that checkpoint is as good.
func (d *descent) meet(c *commitRow) (bool, error) {
	switch {
	case c.damage != nil && d.wanted.Checkpoint == uuid.Nil:
		return false, fmt.Errorf("%s: commit %d may be it, but cannot be read (another can be restored by its number): %w", d.wanted, c.number, c.damage)
	case c.damage != nil:
		d.damaged, d.above = append(d.damaged, c.damage), nil
		return false, nil
	case c.Commit == nil: // it was gone when it was read
		return false, fmt.Errorf("commit %d is gone: %w", c.number, errMoved)
	}
	if err := d.reader.follows(c.known, d.above); err != nil {
		return false, err
	}
	if d.above = &c.known; c.Kind != repository.KindCheckpoint {
		return false, nil
	}
	info := infoOf(c.Commit)
	if d.newest == 0 {
		d.newest = c.number
	}
	d.oldest = &info
	return d.wanted.matches(info), nil
}
