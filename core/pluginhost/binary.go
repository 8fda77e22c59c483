package pluginhost

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// image is the private copy of a plugin's file, the one that is executed. The sum is that of the bytes as they were written to the copy:
// replacing or rewriting the original after any check changes nothing.
type image struct {
	path   string
	sha256 [32]byte
}

// copyImage copies the file of spec into dir and checks it on the way. A failure is a *StartError, or ctx's own error.
func copyImage(ctx context.Context, spec Spec, dir string) (image, error) {
	f, err := openRegular(spec.Path)
	if err != nil {
		return image{}, unopenable(spec.Path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return image{}, &StartError{Path: spec.Path, What: "cannot be examined", Err: err}
	}
	if err := checkImage(spec.Path, info); err != nil {
		return image{}, err
	}
	if !spec.Dev {
		if err := checkTrust(spec.Path, os.Geteuid()); err != nil {
			return image{}, err
		}
	}
	img := image{path: filepath.Join(dir, filepath.Base(spec.Path))}
	if img.sha256, err = writeImage(ctx, f, img.path); err != nil {
		return image{}, uncopied(ctx, spec.Path, err)
	}
	return img, img.verify(spec)
}

// maxImage is more than any plugin has, and little enough for the disk of the states, on which its copy is written.
const maxImage = 1 << 30

// checkImage refuses what no copy is worth making of.
func checkImage(path string, info fs.FileInfo) error {
	switch {
	case info.Mode().Perm()&0o111 == 0:
		return &StartError{
			Cause: CauseNotRunnable, Path: path,
			What:   fmt.Sprintf("is not executable (mode %04o)", info.Mode().Perm()),
			Remedy: "chmod +x " + path,
		}
	case info.Size() > maxImage:
		return &StartError{
			Cause: CauseNotRunnable, Path: path,
			What:   fmt.Sprintf("has %d bytes; a plugin of more than %d is not copied", info.Size(), maxImage),
			Remedy: "point the path at the plugin's binary",
		}
	}
	return nil
}

func (img image) verify(spec Spec) error {
	if spec.Checksum == "" || spec.Dev {
		return nil
	}
	want, err := parseChecksum(spec.Checksum)
	if err != nil {
		return &StartError{Cause: CauseChecksum, Path: spec.Path, What: "cannot be checked", Err: err}
	}
	if want != img.sha256 {
		return &StartError{
			Cause: CauseChecksum, Path: spec.Path,
			What:   fmt.Sprintf("has the checksum %s, the configuration wants %s", formatChecksum(img.sha256), spec.Checksum),
			Remedy: "find out who changed the file; if it was you, set the new checksum",
		}
	}
	return nil
}

func uncopied(ctx context.Context, path string, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &StartError{Cause: CauseTimeout, Path: path, What: "could not be copied in time", Remedy: "look at the disks it lies on and is copied to"}
	case ctx.Err() != nil:
		return fmt.Errorf("copy plugin %s: %w", path, ctx.Err())
	}
	return &StartError{Path: path, What: "its private copy cannot be written", Err: err, Remedy: "make room or choose another directory: " + whereRuntimeDir}
}

// writeImage makes a file that only this user can touch. It is never written again, so executing it meets no open writer of ours but
// the copy of the descriptor that a fork elsewhere in the host holds for an instant; startCommand waits for that.
func writeImage(ctx context.Context, src io.Reader, path string) (sum [32]byte, err error) {
	dst, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return sum, err
	}
	digest := sha256.New()
	_, err = io.Copy(io.MultiWriter(dst, digest), contextReader{ctx, src})
	return [32]byte(digest.Sum(nil)), errors.Join(err, dst.Close())
}

type contextReader struct {
	ctx context.Context
	src io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.src.Read(p)
}

func unopenable(path string, err error) error {
	e := &StartError{Cause: CauseNotRunnable, Path: path, Err: errors.Unwrap(err)}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Cause, e.What, e.Err = CauseNotFound, "there is no such file", nil
		e.Remedy = "install the plugin there (in Cairn's source tree, `make build` makes all four), or set plugin_dir or the path in its plugin block"
	case errors.Is(err, syscall.ENOTDIR):
		e.Cause, e.What, e.Err = CauseNotFound, "there is no such file: a part of its path is no directory", nil
		e.Remedy = "set plugin_dir or the path in its plugin block to where the plugin is"
	case errors.Is(err, syscall.ELOOP):
		e.Cause, e.What, e.Err = CauseNotFound, "there is no such file: a symbolic link on its path leads back to itself", nil
		e.Remedy = "mend the link, or set plugin_dir or the path in its plugin block to where the plugin is"
	case errors.Is(err, fs.ErrPermission):
		e.What, e.Remedy = "cannot be read", "let the user that runs cairn read and execute it"
	case errors.Is(err, errNotRegular):
		e.What, e.Err, e.Remedy = "is not a regular file", nil, "point the path at the plugin's binary"
	default:
		e.Cause, e.What = CauseOther, "cannot be opened"
	}
	return e
}
