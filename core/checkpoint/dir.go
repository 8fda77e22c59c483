package checkpoint

import (
	"time"
)

// Options are what a Dir takes from outside.
type Options struct {
	Now  func() time.Time   // wall clock for minting ids; required
	Hook func(point string) // called at the named points of publication and collection, for crash tests; nil in production
}

// Dir is one pipeline's storage path, locked to this process.
type Dir struct {
	path string
}

// OpenDir makes the storage path where it is missing (mode 0700, durably), locks it and removes what a crash left half-written. A
// path that another process holds is a *LockedError. Close releases the lock.
func OpenDir(path string, o Options) (*Dir, error) { panic("being built") }

// Close releases the lock. Drafts and pins of the Dir must not be used afterwards.
func (d *Dir) Close() error { panic("being built") }

// State is the circuit's live directory. OpenDir does not make it.
func (d *Dir) State() string { panic("being built") }

// SyncFile is where the syncer keeps its records of a target.
func (d *Dir) SyncFile(target string) string { panic("being built") }

// Checkpoints is the store of this path's checkpoints.
func (d *Dir) Checkpoints() *Store { panic("being built") }

// ReplaceFile gives path the content data, atomically and durably: temporary file, sync, rename, sync of the directory. The
// directory must exist. The file's mode is 0600.
func ReplaceFile(path string, data []byte) error { panic("being built") }
