package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// lookRounds is how often a repository is looked at anew when it changed under the reader's eyes: each time somebody else has made progress.
const lookRounds = 8

// errMoved says that what was read does not fit together because a writer has moved on meanwhile.
var errMoved = errors.New("the repository changed while it was read")

// ErrNoRepository says that nothing at all lies below the prefix.
var ErrNoRepository = errors.New("there is no repository, nor anything else")

// ReaderConfig names one repository and how to reach it.
type ReaderConfig struct {
	Target string // its name in the configuration, for errors
	Prefix string // of the repository, see repository.CheckPrefix
	Store  Store

	// Pipeline is whose repository it must be; any other is an *OwnedError. Nil = any: an operator restores, or a new machine learns the id.
	Pipeline     uuid.UUID
	PipelineName string
	Origin       Origin // for the remedies

	Slots       *Limiter         // shared by all users of one target; nil = one of its own with DefaultConcurrency
	RetryBudget time.Duration    // how long one call is repeated; 0 = RetryBudget
	Now         func() time.Time // required
	Jitter      func() float64   // in [0, 1), for the backoff; nil = math/rand
	Log         hclog.Logger     // nil = none
}

// Reader reads one repository; it never writes to the target. Its methods may be called from any goroutine, and the goroutines they
// start have ended when they return.
type Reader struct {
	remote

	store        Store
	pipeline     uuid.UUID
	pipelineName string
	log          hclog.Logger
	decode       func(n uint64, stored []byte) (*repository.Commit, error) // repository.DecodeCommit, but in the model test
}

// NewReader makes a reader. It makes no call to the store.
func NewReader(cfg ReaderConfig) (*Reader, error) {
	if err := repository.CheckPrefix(cfg.Prefix); err != nil {
		return nil, fmt.Errorf("target %q: %w", cfg.Target, err)
	}
	t := tuning{slots: cfg.Slots, budget: cfg.RetryBudget, jitter: cfg.Jitter, log: cfg.Log}.withDefaults()
	calls := t.caller(cfg.Target, cfg.Now, newTally(cfg.Now, JobRecord{}))
	run := Commands{Pipeline: cfg.PipelineName, Target: cfg.Target, From: cfg.Origin}
	return &Reader{
		remote: remote{calls: calls, store: cfg.Store, prefix: cfg.Prefix, commands: run}, store: cfg.Store,
		pipeline: cfg.Pipeline, pipelineName: cfg.PipelineName, log: t.log.With("target", cfg.Target),
		decode: repository.DecodeCommit,
	}, nil
}

// Head is what a repository holds now. What it says is proven: what could not be read is an error of Discover, never an empty Head.
type Head struct {
	Format *repository.Format // nil = there is no repository below the prefix, nor anything else
	Commit *repository.Commit // the newest checkpoint commit; nil = none was ever made
}

// Discover reads the newest checkpoint commit. Nothing below the prefix, or a repository without a checkpoint yet, is a Head without Commit; any
// answer that leaves it open (unreachable, permission denied) is that error, and data beside a missing or unreadable index is
// repository.ErrCorrupt.
func (r *Reader) Discover(ctx context.Context) (Head, error) {
	var head Head
	err := r.settled(ctx, func() (err error) {
		head, err = r.look(ctx)
		return err
	})
	return head, err
}

// settled repeats a look until it sees one state of the repository.
func (r *Reader) settled(ctx context.Context, look func() error) error {
	for round := 1; ; round++ {
		err := look()
		if !errors.Is(err, errMoved) || ctx.Err() != nil {
			return err
		}
		if round == lookRounds {
			return fmt.Errorf("looked %d times: %w", lookRounds, err)
		}
		r.log.Debug("repository changed while it was read, looking again", "round", round)
	}
}

// look is one attempt of Discover. The order matters: whoever made a commit made FORMAT.json before, and a commit's body is read
// before gc, so that a commit that gc does not hide was whole when it was read.
func (r *Reader) look(ctx context.Context) (Head, error) {
	numbers, format, err := r.index(ctx)
	if err != nil || format == nil {
		return Head{}, err
	}
	top, err := r.walk(ctx, numbers)
	if err != nil {
		return Head{}, err
	}
	gc, err := r.readGC(ctx)
	if err != nil {
		return Head{}, err
	}
	newest, err := r.newestOf(top, gc)
	switch {
	case err != nil:
	case newest == nil:
		err = r.neverCommitted(ctx, numbers, gc)
	default:
		err = r.aboveGC(ctx, numbers, newest.Number, gc)
	}
	if err != nil {
		return Head{}, err
	}
	return Head{Format: format, Commit: newest}, nil
}

