package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cairnsync/cairn/internal/wipe"
)

const (
	scratchPrefix = "cairn-"
	// scratchMark is a file in a scratch folder that its command keeps locked. Where the lock is free the command has been killed.
	scratchMark = ".cairn-scratch"
)

// scratch is a folder below TMPDIR for a command that works without the host: plugins run from it, bodies pass through it. It goes with the
// command. What a command left that was killed, or whose reader went away (`| head`), the next one removes.
type scratch struct {
	path string
	mark *os.File
}

// locker is syscall.Flock.
type locker func(fd, how int) error

func newScratch() (*scratch, error) { return newScratchBy(syscall.Flock) }

func newScratchBy(lock locker) (*scratch, error) {
	sweepScratch(os.TempDir(), lock)
	for {
		s, err := tryScratch(lock)
		if !errors.Is(err, fs.ErrExist) {
			return s, err
		}
	}
}

// tryScratch answers fs.ErrExist when a sweeper has found the mark in the instant before it was locked. Where the file system has no locks it is an error:
// without one the folder would be taken for a dead command's by the first sweeper that gets its lock, as on a server that is only short of them.
func tryScratch(lock locker) (*scratch, error) {
	path, err := os.MkdirTemp("", scratchPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a folder to work in: %w; set TMPDIR to a folder that this user may write to", err)
	}
	mark, err := os.OpenFile(filepath.Join(path, scratchMark), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a folder to work in: %w", errors.Join(err, os.Remove(path)))
	}
	s := &scratch{path: path, mark: mark}
	taken, err := s.take(lock)
	if err != nil {
		_ = s.remove() // the error says more
		return nil, fmt.Errorf("lock the folder to work in %s: %w; set TMPDIR to a folder on a file system that supports flock", path, err)
	}
	if !taken {
		mark.Close() // nothing was written to it
		return nil, fs.ErrExist
	}
	return s, nil
}

// take locks the mark, and says whether that was free and the folder is still there for it.
func (s *scratch) take(lock locker) (bool, error) {
	err := lock(int(s.mark.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	opened, err := s.mark.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Lstat(s.mark.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, named), err
}

func (s *scratch) remove() error {
	defer s.mark.Close() // nothing was written to it
	return wipe.Tree(s.path, nil)
}

// sweepScratch removes the scratch folders of dead commands. What is not this user's, or holds no mark, is not ours to remove, and what cannot be
// removed now stays for the next one.
func sweepScratch(dir string, lock locker) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // then no folder can be made there either, and that is told
	}
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), scratchPrefix) || !ownFolder(entry) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		mark, err := os.OpenFile(filepath.Join(path, scratchMark), os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		dead := &scratch{path: path, mark: mark}
		if taken, err := dead.take(lock); !taken || err != nil {
			mark.Close() // nothing was written to it
			continue
		}
		_ = dead.remove() // as said
	}
}

func ownFolder(entry fs.DirEntry) bool {
	info, err := entry.Info()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
