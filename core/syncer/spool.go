package syncer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/internal/wipe"
	"github.com/cairnsync/cairn/sdk"
)

// SpoolLimit is how many bytes all files of a spool may hold together: sixteen packs of the largest size, enough to keep every upload
// slot busy while the next packs are built, and small enough for a tmpfs.
const SpoolLimit = 256 << 20

// What lies in the directory of a spool: the mark that it is one, which is its lock too, and the folder that plugins are told of. They may do there
// what they like without taking the mark away.
const (
	spoolMark  = ".cairn-spool"
	spoolFiles = "files"
)

// Spool is the one directory that a plugin can see: packs wait in it for their upload, and downloads arrive in it. All pipelines of a
// host share one. Its methods may be called from any goroutine.
type Spool struct {
	dir   string   // of the files
	lock  *os.File // flocked: a second host on the same directory would empty it under our feet
	space *semaphore.Weighted

	create func(dir, pattern string) (*os.File, error) // os.CreateTemp, but where a test has a full disk
}

// OpenSpool takes dir as the spool of this process: it is created with mode 0700 or, when it already is a spool, emptied. A directory
// that holds files of somebody else is refused and left as it is, and so is one that another process uses.
func OpenSpool(dir string) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create spool: %w", err)
	}
	if err := checkSpoolDir(dir); err != nil {
		return nil, err
	}
	lock, err := lockSpool(filepath.Join(dir, spoolMark))
	if err != nil {
		return nil, err
	}
	if err := emptySpool(dir); err != nil {
		lock.Close()
		return nil, err
	}
	return &Spool{dir: filepath.Join(dir, spoolFiles), lock: lock, space: semaphore.NewWeighted(SpoolLimit), create: os.CreateTemp}, nil
}

// Dir is the path of the folder in which its files lie: what a plugin is told of.
func (s *Spool) Dir() string { return s.dir }

// Close gives the directory back. Files that are still open stay valid and are unlinked by their own Close.
func (s *Spool) Close() error {
	// Not by closing alone: a process that is just being forked holds the file too, until it execs.
	unlocked := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_UN)
	return errors.Join(unlocked, s.lock.Close())
}

// Create makes an empty file and books reserve bytes of the spool for it (at most SpoolLimit). It waits while the spool is full, first
// come, first served, until ctx ends. The caller closes the file.
func (s *Spool) Create(ctx context.Context, reserve int64) (*SpoolFile, error) {
	if reserve < 0 || reserve > SpoolLimit {
		return nil, fmt.Errorf("create spool file: %d bytes do not fit into a spool of %d", reserve, SpoolLimit)
	}
	if err := s.space.Acquire(ctx, reserve); err != nil {
		return nil, fmt.Errorf("wait for room in the spool: %w", err)
	}
	f, err := s.create(s.dir, "part-*")
	if err != nil {
		s.space.Release(reserve)
		return nil, spoolError("create spool file", err)
	}
	return &SpoolFile{File: f, spool: s, booked: reserve}, nil
}

// SpoolFile is one file of a spool. Its owner is whoever created it; it is not safe for concurrent use, save for reads of the
// embedded file.
type SpoolFile struct {
	*os.File

	spool  *Spool
	booked int64
	closed bool
}

// Write appends p. A full disk is sdk.NoSpace with a hint.
func (f *SpoolFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if err != nil {
		return n, spoolError("write spool file", err)
	}
	return n, nil
}

// Shrink gives back what was booked beyond n bytes, once the file's size is known.
func (f *SpoolFile) Shrink(n int64) {
	if n < f.booked {
		f.spool.space.Release(f.booked - n)
		f.booked = n
	}
}

// Close closes and unlinks the file and gives its space back. A second Close does nothing.
func (f *SpoolFile) Close() error {
	if f.closed {
		return nil
	}
	f.closed = true
	err := errors.Join(f.File.Close(), os.Remove(f.Name()))
	f.spool.space.Release(f.booked)
	if err != nil {
		return fmt.Errorf("close spool file: %w", err)
	}
	return nil
}

// checkSpoolDir refuses a directory that has entries but was never marked as a spool: emptying it would destroy someone's files.
func checkSpoolDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read spool: %w", err)
	}
	if len(entries) == 0 {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(dir, spoolMark)); err != nil {
		return fmt.Errorf("spool %s holds %q and was not made by Cairn: name an empty directory as spool_dir", dir, entries[0].Name())
	}
	return nil
}

func lockSpool(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("mark spool: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("spool %s is in use by another process: is a host already running on this data folder? stop it, or give this host a data_dir of its own", filepath.Dir(path))
		}
		return nil, fmt.Errorf("lock spool: %w", err)
	}
	return lock, nil
}

// emptyPatience is how long a start takes to remove what plugins have left in the spool, which may be any number of files.
const emptyPatience = time.Minute

func emptySpool(dir string) error {
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("protect spool: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read spool: %w", err)
	}
	stop := make(chan struct{})
	defer time.AfterFunc(emptyPatience, func() { close(stop) }).Stop()
	for _, entry := range entries {
		if entry.Name() == spoolMark {
			continue
		}
		if err := wipe.Tree(filepath.Join(dir, entry.Name()), stop); err != nil {
			return fmt.Errorf("empty spool: %w", err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, spoolFiles), 0o700); err != nil {
		return fmt.Errorf("create spool: %w", err)
	}
	return nil
}

// spoolError names a full spool disk as what it is; other errors are the machine's and stay as they are.
func spoolError(op string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &spoolFullError{op: op, err: err}
	}
	return fmt.Errorf("%s: %w", op, err)
}

// spaceOf explains a disk that is full where a pull writes to. A spool that is full, or a store, has said so itself.
func spaceOf(path string, err error) error {
	if errors.Is(err, sdk.NoSpace) {
		return err
	}
	return checkpoint.Explain(path, err)
}

// spoolFullError has the code sdk.NoSpace, and says that it is not the store that is full.
type spoolFullError struct {
	op  string
	err error
}

func (e *spoolFullError) Error() string {
	return fmt.Sprintf("%s: %v: the disk of spool_dir is full: free some space, or point host.spool_dir at a larger one", e.op, e.err)
}

func (e *spoolFullError) Unwrap() []error { return []error{sdk.NoSpace, e.err} }
