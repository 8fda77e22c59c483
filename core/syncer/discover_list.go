package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/cairnsync/cairn/core/repository"
)

// ErrNoCommit says that the commit asked for is proven not to be there: it never was, or retention has taken it.
var ErrNoCommit = errors.New("no such commit")

// Selector says which commit is wanted. At most one field is set; none asks for the newest.
type Selector struct {
	Checkpoint uuid.UUID // of this checkpoint; when it was committed more than once, the newest
	Number     uint64    // of this number
	AsOf       time.Time // the newest whose checkpoint was taken at or before this moment, by the clock of the host that took it
}

// String names the wanted commit in an error.
func (s Selector) String() string {
	switch {
	case s.Checkpoint != uuid.Nil:
		return "checkpoint " + s.Checkpoint.String()
	case s.Number != 0:
		return fmt.Sprintf("commit %d", s.Number)
	case !s.AsOf.IsZero():
		return "a checkpoint as of " + s.AsOf.UTC().Format(time.RFC3339)
	}
	return "the newest checkpoint"
}

// CommitInfo is a checkpoint commit without its file table.
type CommitInfo struct {
	Number     uint64
	Epoch      uint64
	Writer     repository.Writer
	Created    time.Time
	WrittenBy  string
	Checkpoint repository.Checkpoint
	Totals     repository.Totals
}

func infoOf(c *repository.Commit) CommitInfo {
	return CommitInfo{
		Number: c.Number, Epoch: c.Epoch, Writer: c.Writer, Created: c.Created, WrittenBy: c.WrittenBy,
		Checkpoint: c.Checkpoint, Totals: c.Totals,
	}
}

// ListCommits reads every checkpoint commit that can be restored, newest last. It reads the commits themselves, so it takes a request for
// each; it checks that each stands rightly above the one before. Where some are damaged it gives the others beside an error that names them.
func (r *Reader) ListCommits(ctx context.Context) ([]CommitInfo, error) {
	var list []CommitInfo
	err := r.settled(ctx, func() (err error) {
		list, err = r.list(ctx)
		return err
	})
	return list, err
}

func (r *Reader) list(ctx context.Context) ([]CommitInfo, error) {
	numbers, format, err := r.index(ctx)
	if err != nil || format == nil {
		return nil, err
	}
	rows, err := r.rows(ctx, numbers, func(*repository.Commit) {})
	if err != nil {
		return nil, err
	}
	gc, err := r.readGC(ctx)
	if err != nil {
		return nil, err
	}
	if n := newestRow(rows); n != 0 && !gc.Visible(n) { // retention keeps the newest checkpoint: a newer one has come, which is not in this list
		return nil, fmt.Errorf("commit %d is retired: %w", n, errMoved)
	}
	var infos []CommitInfo
	var damaged []error
	var below *known
	for i := range rows {
		c := &rows[i]
		switch {
		case !gc.Visible(numbers[i]):
			continue // of no account, see newestOf
		case c.damage != nil:
			damaged, below = append(damaged, c.damage), nil
			continue
		case c.Commit == nil: // it was gone when it was read
			return nil, fmt.Errorf("commit %d is gone: %w", numbers[i], errMoved)
		}
		if below != nil {
			if err := r.follows(*below, &c.known); err != nil {
				return nil, err
			}
		}
		if below = &c.known; c.Kind == repository.KindCheckpoint {
			infos = append(infos, infoOf(c.Commit))
		}
	}
	if len(infos) == 0 && len(damaged) == 0 {
		return nil, r.neverCommitted(ctx, numbers, gc)
	}
	return infos, errors.Join(damaged...)
}

// commitRow is one listed commit. It was gone when there is neither a commit nor damage.
type commitRow struct {
	known

	number uint64
	damage error
}

// newestRow is the number of the newest row that is not known to be a seal; 0 = none.
func newestRow(rows []commitRow) uint64 {
	for i := range slices.Backward(rows) {
		if c := rows[i].Commit; c == nil || c.Kind == repository.KindCheckpoint {
			return rows[i].number
		}
	}
	return 0
}

