// Package wipe removes folders that a plugin could write to: its private one (core/pluginhost) and the spool (core/syncer). os.RemoveAll is
// made for honest trees. It holds a descriptor open for each level on the way down, so that a nest of 20,000 folders takes all the
// descriptors of the host and is not removed; it stops at a folder whose mode keeps even its owner out; and it ends when nobody writes there
// any more. Tree needs three descriptors at any depth, opens what was closed and can be stopped.
//
// It starts no goroutine and keeps no state.
package wipe

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// batch is how many names of a folder are read at a time.
const batch = 1000

// ErrStopped says that stop came first. What was removed by then is gone; another call goes on.
var ErrStopped = errors.New("stopped before everything was removed")

// Tree removes path and everything in it, as os.RemoveAll does: what does not exist is removed already, and a link is removed, not followed.
// It ends with ErrStopped when stop is closed; nil = never.
func Tree(path string, stop <-chan struct{}) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && info.IsDir():
		err = inside(path, stop)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return os.Remove(path)
}

// inside empties a folder, pass by pass: each takes its files and empty folders, and lifts what lies in the others up into the folder itself.
// So a nest loses a level with each pass, and nobody has to walk down into it.
func inside(path string, stop <-chan struct{}) error {
	if err := os.Chmod(path, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing was written through it
	for {
		names, err := some(root, ".")
		if err != nil || len(names) == 0 {
			return err
		}
		done := 0
		for _, name := range names {
			select {
			case <-stop:
				return ErrStopped
			default:
			}
			if failed := removeOrLift(root, name); failed == nil {
				done++
			} else {
				err = failed
			}
		}
		if done == 0 {
			return err
		}
	}
}

// removeOrLift removes one entry of root; from a folder that is not empty it lifts a batch of what it holds.
func removeOrLift(root *os.Root, name string) error {
	err := root.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if info, seen := root.Lstat(name); seen != nil || !info.IsDir() {
		return err
	}
	if err := root.Chmod(name, 0o700); err != nil {
		return err
	}
	inner, err := some(root, name)
	if err != nil {
		return err
	}
	for _, one := range inner {
		if err := lift(root, name+"/"+one); err != nil {
			return err
		}
	}
	return nil
}

// lift removes what lies at a path of two names or, when that is a folder with something in it, gives it a name in root that nobody has thought of.
func lift(root *os.Root, path string) error {
	err := root.Remove(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if info, seen := root.Lstat(path); seen != nil || !info.IsDir() {
		return err
	}
	if err := root.Chmod(path, 0o700); err != nil { // a folder is moved by changing its own entry for the one above
		return err
	}
	return root.Rename(path, rand.Text())
}

// some reads at most a batch of the names in a folder.
func some(root *os.Root, name string) ([]string, error) {
	dir, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(batch)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}
