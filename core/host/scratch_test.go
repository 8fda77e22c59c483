package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A command that is killed, or whose output nobody reads any more, cannot remove its folder, which may hold a plugin's copy and a gigabyte of bodies.
func TestTheScratchFolderOfADeadCommandIsRemovedByTheNext(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	made := func() *scratch {
		s, err := newScratch()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(s.path, "run", "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		return s
	}
	foreign := filepath.Join(dir, "cairn-foreign")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	alive, dead := made(), made()
	if err := dead.mark.Close(); err != nil { // as the kernel does for a process that ends
		t.Fatal(err)
	}
	next := made()
	for path, stays := range map[string]bool{foreign: true, alive.path: true, dead.path: false, next.path: true} {
		if _, err := os.Lstat(path); (err == nil) != stays {
			t.Errorf("%s: %v; it should stay: %v", path, err, stays)
		}
	}
	for _, s := range []*scratch{alive, next} {
		if err := s.remove(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("there is left %v, %v", left, err)
	}
}

func TestAFileSystemWithoutLocksIsNamedWithTheRemedy(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for _, refused := range []error{syscall.ENOLCK, syscall.ENOTSUP, syscall.ENOSYS} {
		tried := 0
		s, err := newScratchBy(func(int, int) error {
			if tried++; tried > 3 {
				t.Fatal("it is tried without end")
			}
			return refused
		})
		if s != nil || !errors.Is(err, refused) || !strings.Contains(err.Error(), "set TMPDIR to a folder on a file system that supports flock") {
			t.Errorf("%v: got %v, %v", refused, s, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("there is left %v, %v", left, err)
	}
}
