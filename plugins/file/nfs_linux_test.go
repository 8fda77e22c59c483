package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An NFS client that is asked to remove a file which is still open renames it to .nfs… and keeps it. So nothing of a Put is open any more
// when the temporary name goes: seen from the sync of the directory, which comes next.
func TestTheTemporaryFileIsClosedBeforeItsNameIsRemoved(t *testing.T) {
	for _, ifAbsent := range []bool{false, true} {
		dir := t.TempDir()
		target := openTarget(t, dir)
		put(t, target, "a/known")
		looked := false
		target.sync = func(f *os.File) error {
			if info, err := f.Stat(); err == nil && info.IsDir() {
				looked = true
				wantNothingOpenIn(t, filepath.Join(dir, "a")+"/")
			}
			return nil
		}
		req := request("a/k", "x")
		req.IfAbsent = ifAbsent
		if _, err := target.Put(t.Context(), req); err != nil || !looked {
			t.Errorf("if absent %t: looked %t, %v", ifAbsent, looked, err)
		}
	}
}

func wantNothingOpenIn(t *testing.T, prefix string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(name, prefix) {
			t.Errorf("still open: %s", name)
		}
	}
}
