package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Options are what a Dir takes from outside.
type Options struct {
	// Now is the wall clock that ids are minted by. Required.
	Now func() time.Time

	// Hook, nil in production, is called at each named point of the durable changes, so that tests can crash there:
	// publish.files-synced, publish.manifest-written, publish.manifest-synced, publish.gave-way, publish.renamed, publish.synced,
	// collect.marked, collect.renamed, collect.synced, collect.removed, aside.copied,
	// aside.moved.
	Hook func(point string)
}

// Dir is one pipeline's storage path, locked to this process.
type Dir struct {
	path  string
	disk  disk
	lock  *os.File
	store *Store
}

// OpenDir makes the storage path where it is missing (mode 0700, durably), locks it and removes what a crash left half-written. A
// path that another process holds is a *LockedError. Close releases the lock.
func OpenDir(path string, o Options) (*Dir, error) { return openDir(path, o, realDisk{}) }

func openDir(path string, o Options, d disk) (*Dir, error) {
	if o.Now == nil {
		return nil, errors.New("open storage path: Options.Now is nil")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open storage path: %w", err)
	}
	if err := makeDirs(d, path); err != nil {
		return nil, fmt.Errorf("open storage path: %w", Unwritable(err))
	}
	lock, err := takeLock(path)
	if err != nil {
		return nil, Unwritable(err)
	}
	dir := &Dir{path: path, disk: d, lock: lock}
	if err := dir.prepare(o); err != nil {
		lock.Close()
		return nil, fmt.Errorf("open storage path %s: %w", path, err)
	}
	return dir, nil
}

// prepare runs under the lock.
func (d *Dir) prepare(o Options) error {
	checkpoints, jobs := filepath.Join(d.path, "checkpoints"), filepath.Join(d.path, "sync")
	for _, sub := range []string{checkpoints, jobs} {
		if err := makeDirs(d.disk, sub); err != nil {
			return err
		}
	}
	for _, dir := range []string{d.path, checkpoints, jobs} {
		if err := sweep(dir, isTemp); err != nil {
			return err
		}
	}
	store, err := openStore(checkpoints, o, d.disk)
	d.store = store
	return err
}

// Close releases the lock. Drafts and pins of the Dir must not be used afterwards.
func (d *Dir) Close() error {
	// Not by closing alone: a process that is just being forked holds the file too, until it execs.
	return errors.Join(unlockFile(d.lock), d.lock.Close())
}

// State is the circuit's live directory. OpenDir does not make it.
func (d *Dir) State() string { return filepath.Join(d.path, "state") }

// SyncFile is where the syncer keeps its records of a target, whose name is one path segment; the directory exists.
func (d *Dir) SyncFile(target string) string { return filepath.Join(d.path, "sync", target+".json") }

// Checkpoints is the store of this path's checkpoints.
func (d *Dir) Checkpoints() *Store { return d.store }

// sweep removes the entries of dir whose name is garbage.
func sweep(dir string, garbage func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	for _, e := range entries {
		if !garbage(e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("sweep leftovers of a crash: %w", err)
		}
	}
	return nil
}