// index lists the commits and reads FORMAT.json; nil when there is nothing below the prefix.
func (r *Reader) index(ctx context.Context) ([]uint64, *repository.Format, error) {
	first, err := r.anyBelow(ctx, repository.RootPrefix(r.prefix))
	if err != nil {
		return nil, nil, err
	}
	numbers, err := r.numbers(ctx, repository.CommitPrefix(r.prefix), repository.ParseCommitKey)
	if err != nil {
		return nil, nil, err
	}
	data, err := r.get(ctx, repository.FormatKey(r.prefix), repository.MaxSmall)
	switch {
	case isNotFound(err) && first == "" && len(numbers) == 0:
		return nil, nil, nil
	case isNotFound(err):
		return nil, nil, r.corrupt("there is no FORMAT.json, yet %q exists and %d commits: restore that object, or use another prefix", first, len(numbers))
	case err != nil:
		return nil, nil, err
	}
	f, err := repository.DecodeFormat(data)
	if err != nil {
		return nil, nil, r.named(err)
	}
	if r.pipeline != uuid.Nil && f.PipelineID != r.pipeline {
		return nil, nil, &OwnedError{
			Target: r.calls.target, Prefix: r.prefix, Pipeline: r.pipeline, Name: r.pipelineName, Owner: f.PipelineID, OwnerName: f.PipelineName,
		}
	}
	return numbers, &f, nil
}

// anyBelow gives one key below a listing prefix, "" when it is proven that there is none. What probes are at, or have left, is not counted: they are
// made before there is a repository.
func (r *Reader) anyBelow(ctx context.Context, prefix string) (key string, err error) {
	err = r.calls.do(ctx, "list "+prefix, listSize, func(ctx context.Context) error {
		key = ""
		for obj, err := range r.store.List(ctx, sdk.ListRequest{Prefix: prefix, Limit: 1}) {
			if err != nil {
				return err
			}
			if !strings.HasPrefix(obj.Key, repository.ProbePrefix(r.prefix)) {
				key = obj.Key
				break
			}
		}
		return nil
	})
	return key, err
}

// walk reads the commits from the top down to the newest checkpoint, past seals, and one further: what lies below it must belong below it. A
// damaged one below does not keep the newest from being read, which needs nothing of it.
func (r *Reader) walk(ctx context.Context, numbers []uint64) ([]known, error) {
	var top []known
	found := false
	for _, n := range slices.Backward(numbers) {
		c, err := r.commit(ctx, n)
		switch {
		case isNotFound(err) && found:
			return top, nil // retention deletes below the newest; it takes nothing from it
		case errors.Is(err, repository.ErrCorrupt) && found:
			r.log.Warn("an older commit is damaged", "commit", n, "error", err)
			return top, nil
		case isNotFound(err):
			return nil, fmt.Errorf("commit %d is gone: %w", n, errMoved)
		case err != nil:
			return nil, err
		}
		if top = append(top, c); found {
			return top, nil
		}
		found = c.Kind == repository.KindCheckpoint
	}
	return top, nil
}

// newestOf judges what walk has read by the gc object that was read after it; nil when there is no checkpoint. What gc hides is of no
// account: the number of a deleted commit can come to life again, when a request lands that its writer gave up long ago.
func (r *Reader) newestOf(top []known, gc repository.GC) (*repository.Commit, error) {
	var newest *repository.Commit
	var above *known
	for i := range top {
		c := &top[i]
		switch {
		case !gc.Visible(c.Number) && newest != nil:
			return newest, nil
		case !gc.Visible(c.Number): // retention keeps the newest checkpoint: a newer one has come
			return nil, fmt.Errorf("commit %d is retired: %w", c.Number, errMoved)
		}
		if err := r.follows(*c, above); err != nil {
			return nil, err
		}
		if above = c; newest == nil && c.Kind == repository.KindCheckpoint {
			newest = c.Commit
		}
	}
	return newest, nil
}

// aboveGC says whether a commit can be the newest checkpoint: retention keeps that above all that it retires. One below, which gc has kept, is what is left
// of a repository that has lost its newest commits, and must not be taken for its state; unless the commits are other ones by now.
func (r *Reader) aboveGC(ctx context.Context, numbers []uint64, newest uint64, gc repository.GC) error {
	if newest > gc.UpTo {
		return nil
	}
	now, err := r.numbers(ctx, repository.CommitPrefix(r.prefix), repository.ParseCommitKey)
	switch {
	case err != nil:
		return err
	case !slices.Equal(now, numbers):
		return fmt.Errorf("a newer commit has come: %w", errMoved)
	}
	return &HeadLostError{Target: r.calls.target, Prefix: r.prefix, GC: gc.Number, UpTo: gc.UpTo, Newest: newest, Reading: true, Run: r.commands}
}

