package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// CASES A5, A17
func TestVerifyFindsEveryKindOfDamageByName(t *testing.T) {
	for name, row := range map[string]struct {
		damage func(dir string) error
		path   string
	}{
		"a flipped byte": {func(d string) error { return os.WriteFile(filepath.Join(d, "sub/b"), []byte("3"), 0o600) }, "sub/b"},
		"a missing file": {func(d string) error { return os.Remove(filepath.Join(d, "sub/b")) }, "sub/b"},
		"a missing tree": {func(d string) error { return os.RemoveAll(filepath.Join(d, "sub")) }, "sub/b"},
		"a shorter file": {func(d string) error { return os.Truncate(filepath.Join(d, "big"), ChunkSize) }, "big"},
		"a longer file":  {func(d string) error { return os.Truncate(filepath.Join(d, "a"), 2) }, "a"},
		"a zeroed file": {func(d string) error {
			return errors.Join(os.Truncate(filepath.Join(d, "a"), 0), os.Truncate(filepath.Join(d, "a"), 1))
		}, "a"},
		"a stray file":       {func(d string) error { return os.WriteFile(filepath.Join(d, "stray"), nil, 0o600) }, "stray"},
		"a planted link":     {func(d string) error { return swapForLink(filepath.Join(d, "a")) }, `"a" is a symbolic link`},
		"a planted dir link": {func(d string) error { return swapForLink(filepath.Join(d, "sub")) }, `"sub" is a symbolic link`},
		"a planted pipe": {func(d string) error {
			return errors.Join(os.Remove(filepath.Join(d, "a")), syscall.Mkfifo(filepath.Join(d, "a"), 0o600))
		}, `"a" is a named pipe`},
		"all gone": {os.RemoveAll, "files"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir()).Checkpoints()
			m := publish(t, s, 1, map[string]string{"a": "1", "sub/b": "2", "big": strings.Repeat("x", 2*ChunkSize)})
			dir := filepath.Join(s.dir(published, m.ID), filesName)
			if err := Verify(t.Context(), dir, m); err != nil {
				t.Fatal(err)
			}
			if err := row.damage(dir); err != nil {
				t.Fatal(err)
			}
			if err := Verify(t.Context(), dir, m); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), row.path) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// swapForLink moves path away and leaves a link to where it went: the content behind the name is the same.
func swapForLink(path string) error {
	away := filepath.Join(filepath.Dir(filepath.Dir(path)), "away")
	return errors.Join(os.Rename(path, away), os.Symlink(away, path))
}

func TestVerifyNamesTenFaultsAndCountsTheRest(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	files := map[string]string{}
	for i := range 25 {
		files[fmt.Sprintf("f%02d", i)] = "x"
	}
	m := publish(t, s, 1, files)
	err := Verify(t.Context(), t.TempDir(), m)
	if !errors.Is(err, ErrCorrupt) || strings.Count(err.Error(), "is missing") != 10 || !strings.Contains(err.Error(), "and 15 more") {
		t.Errorf("got %v", err)
	}
}

func TestVerifyStopsWithItsContext(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	m := publish(t, s, 1, map[string]string{"a": "1"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Verify(ctx, filepath.Join(s.dir(published, m.ID), filesName), m); !errors.Is(err, context.Canceled) || errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}
