package sqlcircuit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/circuit"
)

func envIn(dir string) circuit.Env { return circuit.Env{Dir: dir} }

// stopped returns a live directory at step 3 as a crash leaves it: with a WAL that was never folded.
func stopped(t *testing.T) (string, Config) {
	t.Helper()
	dir, cfg := t.TempDir(), ingestConfig(NDJSON)
	r := open(t, dir, cfg)
	for _, text := range []string{`{"k":1}`, `{"k":2}`, `{"k":3}`} {
		if _, err := r.send(t, circuit.Batch{Body: body(text)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, cfg
}

func TestInspectReadsTheStepAndChangesNoByte(t *testing.T) {
	dir, cfg := stopped(t)
	stamp := func() string {
		text, err := sumDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			text += info.ModTime().String() + info.Mode().String()
		}
		return text
	}
	before := stamp()
	if !strings.Contains(before, walName) {
		t.Fatal("there is no WAL to read")
	}
	live, err := newCircuit(t, cfg).Inspect(t.Context(), dir)
	if err != nil || live != (circuit.Live{Exists: true, Exact: true, Step: 3}) {
		t.Fatalf("%+v, %v", live, err)
	}
	if after := stamp(); after != before {
		t.Fatalf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestInspectTellsNothingFromDamage(t *testing.T) {
	dir, cfg := stopped(t)
	c := newCircuit(t, cfg)
	main := filepath.Join(dir, mainName)
	for _, row := range []struct {
		name    string
		change  func() error
		damaged bool
	}{
		{"no state.db", func() error { return os.Remove(main) }, false},
		{"an empty state.db: the very first start was cut short", func() error { return os.WriteFile(main, nil, 0o600) }, false},
		{"no database", func() error { return os.WriteFile(main, []byte(strings.Repeat("garbage ", 1000)), 0o600) }, true},
	} {
		if err := errors.Join(row.change(), os.RemoveAll(filepath.Join(dir, walName))); err != nil {
			t.Fatal(err)
		}
		live, err := c.Inspect(t.Context(), dir)
		if live.Exists || errors.Is(err, circuit.ErrDamaged) != row.damaged || !row.damaged && err != nil {
			t.Errorf("%s: %+v, %v", row.name, live, err)
		}
	}
}

// CASES A5
func TestInspectFindsATruncatedDatabase(t *testing.T) {
	dir, cfg := stopped(t)
	if err := errors.Join(os.Truncate(filepath.Join(dir, mainName), 5000), os.Remove(filepath.Join(dir, walName))); err != nil {
		t.Fatal(err)
	}
	if _, err := newCircuit(t, cfg).Inspect(t.Context(), dir); !errors.Is(err, circuit.ErrDamaged) {
		t.Fatal(err)
	}
}

func TestInspectRefusesADatabaseThatIsInUse(t *testing.T) {
	dir, cfg := stopped(t)
	r := open(t, dir, cfg)
	if _, err := newCircuit(t, cfg).Inspect(t.Context(), dir); err == nil || errors.Is(err, circuit.ErrDamaged) {
		t.Fatal(err)
	}
	if _, err := r.send(t, circuit.Batch{Body: body(`{"k":4}`)}); err != nil {
		t.Fatal(err)
	}
}

// checkpointOf writes one checkpoint of a circuit.
func checkpointOf(t *testing.T, c *Circuit) string {
	t.Helper()
	s, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	dir := t.TempDir()
	if err := s.Write(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestARestoreThatCannotBeRightLeavesNoLiveState(t *testing.T) {
	dir, cfg := stopped(t)
	r := open(t, dir, cfg)
	other := cfg
	other.Schema += ";CREATE TABLE u (x)"
	for _, row := range []struct {
		name   string
		c      *Circuit
		change func(t *testing.T, checkpoint, to string) error
		want   error
	}{
		{"of another schema", newCircuit(t, other), func(*testing.T, string, string) error { return nil }, ErrFingerprint},
		{"with a WAL cut short", r.Circuit, func(_ *testing.T, checkpoint, _ string) error {
			return os.Truncate(filepath.Join(checkpoint, walName), 6000)
		}, circuit.ErrDamaged},
		{"with a flipped bit in the WAL", r.Circuit, func(_ *testing.T, checkpoint, _ string) error {
			path := filepath.Join(checkpoint, walName)
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			data[5000] ^= 1
			return errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, data, 0o600))
		}, circuit.ErrDamaged},
		{"without state.db", r.Circuit, func(_ *testing.T, checkpoint, _ string) error {
			return os.Remove(filepath.Join(checkpoint, mainName))
		}, os.ErrNotExist},
	} {
		t.Run(row.name, func(t *testing.T) {
			checkpoint, to := checkpointOf(t, r.Circuit), t.TempDir()
			if err := row.change(t, checkpoint, to); err != nil {
				t.Fatal(err)
			}
			if err := row.c.Restore(t.Context(), checkpoint, to); !errors.Is(err, row.want) {
				t.Fatal(err)
			}
			if live, err := row.c.Inspect(t.Context(), to); live.Exists || err != nil {
				t.Fatalf("%+v, %v", live, err)
			}
			if err := r.Restore(t.Context(), checkpointOf(t, r.Circuit), to); err != nil {
				t.Fatalf("a good restore after it: %v", err)
			}
		})
	}
}

func TestRestoreNeverOverwritesALiveState(t *testing.T) {
	dir, cfg := stopped(t)
	r := open(t, t.TempDir(), cfg)
	if err := r.Restore(t.Context(), checkpointOf(t, r.Circuit), dir); err == nil || !strings.Contains(err.Error(), "holds a live state already") {
		t.Fatal(err)
	}
}

func TestASnapshotOutlivesItsCircuitWithoutHarm(t *testing.T) {
	dir, cfg := stopped(t)
	r := open(t, dir, cfg)
	s, err := r.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), t.TempDir()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("write after Close: %v", err)
	}
	s.Release()
	s.Release()
	if live, err := r.Inspect(t.Context(), dir); err != nil || live.Step != 3 {
		t.Errorf("%+v, %v", live, err)
	}
}
