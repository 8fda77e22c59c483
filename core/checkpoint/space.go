package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// FullError says that a disk, or a quota on it, had no room for what was to be written.
type FullError struct {
	Path string // on that disk
	Err  error  // what was written, and the system's answer
}

func (e *FullError) Error() string {
	return fmt.Sprintf("%v: the disk of %s is full: free some space there", e.Err, e.Path)
}

// Unwrap gives the cause.
func (e *FullError) Unwrap() error { return e.Err }

// Explain gives err, met in writing to path, the remedy for a full disk when that is what it comes from. Any other error, nil among them, stays
// as it is.
func Explain(path string, err error) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	if told := (*FullError)(nil); errors.As(err, &told) {
		return err
	}
	return &FullError{Path: path, Err: err}
}

// Unwritable gives err, met in making something anew, the remedy for a place where this user can make nothing, or where a file stands in the way,
// when that is what it comes from. Any other error, nil among them, stays as it is.
func Unwritable(err error) error {
	switch {
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("nothing can be written there: %w: name a folder on a file system, and below a folder, that this user may write to", err)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("a file stands where a folder is needed: %w: name another folder", err)
	}
	return err
}
