package sqlcircuit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cairnsync/cairn/core/circuit"
)

// Names of a restore that has not ended. Nothing looks at them; the next restore or the next start removes them.
const (
	restoringName    = "restoring.db"
	restoringWALName = "restoring.db-wal"
	restoringSHMName = "restoring.db-shm"
)

// Inspect reads the step of the live state in dir and changes no byte there. It takes SQLite's exclusive lock, which also proves that nobody
// else has the database open, and keeps its index of the WAL on the heap instead of in state.db-shm; it does not fold when it ends.
func (c *Circuit) Inspect(_ context.Context, dir string) (circuit.Live, error) {
	path := filepath.Join(dir, mainName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return circuit.Live{}, nil
	} else if err != nil {
		return circuit.Live{}, fmt.Errorf("inspect live state: %w", err)
	}
	h, err := inspectFile(path)
	switch {
	case errors.Is(err, errNoHeader): // the very first start ended before its first commit
		return circuit.Live{}, nil
	case err != nil && (damages(err) || errors.Is(err, errNoRow)):
		return circuit.Live{}, fmt.Errorf("inspect live state %s: %w: %w", path, circuit.ErrDamaged, err)
	case err != nil:
		return circuit.Live{}, fmt.Errorf("inspect live state %s: %w", path, err)
	}
	return circuit.Live{Exists: true, Exact: true, Step: h.step}, nil
}

func inspectFile(path string) (header, error) {
	conn, err := openConn(path, openExisting)
	if err != nil {
		return header{}, err
	}
	defer func() { _ = conn.close() }() // it has written nothing
	if err := conn.exec("PRAGMA wal_autocheckpoint = 0; PRAGMA query_only = 1; PRAGMA locking_mode = EXCLUSIVE"); err != nil {
		return header{}, err
	}
	h, err := readHeader(conn)
	if err != nil {
		return header{}, err
	}
	if h.format > format {
		return header{}, fmt.Errorf("its format is %d, this program knows up to %d: start a newer one", h.format, format)
	}
	return h, nil
}

// Restore copies the checkpoint into dir, opens the copy, never the checkpoint, and makes sure that it is a state of this circuit and that SQLite
// sees every frame of the WAL. Only then do the files get their names, state.db last: a restore that is cut short leaves no live state.
func (c *Circuit) Restore(ctx context.Context, checkpoint, dir string) error {
	if err := c.restore(ctx, checkpoint, dir); err != nil {
		return fmt.Errorf("restore checkpoint %s: %w", checkpoint, err)
	}
	return nil
}

func (c *Circuit) restore(ctx context.Context, checkpoint, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, mainName)); err == nil {
		return fmt.Errorf("%s holds a live state already", dir)
	}
	if err := errors.Join(os.MkdirAll(dir, 0o700), removeLeftovers(dir)); err != nil {
		return err
	}
	if c.faults.openInPlace != nil {
		if err := c.faults.openInPlace(filepath.Join(checkpoint, mainName)); err != nil {
			return err
		}
	}
	frames, err := copyCheckpoint(ctx, checkpoint, dir)
	if err != nil {
		return err
	}
	if err := c.checkRestored(filepath.Join(dir, restoringName), frames); err != nil {
		return errors.Join(err, removeLeftovers(dir))
	}
	return publishRestored(dir)
}

// copyCheckpoint returns the size of the WAL that it copied.
func copyCheckpoint(ctx context.Context, checkpoint, dir string) (walSize int64, err error) {
	for from, to := range map[string]string{mainName: restoringName, walName: restoringWALName} {
		src, err := os.Open(filepath.Join(checkpoint, from))
		if errors.Is(err, fs.ErrNotExist) && from == walName {
			continue
		}
		if err != nil {
			return 0, err
		}
		if from == walName {
			var info fs.FileInfo
			if info, err = src.Stat(); err == nil {
				walSize = info.Size()
			}
		}
		to = filepath.Join(dir, to)
		err = errors.Join(err, copyFile(ctx, src, to, -1))
		src.Close()
		if err == nil {
			err = os.Chmod(to, 0o600)
		}
		if err != nil {
			return 0, err
		}
	}
	return walSize, nil
}

// checkRestored opens the copy. SQLite passes over frames that it does not trust without a word, so they are counted.
func (c *Circuit) checkRestored(path string, walSize int64) error {
	conn, err := openConn(path, openExisting)
	if err != nil {
		return err
	}
	defer func() { _ = conn.close() }() // it has written nothing
	if err := conn.exec("PRAGMA wal_autocheckpoint = 0"); err != nil {
		return err
	}
	h, err := readHeader(conn)
	if err != nil {
		return fmt.Errorf("open the copy: %w", err)
	}
	if err := c.checkHeader(h); err != nil {
		return err
	}
	if walSize == 0 {
		return nil
	}
	page, err := conn.integers("PRAGMA page_size")
	if err != nil {
		return err
	}
	row, err := checkpointWAL(conn, "NOOP")
	if err != nil {
		return err
	}
	if want := walHeader + row.frames*(frameHeader+page[0]); want != walSize {
		return fmt.Errorf("its WAL has %d bytes, of which SQLite accepts %d: %w", walSize, want, circuit.ErrDamaged)
	}
	return nil
}

// checkHeader refuses a state that this configuration must not go on with.
func (c *Circuit) checkHeader(h header) error {
	if h.format > format {
		return fmt.Errorf("the state's format is %d, this program knows up to %d: start a newer one", h.format, format)
	}
	if !bytes.Equal(h.fingerprint, c.identity.Fingerprint[:]) {
		return fmt.Errorf("%w (it is at step %d): go back to the schema and the inputs it was made with, or give the changed pipeline "+
			"another name and storage path", ErrFingerprint, h.step)
	}
	return nil
}

func publishRestored(dir string) error {
	if err := os.Remove(filepath.Join(dir, restoringSHMName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range [][2]string{{restoringWALName, walName}, {restoringName, mainName}} {
		from := filepath.Join(dir, name[0])
		err := syncFile(from)
		if errors.Is(err, fs.ErrNotExist) && name[0] == restoringWALName {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.Rename(from, filepath.Join(dir, name[1])); err != nil {
			return err
		}
	}
	return syncFile(dir)
}

// syncFile flushes a file or a directory.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// removeLeftovers clears what a crash has left in a directory without state.db.
func removeLeftovers(dir string) error {
	names := []string{restoringName, restoringWALName, restoringSHMName}
	if _, err := os.Stat(filepath.Join(dir, mainName)); errors.Is(err, fs.ErrNotExist) {
		names = append(names, walName, shmName, baseName)
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
