package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrNone says that the store holds no checkpoint (or not the one asked for) and that this is proven: the directory was read.
var ErrNone = errors.New("no checkpoint")

// ErrCorrupt is what every *CorruptError answers to with errors.Is: data is there but cannot be trusted. It never means "empty".
var ErrCorrupt = errors.New("corrupt")

// LockedError says that another process works on the storage path.
type LockedError struct {
	Path string // the storage path
	PID  int    // of the holder; 0 when unknown
}

func (e *LockedError) Error() string {
	holder := "another process"
	if e.PID > 0 {
		holder = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("lock storage path %s: in use by %s; stop it, or give this pipeline a path of its own", e.Path, holder)
}

// FormatError says that a file was written by a newer Cairn. Nothing was touched.
type FormatError struct {
	Path string
	Got  int // the file's format
	Want int // the newest format this build reads
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("read %s: format %d, this build reads format %d; use the newer cairn that wrote it", e.Path, e.Got, e.Want)
}

// CorruptError names one thing on disk that is damaged or missing.
type CorruptError struct {
	Path   string // file or directory
	Err    error  // what is wrong with it
	Remedy string // what an operator can do; may be empty
}

func (e *CorruptError) Error() string {
	text := fmt.Sprintf("%s is corrupt: %v", e.Path, e.Err)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Unwrap gives the cause and ErrCorrupt.
func (e *CorruptError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }

// RemovedError says that the storage path, or the folder of its checkpoints, was removed, or moved away, while this process had it open: all that a
// circuit does from then on goes into files that have no name any more.
type RemovedError struct{ Path string }

func (e *RemovedError) Error() string {
	return fmt.Sprintf("%s was removed while the host runs on it, so nothing can be saved any more; move it back, or end the host and start it again "+
		"(to go on from what its targets hold, with start_from_checkpoint = \"latest\" in its storage block)", e.Path)
}

// ExplainRemoved gives err, met in working on a storage path, its remedy when that folder is not there any more. Any other error, nil among them, stays as
// it is.
func ExplainRemoved(path string, err error) error {
	if err == nil {
		return nil
	}
	if told := (*RemovedError)(nil); errors.As(err, &told) {
		return err
	}
	if _, gone := os.Stat(path); !errors.Is(gone, fs.ErrNotExist) {
		return err
	}
	return &RemovedError{Path: path}
}
