package sqlcircuit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/cairnsync/cairn/core/circuit"
)

// Names in a live directory and in a checkpoint.
const (
	mainName = "state.db"
	walName  = "state.db-wal"
	shmName  = "state.db-shm"
	baseName = "state.db.base"
)

// checkpointMode keeps a careless hand from writing to a checkpoint: a database opened there changes, and through the hard link older
// checkpoints change with it.
const checkpointMode fs.FileMode = 0o400

// reader is a connection that snapshots hold their read transactions on.
type reader struct {
	c                  *conn
	begin, look, leave *stmt
}

// readers keeps idle readers for the next snapshot, because opening one takes longer than a snapshot may.
type readers struct {
	mu   sync.Mutex
	idle []*reader
	out  map[*snapshot]struct{}
}

// base is the newest copy of the main file that a Write has made, kept under a private name, because checkpoints come and go.
type base struct {
	info  fs.FileInfo // nil = there is none
	epoch uint64      // of the main file when it was copied
}

// snapshot is the state between two steps: a read transaction keeps SQLite from beginning the WAL anew, so the main file and the first
// frames of the WAL stay what they are.
type snapshot struct {
	c      *Circuit
	step   uint64
	frames int64 // of the WAL that belong to it; 0 = all are in the main file

	once sync.Once
	mu   sync.Mutex // guards r
	r    *reader    // nil once the read transaction has ended
}

