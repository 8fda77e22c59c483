package syncer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
)

// pullRounds is how often a pull looks for its commit anew when a pack of it is gone.
const pullRounds = 3

// goneError says that a pack of a commit is proven absent.
type goneError struct {
	commit uint64
	pack   repository.PackID
	err    error
}

func (e *goneError) Error() string {
	return fmt.Sprintf("pack %s of commit %d is not there: %v", e.pack, e.commit, e.err)
}

func (e *goneError) Unwrap() error { return e.err }

// PullRequest asks for a checkpoint of a repository to become a local one.
type PullRequest struct {
	From     Selector
	Local    *checkpoint.Store // gets the checkpoint; those that it has already lend what they share with it
	Instead  bool              // of one that is there and damaged, which gives way once the new one is whole
	Spool    *Spool
	Progress func(Progress) // nil = none; called from other goroutines, one call at a time, until Pull returns
}

// Pulled is a checkpoint that was pulled.
type Pulled struct {
	Manifest checkpoint.Manifest
	Commit   CommitInfo
	Already  bool // it was there; nothing was read
	Needs    Needs
}

// Pull makes the selected commit an ordinary local checkpoint with the same id. Every chunk is checked against its digest before it is
// written; what the draft of an interrupted pull holds already, or a local checkpoint, is not read from the target again. When a pack is gone
// the commit has been retired meanwhile, and the pull looks for its commit anew: what is published is whole and of one commit, or nothing.
// ErrNoCommit, repository.ErrCorrupt, *repository.UnsupportedError, the codes of sdk and what the disk says are the errors.
func (r *Reader) Pull(ctx context.Context, req PullRequest) (Pulled, error) {
	var pulled Pulled
	err := r.onCommit(ctx, req.From, func(c *repository.Commit) (err error) {
		pulled, err = r.pull(ctx, req, c)
		return err
	})
	return pulled, err
}

// onCommit finds the commit and works on it, anew when a pack is gone. The same commit with the same pack gone is corruption at last.
func (r *Reader) onCommit(ctx context.Context, sel Selector, work func(*repository.Commit) error) error {
	for round := 1; ; round++ {
		c, err := r.Find(ctx, sel)
		if err != nil {
			return err
		}
		err = work(c)
		gone, ok := errors.AsType[*goneError](err)
		if !ok {
			return err
		}
		if round == pullRounds {
			return r.corrupt("%v, though the commit stands; %s shows the commits, an earlier one may be whole", gone, r.commands.List())
		}
		r.log.Info("a pack is gone, looking for the commit again", "commit", gone.commit, "pack", gone.pack)
	}
}

func (r *Reader) pull(ctx context.Context, req PullRequest, c *repository.Commit) (Pulled, error) {
	begin := req.Local.BeginAs
	if req.Instead {
		begin = req.Local.BeginInstead
	}
	draft, err := begin(c.Checkpoint.ID)
	if errors.Is(err, fs.ErrExist) {
		return already(req.Local, c)
	}
	if err != nil {
		return Pulled{}, fmt.Errorf("pull commit %d: %w", c.Number, err)
	}
	defer draft.Close() //nolint:errcheck // it stays on disk to be resumed; after Publish this does nothing
	donors := r.donors(ctx, req.Local)
	defer donors.release()
	fill := filling{reader: r, commit: c, dir: draft.Dir(), donors: donors, spool: req.Spool, progress: req.Progress}
	if err := fill.run(ctx); err != nil {
		return Pulled{}, fmt.Errorf("pull commit %d: %w", c.Number, spaceOf(draft.Dir(), err))
	}
	donors.release() // one of them may have to give way
	m, err := draft.Publish(ctx, metaOf(c))
	if err != nil {
		return Pulled{}, fmt.Errorf("pull commit %d: %w", c.Number, err)
	}
	r.log.Info("checkpoint pulled", "checkpoint", m.ID, "commit", c.Number, "step", m.Step)
	return Pulled{Manifest: m, Commit: infoOf(c), Needs: fill.needs}, nil
}

// already answers for a checkpoint that is published here: it must be the same one.
func already(local *checkpoint.Store, c *repository.Commit) (Pulled, error) {
	p, err := local.Pin(c.Checkpoint.ID)
	if err != nil {
		return Pulled{}, fmt.Errorf("pull commit %d: %w", c.Number, err)
	}
	defer p.Release()
	m := p.Manifest()
	want := metaOf(c).Expect
	same := len(m.Files) == len(want)
	for i := 0; same && i < len(want); i++ {
		same = m.Files[i].Path == want[i].Path && sameContent(m.Files[i], want[i])
	}
	if !same {
		return Pulled{}, fmt.Errorf("pull commit %d: the local checkpoint %s has other content than the commit: %w: look at both, and move the local one away to go by the commit",
			c.Number, m.ID, repository.ErrCorrupt)
	}
	all := func(repository.Place) bool { return true }
	return Pulled{Manifest: m, Commit: infoOf(c), Already: true, Needs: needsOf(c, repository.RestorePlan{}, all)}, nil
}

// metaOf is what checkpoint.json shall say.
func metaOf(c *repository.Commit) checkpoint.Meta {
	cp := c.Checkpoint
	meta := checkpoint.Meta{
		Step: cp.Step, Created: cp.Created, Incarnation: cp.Incarnation, Kind: cp.Identity.Kind, Fingerprint: cp.Identity.Fingerprint,
		History: make(checkpoint.History, len(cp.History)), Expect: make([]checkpoint.File, len(c.Files)),
	}
	for i, reign := range cp.History {
		meta.History[i] = checkpoint.Reign(reign)
	}
	for i, f := range c.Files {
		meta.Expect[i] = checkpoint.File{Path: f.Path, Size: f.Size, Mode: f.Mode, Chunks: make([][32]byte, len(f.Chunks))}
		for j, ch := range f.Chunks {
			meta.Expect[i].Chunks[j] = ch.Digest
		}
	}
	return meta
}

// filling makes the files of a commit below a directory.
type filling struct {
	reader   *Reader
	commit   *repository.Commit
	dir      string
	donors   *donors // may be nil
	spool    *Spool
	progress func(Progress)
	needs    Needs // what it came to, once run has planned its reads
}

// run returns when every file is there with its content and mode; nothing is synced.
func (f *filling) run(ctx context.Context) error {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // a directory: nothing was written through it
	t := newTree(root, f.commit.Files)
	if err := t.prepare(ctx, f.donors); err != nil {
		return err
	}
	if err := f.fetch(ctx, t); err != nil {
		return err
	}
	return t.setModes()
}
