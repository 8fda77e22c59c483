package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
)

// errUnmade says that the target's directory is not there because nothing was put yet: the store is empty.
var errUnmade = errors.New("the target directory is not made yet: the first put does that")

// birth is what a target with create = true knows of its directory. Until it has seen it, a directory that is missing is one to be made by the
// first Put; from then on it is gone as any other, and is not made again: its disk may be unmounted.
type birth struct {
	create  bool
	mu      sync.Mutex  // held by whoever looks for it or makes it
	seen    atomic.Bool // it was there once
	durable atomic.Bool // and its name was synced
}

// open opens the target's directory for a call that makes nothing. errUnmade = it is one to be made.
func (t *target) open() (*os.Root, error) {
	b := &t.birth
	if !b.create || b.seen.Load() {
		return t.openSeen()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	root, err := openDir(t.path)
	switch {
	case err == nil:
		b.seen.Store(true)
		return root, nil
	case errors.Is(err, fs.ErrNotExist) && !b.seen.Load() && t.unmade():
		return nil, errUnmade
	}
	return nil, rootError(t.path, err)
}

func (t *target) openSeen() (*os.Root, error) {
	root, err := openDir(t.path)
	if err != nil {
		return nil, rootError(t.path, err)
	}
	return root, nil
}

// openToPut opens it for a Put, which makes it. No Put goes on before its name is durable, whoever has made it.
func (t *target) openToPut() (*os.Root, error) {
	b := &t.birth
	if !b.create || b.durable.Load() {
		return t.openSeen()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.durable.Load() {
		if err := t.makeRoot(); err != nil {
			return nil, makeError(t.path, err)
		}
	}
	root, err := t.openSeen()
	if err == nil {
		b.seen.Store(true)
		b.durable.Store(true)
	}
	return root, err
}

// makeRoot makes the last element of the path, unless it was seen before, durably. Its parent must exist. A directory that was there is synced too: whoever
// made it may have been killed before that.
func (t *target) makeRoot() error {
	parent, err := openDir(filepath.Dir(t.path))
	if errors.Is(err, fs.ErrPermission) {
		// Nobody with these rights has made what is there, for that ends here.
		if _, statErr := os.Stat(t.path); statErr == nil {
			return nil
		}
	}
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }() // it was only looked through
	made := false
	if !t.birth.seen.Load() {
		err := parent.Mkdir(filepath.Base(t.path), dirMode)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if made = err == nil; made {
			t.birth.seen.Store(true)
		}
	}
	err = t.syncDir(parent, ".")
	if !made && (errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EROFS)) {
		return nil // a folder that cannot be synced, as one of procfs or of a read-only disk on which something is mounted, names what it always did
	}
	return err
}

// unmade is true when a Put could make the directory: the parent is there, and in it not even a link of that name.
func (t *target) unmade() bool {
	parent, err := openDir(filepath.Dir(t.path))
	if err != nil {
		return false
	}
	defer func() { _ = parent.Close() }() // it was only looked through
	_, err = parent.Lstat(filepath.Base(t.path))
	return errors.Is(err, fs.ErrNotExist)
}

func openDir(path string) (*os.Root, error) {
	root, err := os.OpenRoot(path)
	if err == nil {
		return root, nil
	}
	if info, statErr := os.Stat(path); statErr == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR} // os.Root hides the errno
	}
	return nil, err
}