// rows reads commits and hands each on, one at a time, before it lets go of its tables.
func (r *Reader) rows(ctx context.Context, numbers []uint64, see func(*repository.Commit)) ([]commitRow, error) {
	rows := make([]commitRow, len(numbers))
	var seeing sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(DefaultConcurrency)
	for i, n := range numbers {
		group.Go(func() error {
			rows[i].number = n
			c, err := r.commit(ctx, n)
			switch {
			case isNotFound(err):
				return nil
			case errors.Is(err, repository.ErrCorrupt):
				rows[i].damage = err
				return nil
			case err != nil:
				return err
			}
			seeing.Lock()
			see(c.Commit)
			seeing.Unlock()
			c.Files, c.Packs = nil, nil
			rows[i].known = c
			return nil
		})
	}
	return rows, group.Wait()
}

// Find reads the commit that a selector names. ErrNoCommit when it is proven that there is none.
func (r *Reader) Find(ctx context.Context, sel Selector) (*repository.Commit, error) {
	c, err := r.find(ctx, sel)
	if err == nil && c == nil {
		return nil, fmt.Errorf("target %q, prefix %q: %s: %w", r.calls.target, r.prefix, sel, ErrNoCommit)
	}
	return c, err
}

// Ask is Find for ChooseStart: the commit, its proven absence, or why neither can be told.
func (r *Reader) Ask(ctx context.Context, sel Selector) TargetState {
	state := TargetState{Name: r.calls.target}
	c, err := r.Find(ctx, sel)
	switch {
	case errors.Is(err, ErrNoCommit):
	case err != nil:
		state.Err = err
	default:
		state.Commit, state.Number = &StatePoint{ID: c.Checkpoint.ID, Step: c.Checkpoint.Step}, c.Number
	}
	return state
}

func (r *Reader) find(ctx context.Context, sel Selector) (*repository.Commit, error) {
	if sel == (Selector{}) {
		head, err := r.Discover(ctx)
		return head.Commit, err
	}
	if sel.Number != 0 {
		if _, format, err := r.index(ctx); err != nil || format == nil {
			return nil, err
		}
		return r.restorable(ctx, sel.Number)
	}
	var found *repository.Commit
	err := r.settled(ctx, func() error {
		number, err := (&descent{reader: r, wanted: sel}).run(ctx)
		if err != nil || number == 0 {
			return err
		}
		if found, err = r.restorable(ctx, number); err == nil && found == nil { // retention has taken it since: another may be what is wanted now
			return fmt.Errorf("commit %d is gone: %w", number, errMoved)
		}
		return err
	})
	return found, err
}

func (s Selector) matches(c CommitInfo) bool {
	if s.Checkpoint != uuid.Nil {
		return c.Checkpoint.ID == s.Checkpoint
	}
	return !c.Checkpoint.Created.After(s.AsOf)
}

// restorable reads checkpoint commit n, then gc; nil when it is not there, hidden, or a seal.
func (r *Reader) restorable(ctx context.Context, n uint64) (*repository.Commit, error) {
	var found *repository.Commit
	err := r.settled(ctx, func() error {
		c, err := r.commit(ctx, n)
		if isNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		gc, err := r.readGC(ctx)
		if err == nil && c.Kind == repository.KindCheckpoint && gc.Visible(n) {
			found = c.Commit
		}
		return err
	})
	return found, err
}

// meter adds up progress from several goroutines and reports it one call at a time.
type meter struct {
	mu     sync.Mutex
	report func(Progress)
	now    Progress
}

// Progress of a pull or a restore.
type Progress struct {
	Commit uint64
	Done   int64 // stored bytes read and checked
	Total  int64 // stored bytes to read; what is there already does not count
}

func (m *meter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Done += n
	if m.report != nil {
		m.report(m.now)
	}
}
