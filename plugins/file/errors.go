package main

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/cairnsync/cairn/sdk"
)

// errClash is a key that is also a folder of other keys, in either order: a file system cannot hold both.
var errClash = errors.New("another object's key is a folder of this one, or this one of it")

// errLink is a symbolic link, a pipe or the like where an object or a folder should be.
var errLink = errors.New("not a regular file or directory")

// errNFS is a key that the file target cannot tell from a leftover of an NFS client.
var errNFS = errors.New("names that begin with " + nfsPrefix + " belong to NFS clients")

// failed gives err the code that the host acts on. An *sdk.Error has one and is only told what was being done.
func failed(op, key string, err error) error {
	if e, ok := err.(*sdk.Error); ok {
		told := *e
		told.Op, told.Key = op, key
		return &told
	}
	code := classify(err)
	return &sdk.Error{Code: code, Op: op, Key: key, Provider: errnoName(err), Hint: hint(code, err), Err: err}
}

// classify is the table of errno and code. ENOENT is not in it: what is missing decides (see rootError and Get), and where it is
// neither the root nor the key, something was removed from under the call, which passes.
func classify(err error) sdk.Code {
	switch {
	case errors.Is(err, errClash), errors.Is(err, errLink), errors.Is(err, errNFS):
		return sdk.Unsupported
	case errors.Is(err, errUnmade):
		return sdk.NotFound
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return sdk.CodeOf(err)
	}
	switch errno {
	case syscall.ENOSPC, syscall.EDQUOT:
		return sdk.NoSpace
	case syscall.EACCES, syscall.EPERM, syscall.EROFS:
		return sdk.PermissionDenied
	case syscall.ENAMETOOLONG, syscall.EFBIG, syscall.ENOTSUP, syscall.ENOSYS, syscall.EMLINK, syscall.ELOOP, syscall.EXDEV:
		return sdk.Unsupported
	case syscall.ENOENT, syscall.EIO, syscall.ESTALE, syscall.ENODEV, syscall.ENXIO, syscall.ENOTCONN, syscall.ETIMEDOUT,
		syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.ECONNREFUSED, syscall.ECONNRESET,
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EBUSY, syscall.EINTR:
		return sdk.Unavailable
	}
	return sdk.Internal
}

func hint(code sdk.Code, err error) string {
	switch {
	case errors.Is(err, errClash):
		return "choose prefixes of which none is a folder of another"
	case errors.Is(err, errLink):
		return "the file target follows no links below its directory; mount (or bind-mount) there what shall lie elsewhere"
	case code == sdk.NoSpace:
		return "free space on the file system of the target, or raise its quota"
	case code == sdk.PermissionDenied:
		return "let the user that runs cairn read and write the target directory and all below it; is it mounted read-only?"
	}
	return ""
}

func errnoName(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	return fmt.Sprintf("errno %d", int(errno))
}

// rootError is what it means that the target's directory itself cannot be opened. It is never "not found": an unmounted disk must not
// look like an empty store.
func rootError(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &sdk.Error{
			Code: sdk.Unavailable, Err: fmt.Errorf("the target directory is missing: %w", err),
			Hint: "is its disk mounted? If the target is new: mkdir -p " + path,
		}
	case errors.Is(err, syscall.ENOTDIR):
		return &sdk.Error{Code: sdk.InvalidConfig, Attribute: "path", Err: err, Hint: "give the path of a directory"}
	}
	return err
}

// makeError is what it means that the target's directory cannot be made, or not durably.
func makeError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return rootError(path, err)
	}
	e := &sdk.Error{Code: classify(err), Provider: errnoName(err), Err: fmt.Errorf("the target directory cannot be made: %w", err)}
	if e.Hint = hint(e.Code, err); e.Code == sdk.PermissionDenied {
		e.Hint = "mkdir -p " + path + ", and let the user that runs cairn read and write it"
	}
	return e
}

// linkError is a refused link(2), which is how an object is created only if it is absent.
func linkError(err error) error {
	for _, unable := range []syscall.Errno{syscall.EPERM, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EXDEV} {
		if errors.Is(err, unable) {
			return &sdk.Error{
				Code: sdk.Unsupported, Err: err,
				Hint: "this file system has no hard links, so two writers cannot be kept apart; put the target on one that has (ext4, XFS, Btrfs, ZFS, NFS)",
			}
		}
	}
	return err
}

// absent is true when the error proves that there is no such file: its name, or a directory on the way, does not exist.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