// follows checks that above, the next commit that was read, may stand above c.
func (r *Reader) follows(c known, above *known) error {
	switch {
	case above == nil:
		return nil
	case above.Epoch < c.Epoch:
		return r.corrupt("commit %d is of epoch %d, but stands above commit %d of epoch %d: a writer that had lost its epoch cannot have made it",
			above.Number, above.Epoch, c.Number, c.Epoch)
	case above.Number == c.Number+1 && above.Parent != c.sum:
		return r.corrupt("commit %d was made on top of another commit %d than the one that is there", above.Number, c.Number)
	}
	return nil
}

// commit reads commit n.
func (r *Reader) commit(ctx context.Context, n uint64) (known, error) {
	data, err := r.get(ctx, repository.CommitKey(r.prefix, n), repository.MaxCommit)
	if err != nil {
		return known{}, err
	}
	c, err := r.decode(n, data)
	if err != nil {
		return known{}, r.named(err)
	}
	return known{Commit: c, sum: repository.Sum(data), size: int64(len(data))}, nil
}

// readGC reads the gc object that holds. The zero GC hides nothing.
func (r *Reader) readGC(ctx context.Context) (repository.GC, error) {
	numbers, err := r.numbers(ctx, repository.GCPrefix(r.prefix), repository.ParseGCKey)
	if err != nil || len(numbers) == 0 {
		return repository.GC{}, err
	}
	k := numbers[len(numbers)-1]
	data, err := r.get(ctx, repository.GCKey(r.prefix, k), repository.MaxSmall)
	switch {
	case isNotFound(err):
		return repository.GC{}, fmt.Errorf("gc %d is gone: %w", k, errMoved)
	case err != nil:
		return repository.GC{}, err
	}
	g, err := repository.DecodeGC(k, data)
	if err != nil {
		return repository.GC{}, r.named(err)
	}
	return g, nil
}

// neverCommitted asks that a repository without a checkpoint looks like one that never had any. Anything else has lost its commits, and
// must not be taken for empty; unless the commits are other ones by now, for then a writer has moved on since they were listed.
func (r *Reader) neverCommitted(ctx context.Context, numbers []uint64, gc repository.GC) error {
	trace, err := r.traceOfCommits(ctx, numbers, gc)
	if err != nil || trace == "" {
		return err
	}
	now, err := r.numbers(ctx, repository.CommitPrefix(r.prefix), repository.ParseCommitKey)
	switch {
	case err != nil:
		return err
	case !slices.Equal(now, numbers):
		return fmt.Errorf("the first commit has come: %w", errMoved)
	}
	return r.corrupt("there is no checkpoint commit, yet %s", trace)
}

// traceOfCommits is what tells that there were commits that are not there now; "" when nothing does: only seals, none missing, nothing
// retired, no packs.
func (r *Reader) traceOfCommits(ctx context.Context, numbers []uint64, gc repository.GC) (string, error) {
	for i, n := range numbers {
		if n != uint64(i)+1 {
			return fmt.Sprintf("commit %d is missing", i+1), nil
		}
	}
	if gc.Number != 0 {
		return fmt.Sprintf("gc %d retired some", gc.Number), nil
	}
	if len(numbers) > 0 {
		return "", nil // a push may be uploading its first packs
	}
	pack, err := r.anyBelow(ctx, repository.PackPrefix(r.prefix))
	if err != nil || pack == "" {
		return "", err
	}
	return fmt.Sprintf("pack %q exists", pack), nil
}

// corrupt says what is wrong with the repository.
func (r *Reader) corrupt(format string, args ...any) error {
	return fmt.Errorf("target %q, prefix %q: %w: %s", r.calls.target, r.prefix, repository.ErrCorrupt, fmt.Sprintf(format, args...))
}

// noRepository is the error of who needs what index has not found.
func (r *Reader) noRepository() error {
	return r.named(fmt.Errorf("%w: nothing was pushed there yet, all of it is gone, or the target names another place than before; %s", ErrNoRepository, r.commands.remedyNone()))
}

// named adds where the object was that err is about.
func (r *Reader) named(err error) error {
	return fmt.Errorf("target %q, prefix %q: %w", r.calls.target, r.prefix, err)
}
