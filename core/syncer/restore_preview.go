package syncer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cairnsync/cairn/core/repository"
)

// Restored tells of a restore: of one that was done, or of one that would be.
type Restored struct {
	Commit CommitInfo
	Needs  Needs
}

// Needs is what a restore reads of its target, and what it need not.
type Needs struct {
	Bytes    int64 // of packs, as they are stored; gaps between chunks that are read through are counted
	Requests int   // that read them, when none has to be repeated
	Packs    int   // that they lie in
	Kept     int64 // bytes of the files that were found here: left by an interrupted restore, or in a donor; holes are not counted
}

func needsOf(c *repository.Commit, plan repository.RestorePlan, has func(repository.Place) bool) Needs {
	n := Needs{Bytes: plan.Bytes, Requests: len(plan.Ranges)}
	for i, r := range plan.Ranges { // by pack
		if i == 0 || r.Pack != plan.Ranges[i-1].Pack {
			n.Packs++
		}
	}
	for i, f := range c.Files {
		for j, ch := range f.Chunks {
			if ch.Encoding != repository.Hole && has(repository.Place{File: i, Index: j}) {
				n.Kept += f.ChunkLen(j)
			}
		}
	}
	return n
}

// PreviewRestore tells what RestoreDir would do with the same request, and writes nothing. Dir may be empty: then no directory is looked at.
// It reads the commit and what is here, not the packs, so it does not prove that they are there; Verify does.
func (r *Reader) PreviewRestore(ctx context.Context, req RestoreRequest) (Restored, error) {
	staged, err := stagedBefore(req.Dir)
	if err != nil {
		return Restored{}, fmt.Errorf("preview of a restore to %s: %w", req.Dir, err)
	}
	if staged != nil {
		defer staged.Close() //nolint:errcheck // a directory: nothing was written through it
	}
	c, err := r.Find(ctx, req.From)
	if err != nil {
		return Restored{}, fmt.Errorf("preview of a restore: %w", err)
	}
	donors, err := r.donorsIn(ctx, req.DeltaFrom, c)
	if err != nil {
		return Restored{}, fmt.Errorf("preview of a restore: %w", err)
	}
	t := newTree(staged, c.Files)
	if err := t.look(ctx, donors); err != nil {
		return Restored{}, fmt.Errorf("preview of a restore: %w", err)
	}
	return Restored{Commit: infoOf(c), Needs: needsOf(c, repository.PlanRestore(c, t.has), t.has)}, nil
}

// stagedBefore opens what an interrupted restore to dest has left; nil when there is nothing. A destination that RestoreDir refuses is refused.
func stagedBefore(dest string) (*os.Root, error) {
	if dest == "" {
		return nil, nil
	}
	path, dest, err := stagingPath(dest)
	if err != nil {
		return nil, err
	}
	if err := checkDestination(dest); err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("the place for staging, %s, is not a directory: move it away", path)
	}
	return os.OpenRoot(path)
}

// look marks what prepare would find in the tree and in donors, and changes nothing. A tree without a root is empty.
func (t *tree) look(ctx context.Context, d *donors) error {
	for i, f := range t.files {
		if err := t.lookAt(ctx, i); err != nil {
			return err
		}
		for j, ch := range f.Chunks {
			t.filled[i][j] = t.filled[i][j] || d.has(ch.Digest)
		}
	}
	return nil
}

func (t *tree) lookAt(ctx context.Context, i int) error {
	if t.root == nil {
		return nil
	}
	want := t.files[i]
	info, err := t.root.Lstat(want.Path)
	if err != nil || !info.Mode().IsRegular() || !soleName(info) {
		return nil //nolint:nilerr // a restore makes the file anew
	}
	f, err := t.root.Open(want.Path)
	if err != nil {
		return err
	}
	defer f.Close() // nothing was written through it
	return t.compare(ctx, f, i, make([]byte, min(want.Size, repository.ChunkSize)))
}
