package repository

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// The longest path and segment in bytes that Linux file systems take (PATH_MAX less its NUL, NAME_MAX).
const (
	MaxPath    = 4095
	MaxSegment = 255
)

// CheckPath accepts what may be the path of a file in a checkpoint: relative, clean, below its root, of any bytes but NUL. It is asked when
// a commit is written and again when it is read, so no commit can name a file outside a restore's directory.
func CheckPath(p string) error {
	switch {
	case p == "":
		return fmt.Errorf("empty path")
	case len(p) > MaxPath:
		return fmt.Errorf("path of %d bytes: at most %d", len(p), MaxPath)
	case strings.IndexByte(p, 0) >= 0:
		return fmt.Errorf("path %q: NUL byte", p)
	case p[0] == '/':
		return fmt.Errorf("path %q: absolute", p)
	case p == "." || path.Clean(p) != p:
		return fmt.Errorf("path %q: not clean", p)
	}
	for segment := range strings.SplitSeq(p, "/") {
		if segment == ".." {
			return fmt.Errorf("path %q: leaves its directory", p)
		}
		if len(segment) > MaxSegment {
			return fmt.Errorf("path %q: a segment of %d bytes, at most %d", p, len(segment), MaxSegment)
		}
	}
	return nil
}

// checkFiles asks that files are in strictly ascending order, and that no file is another file's folder.
func checkFiles(files []File) error {
	folders := make(map[string]struct{})
	for i, f := range files {
		if err := CheckPath(f.Path); err != nil {
			return err
		}
		if i > 0 && f.Path <= files[i-1].Path {
			return fmt.Errorf("path %q: out of order or given twice", f.Path)
		}
		if f.Mode != f.Mode&fs.ModePerm {
			return fmt.Errorf("path %q: mode %v: only permission bits of a regular file", f.Path, f.Mode)
		}
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			folders[dir] = struct{}{}
		}
	}
	for _, f := range files {
		if _, clash := folders[f.Path]; clash {
			return fmt.Errorf("path %q: both a file and a folder", f.Path)
		}
	}
	return nil
}
