package sqlcircuit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/cairnsync/cairn/core/circuit"
)

func TestEveryWayInWhichSQLiteTellsOfAFullDiskIsUnderstood(t *testing.T) {
	for _, row := range []struct {
		err  error
		want bool
	}{
		{&sqliteError{code: sqlite3.SQLITE_FULL}, true},
		{&sqliteError{code: sqlite3.SQLITE_IOERR_FSYNC, errno: syscall.ENOSPC}, true},
		{&sqliteError{code: sqlite3.SQLITE_IOERR_SHMSIZE, errno: syscall.EDQUOT}, true},
		{&sqliteError{code: sqlite3.SQLITE_CANTOPEN, errno: syscall.ENOSPC}, true},
		{&sqliteError{code: sqlite3.SQLITE_IOERR_WRITE, errno: syscall.EIO}, false},
		{&sqliteError{code: sqlite3.SQLITE_CORRUPT}, false},
		{errors.New("full"), false},
	} {
		wrapped := fmt.Errorf("commit: %w", row.err)
		if got := full(wrapped); got != row.want {
			t.Errorf("%+v: %v", row.err, got)
		}
		if row.want && refuses(wrapped) {
			t.Errorf("%+v is taken for the record's fault", row.err)
		}
	}
}

func TestABatchThatFindsTheDiskFullIsNotAcknowledgedAndCountsOnceWhenItComesAgain(t *testing.T) {
	r := open(t, t.TempDir(), fatConfig())
	if _, err := r.writer.integers("PRAGMA max_page_count = 20"); err != nil {
		t.Fatal(err)
	}
	batch := func() circuit.Batch { return circuit.Batch{Source: "s", Seq: 1, Body: body("1\n2\n")} }
	refused := make(chan error, 1)
	go func() {
		_, err := r.Ingest(t.Context(), "in", batch())
		refused <- err
	}()
	for r.Facts().Buffered == 0 {
		<-r.woken
	}
	if _, err := r.Step(t.Context()); !errors.Is(err, circuit.ErrNoSpace) {
		t.Fatalf("step: %v", err)
	}
	if err := <-refused; !errors.Is(err, circuit.ErrNoSpace) {
		t.Fatalf("batch: %v", err)
	}
	wantRows(t, r.Circuit, "SELECT count(*) FROM t", "0")
	if at, err := r.Position(t.Context(), "in", "s"); at != 0 || err != nil {
		t.Fatalf("position %d, %v", at, err)
	}
	if _, err := r.writer.integers("PRAGMA max_page_count = 100000"); err != nil {
		t.Fatal(err)
	}
	for _, again := range []bool{false, true} {
		if got, err := r.send(t, batch()); err != nil || got.Duplicate != again {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	wantRows(t, r.Circuit, "SELECT count(*) FROM t", "2")
}

// The copy that a checkpoint begins with needs as much room as the database. What the circuit keeps of an older one, and cannot use any more, must
// not stand in its way.
func TestACopyOfNoUseIsGoneBeforeTheNextIsMade(t *testing.T) {
	r := open(t, t.TempDir(), fatConfig())
	r.fatten(t, 2)
	first := t.TempDir()
	writeSnapshot(t, r.Circuit, first)
	if _, err := os.Lstat(r.files.base); err != nil {
		t.Fatal(err)
	}
	r.wal.mu.Lock()
	r.wal.epoch++ // as a fold does
	r.wal.mu.Unlock()
	s, err := r.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	if err := s.Write(t.Context(), filepath.Join(first, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("write: %v", err)
	}
	if _, err := os.Lstat(r.files.base); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old copy is still there: %v", err)
	}
	writeSnapshot(t, r.Circuit, t.TempDir())
}

func writeSnapshot(t *testing.T, c *Circuit, dir string) {
	t.Helper()
	s, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	if err := s.Write(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
}
