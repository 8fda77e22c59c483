package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// checkManifest holds for every manifest that is written and every one that is read, wherever it came from.
func checkManifest(m Manifest) error {
	if err := checkID(m.ID); err != nil {
		return err
	}
	if m.Kind == "" {
		return errors.New("the circuit's kind is empty")
	}
	return checkFiles(m.Files)
}

// checkFiles demands ascending paths, so that there are no two of one name, and none that is another's directory.
func checkFiles(files []File) error {
	names := make(map[string]struct{}, len(files))
	for i, f := range files {
		if err := checkFile(f); err != nil {
			return err
		}
		if i > 0 && files[i-1].Path >= f.Path {
			return fmt.Errorf("file %q is listed twice or out of order", f.Path)
		}
		names[f.Path] = struct{}{}
	}
	for _, f := range files {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if _, clash := names[dir]; clash {
				return fmt.Errorf("file %q lies below file %q", f.Path, dir)
			}
		}
	}
	return nil
}

func checkFile(f File) error {
	if err := checkPath(f.Path); err != nil {
		return err
	}
	if f.Mode&^fs.ModePerm != 0 {
		return fmt.Errorf("file %q has mode %v; only permission bits are kept", f.Path, f.Mode)
	}
	if f.Size < 0 {
		return fmt.Errorf("file %q has size %d", f.Path, f.Size)
	}
	if want := chunkCount(f.Size); int64(len(f.Chunks)) != want {
		return fmt.Errorf("file %q has %d chunks, its size of %d bytes makes %d", f.Path, len(f.Chunks), f.Size, want)
	}
	return nil
}

func chunkCount(size int64) int64 {
	count := size / ChunkSize
	if size%ChunkSize != 0 {
		count++
	}
	return count
}

// checkPath keeps restores inside their directory: relative, clean, no "..", no NUL. A backslash is a letter like others.
func checkPath(p string) error {
	switch {
	case p == "" || p == ".":
		return errors.New("a file has an empty path")
	case strings.HasPrefix(p, "/"):
		return fmt.Errorf("path %q is absolute", p)
	case p == ".." || strings.HasPrefix(p, "../"):
		return fmt.Errorf("path %q leaves the checkpoint", p)
	case path.Clean(p) != p:
		return fmt.Errorf("path %q is not clean", p)
	case strings.ContainsRune(p, 0):
		return fmt.Errorf("path %q holds a NUL", p)
	}
	return nil
}