// Snapshot pins the state as of now in well under a millisecond: it opens a read transaction and counts the committed frames. The count
// never comes from the size of the WAL's file, which holds frames of older and of unfinished transactions too.
func (c *Circuit) Snapshot(context.Context) (circuit.Snapshot, error) {
	if c.writer == nil {
		return nil, ErrNotRunning
	}
	c.wal.mu.Lock()
	c.wal.snapshots++ // from here on no fold begins
	c.wal.mu.Unlock()
	s, err := c.pin()
	if err != nil {
		c.unpin()
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return s, nil
}

func (c *Circuit) pin() (*snapshot, error) {
	r, err := c.takeReader()
	if err != nil {
		return nil, err
	}
	s := &snapshot{c: c, r: r}
	step, err := r.enter()
	if err == nil && step != c.step.Load() {
		err = fmt.Errorf("the database is at step %d, the circuit at %d", step, c.step.Load())
	}
	if err != nil {
		r.close()
		return nil, err
	}
	row, err := c.walFrames()
	if err != nil {
		r.close()
		return nil, err
	}
	s.step = step
	if row.folded < row.frames {
		s.frames = row.frames
	}
	c.readers.mu.Lock()
	c.readers.out[s] = struct{}{}
	c.readers.mu.Unlock()
	return s, nil
}

func (c *Circuit) unpin() {
	c.wal.mu.Lock()
	c.wal.snapshots--
	c.wal.mu.Unlock()
	c.startFold()
}

func (s *snapshot) Step() uint64 { return s.step }

// Write puts state.db and, unless every frame has been folded, state.db-wal below dir. A fold that was running when the snapshot was
// taken ends first.
func (s *snapshot) Write(ctx context.Context, dir string) error {
	if err := s.c.life.enter(); err != nil {
		return err
	}
	defer s.c.life.leave()
	ctx, cancel := s.c.life.bound(ctx)
	defer cancel()
	if err := s.c.awaitFold(ctx); err != nil {
		return fmt.Errorf("write checkpoint: wait for the fold: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.r == nil {
		return errors.New("write checkpoint: the snapshot has been released or written")
	}
	if err := s.c.writeMain(ctx, filepath.Join(dir, mainName)); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	if err := s.writeWAL(ctx, filepath.Join(dir, walName)); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	s.end()
	return nil
}

// Release ends the read transaction, if Write has not, and lets folds go on.
func (s *snapshot) Release() {
	s.once.Do(func() {
		s.mu.Lock()
		s.end()
		s.mu.Unlock()
		s.c.unpin()
	})
}

// end gives the reader back. The caller holds s.mu.
func (s *snapshot) end() {
	if s.r == nil {
		return
	}
	r := s.r
	s.r = nil
	s.c.readers.mu.Lock()
	defer s.c.readers.mu.Unlock()
	delete(s.c.readers.out, s)
	const keep = 2
	if err := r.leave.run(); err != nil || len(s.c.readers.idle) >= keep || !s.c.life.isOpen() {
		r.close()
		return
	}
	s.c.readers.idle = append(s.c.readers.idle, r)
}

func (c *Circuit) awaitFold(ctx context.Context) error {
	c.wal.mu.Lock()
	folding := c.wal.folding
	c.wal.mu.Unlock()
	if folding == nil {
		return nil
	}
	select {
	case <-folding: // no other begins: this snapshot is out
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// writeMain links the last copy of the main file, when the file has not been changed since, or copies it. One Write at a time.
func (c *Circuit) writeMain(ctx context.Context, to string) error {
	c.copying.Lock()
	defer c.copying.Unlock()
	c.wal.mu.Lock()
	base, epoch := c.wal.base, c.wal.epoch
	c.wal.mu.Unlock()
	if base.epoch == epoch && base.isIntact(c.files.base) {
		if err := os.Link(c.files.base, to); err == nil {
			return nil
		} // else a copy will do: another device, too many links
	}
	if err := c.dropBase(); err != nil { // it is of no use any more, and the copy may need its space
		return err
	}
	if _, err := c.main.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := copyFile(ctx, c.main, to, -1); err != nil {
		return err
	}
	return c.keepBase(to, epoch)
}

// dropBase removes the private name of the last copy; the next Write makes one anew.
func (c *Circuit) dropBase() error {
	if err := os.Remove(c.files.base); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// keepBase gives the fresh copy its private name. Without one, the next checkpoint copies again.
func (c *Circuit) keepBase(copied string, epoch uint64) error {
	next := base{epoch: epoch}
	if err := os.Link(copied, c.files.base); err != nil {
		c.log.Debug("no hard link to the checkpoint; each checkpoint will be a full copy", "error", err)
	} else if next.info, err = os.Lstat(c.files.base); err != nil {
		return err
	}
	c.wal.mu.Lock()
	c.wal.base = next
	c.wal.mu.Unlock()
	return nil
}

// isIntact says that the file at path is the copy that was made, and that nobody has written to it since.
func (b base) isIntact(path string) bool {
	if b.info == nil {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && os.SameFile(info, b.info) && info.Size() == b.info.Size() && info.ModTime().Equal(b.info.ModTime())
}

func (s *snapshot) writeWAL(ctx context.Context, to string) error {
	n := s.c.walBytes(s.frames)
	if s.c.faults.prefixBySize {
		n = -1
	}
	if n == 0 {
		return nil
	}
	from, err := os.Open(s.c.files.wal)
	if err != nil {
		return err
	}
	defer from.Close()
	return copyFile(ctx, from, to, n)
}

// copyFile copies n bytes, or all when n is negative, to the new file. Where the file system can share blocks, the kernel does.
func copyFile(ctx context.Context, from *os.File, to string, n int64) (err error) {
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, checkpointMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	const piece = 8 << 20 // between two looks at ctx
	for n != 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		want := int64(piece)
		if n > 0 {
			want = min(n, piece)
		}
		got, err := io.CopyN(file, from, want)
		if errors.Is(err, io.EOF) && n < 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", from.Name(), err)
		}
		n = max(n-got, -1)
	}
	return nil
}

func (c *Circuit) takeReader() (*reader, error) {
	c.readers.mu.Lock()
	defer c.readers.mu.Unlock()
	if n := len(c.readers.idle); n > 0 {
		r := c.readers.idle[n-1]
		c.readers.idle = c.readers.idle[:n-1]
		return r, nil
	}
	return c.openReader()
}

func (c *Circuit) openReader() (*reader, error) {
	conn, err := c.openLive(openReadOnly)
	if err != nil {
		return nil, err
	}
	r := &reader{c: conn}
	for into, text := range map[**stmt]string{
		&r.begin: "BEGIN", &r.look: "SELECT step FROM cairn_circuit WHERE id = 1", &r.leave: "ROLLBACK",
	} {
		if *into, err = conn.prepareOne(text); err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}

// enter opens the read transaction and returns the step it sees.
func (r *reader) enter() (uint64, error) {
	if err := r.begin.run(); err != nil {
		return 0, err
	}
	defer r.look.reset()
	row, err := r.look.step()
	if err == nil && !row {
		err = errNoRow
	}
	if err != nil {
		return 0, err
	}
	return uint64(r.look.integer(0)), nil
}

// close ends an open transaction too.
func (r *reader) close() {
	r.begin.finalize()
	r.look.finalize()
	r.leave.finalize()
	_ = r.c.close() // a reader has written nothing
}
