package syncer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
)

// RestoreRequest asks for the files of a checkpoint in a directory.
type RestoreRequest struct {
	From      Selector
	Dir       string   // must not exist, or be an empty directory
	DeltaFrom []string // folders whose files lend what they share with the checkpoint; they are only read
	Spool     *Spool
	Progress  func(Progress) // nil = none; called from other goroutines, one call at a time, until RestoreDir returns

	// Hook, nil in production, is called at each named point of the restore, so that tests can crash there: restore.staged, restore.filled,
	// restore.verified, restore.synced, restore.swapping, restore.swapped.
	Hook func(point string)
}

// RestoreDir puts the files of the selected commit into a directory: all of them, or it stays as it was. They are written beside it into
// ".NAME.cairn-restore", checked, synced and then renamed; a restore that was interrupted goes on from there. A directory that holds
// anything is refused, and until there is a commit to restore nothing is made. Errors are those of Pull.
func (r *Reader) RestoreDir(ctx context.Context, req RestoreRequest) (Restored, error) {
	var done Restored
	err := checkDestination(req.Dir) // before anything is asked for
	if err == nil {
		err = r.onCommit(ctx, req.From, func(c *repository.Commit) (err error) {
			done, err = r.restore(ctx, req, c)
			return err
		})
	}
	if err != nil {
		return Restored{}, fmt.Errorf("restore to %s: %w", req.Dir, err)
	}
	return done, nil
}

func (r *Reader) restore(ctx context.Context, req RestoreRequest, c *repository.Commit) (Restored, error) {
	donors, err := r.donorsIn(ctx, req.DeltaFrom, c)
	if err != nil {
		return Restored{}, err
	}
	s, err := openStaging(req.Dir)
	if err != nil {
		return Restored{}, err
	}
	defer s.close()
	if s.hook = req.Hook; s.hook == nil {
		s.hook = func(string) {}
	}
	s.hook("restore.staged")
	needs, err := r.stage(ctx, req, c, donors, s)
	if err != nil {
		return Restored{}, spaceOf(s.path, err)
	}
	return Restored{Commit: infoOf(c), Needs: needs}, nil
}

// stage fills the staging directory, checks it and puts it in the destination's place.
func (r *Reader) stage(ctx context.Context, req RestoreRequest, c *repository.Commit, donors *donors, s *staging) (Needs, error) {
	fill := filling{reader: r, commit: c, dir: s.path, donors: donors, spool: req.Spool, progress: req.Progress}
	if err := fill.run(ctx); err != nil {
		return Needs{}, err
	}
	s.hook("restore.filled")
	// Each chunk was checked when it was written; this reads what the disk gives back.
	if err := checkpoint.Verify(ctx, s.path, checkpoint.Manifest{ID: c.Checkpoint.ID, Files: metaOf(c).Expect}); err != nil {
		return Needs{}, err
	}
	s.hook("restore.verified")
	return fill.needs, s.finish(ctx, c.Files)
}

// staging is the directory beside the destination. Its lock keeps a second restore to the same place away.
type staging struct {
	path string // of the staging directory
	dest string
	lock *os.File
	hook func(point string)
}

// stagingPath is where the files are made that become dest, and dest as an absolute path.
func stagingPath(dest string) (staging, abs string, err error) {
	abs, err = filepath.Abs(dest)
	return filepath.Join(filepath.Dir(abs), "."+filepath.Base(abs)+".cairn-restore"), abs, err
}

func openStaging(dest string) (*staging, error) {
	path, dest, err := stagingPath(dest)
	if err != nil {
		return nil, err
	}
	if err := checkDestination(dest); err != nil {
		return nil, err
	}
	s := &staging{path: path, dest: dest}
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		return nil, checkpoint.Unwritable(err)
	}
	if err := os.Mkdir(s.path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, checkpoint.Unwritable(err)
	}
	s.lock, err = os.OpenFile(s.path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("the place for staging: %w", err)
	}
	if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		s.lock.Close() // nothing was written through it
		return nil, fmt.Errorf("%s is in use by another restore: %w", s.path, err)
	}
	return s, nil
}

// checkDestination refuses what a restore would have to overwrite.
func checkDestination(dest string) error {
	info, err := os.Lstat(dest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return checkpoint.Unwritable(err)
	case !info.IsDir():
		return errors.New("it exists and is not a directory: name a new or an empty directory")
	}
	entries, err := os.ReadDir(dest)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("it is not empty (%q): name a new or an empty directory", entries[0].Name())
	}
	return nil
}

// close gives the lock back. What a restore has made so far stays for the next one; an empty directory is no use to anybody.
func (s *staging) close() {
	_ = os.Remove(s.path) // succeeds only while it is empty
	s.lock.Close()        // nothing was written through it
}

// finish makes the files durable and gives them their place. A rename onto a directory succeeds only while that is empty.
func (s *staging) finish(ctx context.Context, files []repository.File) error {
	root, err := os.OpenRoot(s.path)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // a directory: nothing was written through it
	if err := newTree(root, files).sync(ctx); err != nil {
		return err
	}
	s.hook("restore.synced")
	if err := checkDestination(s.dest); err != nil {
		return err
	}
	if err := os.Remove(s.dest); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.hook("restore.swapping")
	if err := os.Rename(s.path, s.dest); err != nil {
		return err
	}
	s.hook("restore.swapped")
	parent, err := os.Open(filepath.Dir(s.dest))
	if err != nil {
		return err
	}
	defer parent.Close() // nothing was written through it
	return parent.Sync()
}
