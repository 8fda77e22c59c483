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

func newScratch() (*scratch, error) {
	sweepScratch(os.TempDir())
	for {
		s, err := tryScratch()
		if !errors.Is(err, fs.ErrExist) {
			return s, err
		}
	}
}

// tryScratch answers fs.ErrExist when a sweeper has found the mark in the instant before it was locked.
func tryScratch() (*scratch, error) {
	path, err := os.MkdirTemp("", scratchPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a folder to work in: %w", err)
	}
	mark, err := os.OpenFile(filepath.Join(path, scratchMark), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a folder to work in: %w", errors.Join(err, os.Remove(path)))
	}
	s := &scratch{path: path, mark: mark}
	if !s.take() {
		mark.Close() // nothing was written to it
		return nil, fs.ErrExist
	}
	return s, nil
}

// take locks the mark, and says whether the folder is still there for it.
func (s *scratch) take() bool {
	if syscall.Flock(int(s.mark.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false
	}
	opened, err := s.mark.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(s.mark.Name())
	return err == nil && os.SameFile(opened, named)
}

func (s *scratch) remove() error {
	defer s.mark.Close() // nothing was written to it
	return wipe.Tree(s.path, nil)
}

// sweepScratch removes the scratch folders of dead commands. What is not this user's, or holds no mark, is not ours to remove, and what cannot be
// removed now stays for the next one.
func sweepScratch(dir string) {
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
		if !dead.take() {
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
