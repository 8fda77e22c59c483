package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"
)

// call does one call's work in the target's directory, which open opens, and gives an error its code. A dead ctx touches nothing. The first call that
// goes well has the sweep begin.
func (t *target) call(ctx context.Context, op, key string, open func() (*os.Root, error), work func(root *os.Root) error) error {
	if err := ctx.Err(); err != nil {
		return failed(op, key, err)
	}
	root, err := open()
	if err != nil {
		return failed(op, key, err)
	}
	defer func() { _ = root.Close() }() // it was only looked through
	if err := work(root); err != nil {
		return failed(op, key, err)
	}
	t.sweeper.begin(t)
	return nil
}

// stillThere tells a key that does not exist from a store that does not: the directory may have been removed or unmounted since the
// call opened it.
func (t *target) stillThere(root *os.Root) error {
	opened, err := root.Stat(".")
	if err != nil {
		return rootError(t.path, err)
	}
	now, err := os.Stat(t.path)
	if err == nil && !os.SameFile(opened, now) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return rootError(t.path, err)
	}
	return nil
}

// makeDir makes the directory dir (of a key, so relative and clean) and those above it, durably.
func (t *target) makeDir(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	info, err := root.Lstat(dir)
	if err == nil && t.dirs.known(dir, info) {
		return nil
	}
	if err := t.makeDir(root, path.Dir(dir)); err != nil {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := root.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err = root.Lstat(dir)
	}
	switch {
	case err != nil:
		return err
	case info.Mode().IsRegular():
		return errClash
	case !info.IsDir():
		return fmt.Errorf("%s: %w", dir, errLink)
	}
	// Also when it was there: another process may have made it a moment ago.
	if err := t.syncDir(root, path.Dir(dir)); err != nil {
		return err
	}
	t.dirs.add(dir, info)
	return nil
}

func (t *target) syncDir(root *os.Root, dir string) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return t.sync(f)
}

// explain finds the reason of an error without errno: os.Root refuses a link that leads out of it.
func (t *target) explain(root *os.Root, key string, err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return err
	}
	for dir := path.Dir(key); dir != "."; dir = path.Dir(dir) {
		if info, statErr := root.Lstat(dir); statErr == nil && !info.IsDir() {
			return fmt.Errorf("%s: %w", dir, errLink)
		}
	}
	return err
}

// durableDirs remembers directories whose names were synced, so that a Put syncs one directory and not the whole path. A directory
// that was removed and made again is another one.
type durableDirs struct {
	mu    sync.Mutex
	infos map[string]fs.FileInfo
}

// maxDurableDirs bounds the memory: each commit has a directory of packs.
const maxDurableDirs = 1024

func (d *durableDirs) known(dir string, info fs.FileInfo) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.infos[dir]
	return ok && os.SameFile(known, info)
}

func (d *durableDirs) add(dir string, info fs.FileInfo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.infos == nil || len(d.infos) >= maxDurableDirs {
		d.infos = map[string]fs.FileInfo{}
	}
	d.infos[dir] = info
}

func (d *durableDirs) forget(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.infos, dir)
}
