package checkpoint

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"
)

// TestMain lets the test binary play the process that is killed: see crash_test.go.
func TestMain(m *testing.M) {
	if point := os.Getenv("CHECKPOINT_CRASH_POINT"); point != "" {
		crashChild(point, os.Getenv("CHECKPOINT_CRASH_DIR"), os.Getenv("CHECKPOINT_CRASH_SCRIPT"))
		os.Exit(3) // it was to die before
	}
	goleak.VerifyTestMain(m)
}

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 345, time.UTC) }

func options() Options { return Options{Now: noon} }

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := OpenDir(path, options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
}

func metaAt(step uint64) Meta {
	return Meta{
		Step: step, Created: noon(), Incarnation: uuid.UUID{0: 9}, Kind: "sql", Fingerprint: [32]byte{1, 2, 3},
		History: History{{Lineage: uuid.UUID{0: 7}, UpTo: step}},
	}
}

func publish(t *testing.T, s *Store, step uint64, files map[string]string) Manifest {
	t.Helper()
	d, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	write(t, d.Dir(), files)
	m, err := d.Publish(t.Context(), metaAt(step))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func list(t *testing.T, s *Store) []Manifest {
	t.Helper()
	all, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func steps(all []Manifest) []uint64 {
	var s []uint64
	for _, m := range all {
		s = append(s, m.Step)
	}
	return s
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func verifyPinned(ctx context.Context, p *Pinned) error { return Verify(ctx, p.Dir(), p.Manifest()) }

func killSelf() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	panic("SIGKILL returned")
}
