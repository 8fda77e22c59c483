package pluginhost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestARuntimeDirectoryTooDeepForASocketIsRefusedWithLimitAndLength(t *testing.T) {
	fits := "/" + strings.Repeat("d", 80)
	if err := CheckRuntimeDir(fits); err != nil {
		t.Errorf("81 bytes: %v", err)
	}
	err := CheckRuntimeDir(fits + strings.Repeat("e", 40))
	if err == nil || !strings.Contains(err.Error(), "has 121 bytes") || !strings.Contains(err.Error(), "at most 81 fit") || !strings.Contains(err.Error(), "data_dir") {
		t.Errorf("got %v", err)
	}
}

func TestARuntimeDirectoryIsPrivateAndLeavesNothing(t *testing.T) {
	parent := filepath.Join(shortDir(t), "run")
	d, err := newRuntimeDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{parent, d.path} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
	if err := d.remove(nil); err != nil {
		t.Error(err)
	}
	wantEmpty(t, parent)
}

func TestARuntimeDirectoryThatOthersMayWriteIsRefused(t *testing.T) {
	parent := shortDir(t)
	if err := os.Chmod(parent, 0o770); err != nil {
		t.Fatal(err)
	}
	if _, err := newRuntimeDir(parent); err == nil || !strings.Contains(err.Error(), "chmod go-w "+parent) {
		t.Errorf("got %v", err)
	}
}

func TestTheSweepTakesWhatDeadHostsLeftAndNothingElse(t *testing.T) {
	for name, dir := range map[string]string{"a plain name": "run", "a name that is a pattern": "[a-b]*?"} {
		t.Run(name, func(t *testing.T) { sweepIn(t, filepath.Join(shortDir(t), dir)) })
	}
}

func sweepIn(t *testing.T, parent string) {
	alive, err := newRuntimeDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.remove(nil)
	dead, err := newRuntimeDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead.path, "socket"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dead.lock.Close() // what the kernel does when a host dies
	if err := os.Mkdir(filepath.Join(parent, "notours1"), 0o700); err != nil {
		t.Fatal(err)
	}
	sweepRuntimeDirs(parent, nil, hclog.NewNullLogger())
	names := namesIn(t, parent)
	want := []string{filepath.Base(alive.path), filepath.Base(alive.path) + lockSuffix, "notours1"}
	for _, name := range want {
		if !strings.Contains(strings.Join(names, " "), name) {
			t.Errorf("%s was swept", name)
		}
	}
	if len(names) != len(want) {
		t.Errorf("left are %v", names)
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	if names := namesIn(t, dir); len(names) > 0 {
		t.Errorf("%s still holds %v", dir, names)
	}
}

// shortDir is a directory with a path short enough for a socket; t.TempDir carries the name of the test.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ph")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
