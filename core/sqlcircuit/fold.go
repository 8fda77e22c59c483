package sqlcircuit

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// limits decide when the WAL is folded into the main file. Tests make them small.
type limits struct {
	foldMin  int64 // a WAL shorter than this is never folded
	foldMax  int64 // a longer one always is
	waitMin  int64 // steps wait above max(waitMin, size of the main file)
	rest     int64 // what the loop may fold itself, between two steps
	retry    time.Duration
	gate     time.Duration // new queries wait at most so long for a truncation, and then not again for ten times that
	query    time.Duration // a query's read transaction lasts at most so long
	lookEach time.Duration // between two looks at followed files
}

func defaultLimits() limits {
	return limits{
		foldMin: 4 << 20, foldMax: 256 << 20, waitMin: 1 << 30, rest: 4 << 20,
		retry: time.Second, gate: time.Second, query: 60 * time.Second, lookEach: time.Second,
	}
}

// wal is what the loop, the Writes and the fold share about state.db and its WAL. A fold changes the main file, and a Write copies it: they
// exclude each other. The mutex guards all that stands below it.
type wal struct {
	mu        sync.Mutex
	frames    int64 // committed, since the WAL last began anew
	folded    int64 // of them, those that are in the main file
	mainSize  int64
	snapshots int           // taken and not released
	queries   int           // running
	folding   chan struct{} // closed when the running fold ends; nil = none runs
	again     bool          // a fold was wanted while one ran
	rest      bool          // a fold has left a rest that the loop should truncate
	saidWait  bool
	gate      chan struct{} // new queries wait until it is closed; nil = they do not wait
	gateSpent bool          // it was closed by its time; the next one comes after a pause
	epoch     uint64        // rises before the main file is changed
	base      base
}

// checkpointRow is the result row of PRAGMA wal_checkpoint. Busy is not success.
type checkpointRow struct{ busy, frames, folded int64 }

func checkpointWAL(c *conn, mode string) (checkpointRow, error) {
	row, err := c.integers("PRAGMA wal_checkpoint(" + mode + ")")
	return rowOf(mode, row, err)
}

func rowOf(mode string, row []int64, err error) (checkpointRow, error) {
	if err != nil {
		return checkpointRow{}, fmt.Errorf("wal_checkpoint(%s): %w", mode, err)
	}
	if len(row) != 3 || row[1] < 0 || row[2] < 0 {
		return checkpointRow{}, fmt.Errorf("wal_checkpoint(%s): SQLite answered %v; the database is not in WAL mode", mode, row)
	}
	return checkpointRow{busy: row[0], frames: row[1], folded: row[2]}, nil
}

// walFrames asks how many frames are committed. It reads SQLite's index of the WAL, takes no lock and changes nothing.
func (c *Circuit) walFrames() (checkpointRow, error) {
	s := c.own.frames
	defer s.reset()
	found, err := s.step()
	if err == nil && !found {
		err = errors.New("no row")
	}
	row := []int64{}
	if err == nil {
		row = []int64{s.integer(0), s.integer(1), s.integer(2)}
	}
	return rowOf("NOOP", row, err)
}

// walBytes is the length of a WAL of that many frames.
func (c *Circuit) walBytes(frames int64) int64 {
	if frames == 0 {
		return 0
	}
	return walHeader + frames*(frameHeader+c.pageSize)
}

// Sizes in SQLite's WAL format.
const (
	walHeader   = 32
	frameHeader = 24
)

// measureWAL runs after each commit and starts a fold when the WAL has grown long.
func (c *Circuit) measureWAL() error {
	row, err := c.walFrames()
	if err != nil {
		return err
	}
	info, err := c.main.Stat()
	if err != nil {
		return fmt.Errorf("size of database: %w", err)
	}
	w := &c.wal
	w.mu.Lock()
	w.frames, w.folded, w.mainSize = row.frames, row.folded, info.Size()
	w.mu.Unlock()
	c.startFold()
	return nil
}

// startFold starts a fold in the background when one is due, none runs, and no snapshot is out. It is tried again whenever one of these
// may have changed.
func (c *Circuit) startFold() {
	w := &c.wal
	w.mu.Lock()
	defer w.mu.Unlock()
	long := c.walBytes(w.frames) > min(c.limits.foldMax, max(c.limits.foldMin, w.mainSize/4))
	left := c.walBytes(w.frames - w.folded)
	if !long || left == 0 || w.rest && left <= 2*c.limits.rest {
		return
	}
	if w.folding != nil {
		w.again = true // what held the running one back may have gone
		return
	}
	if w.snapshots > 0 || c.life.enter() != nil {
		return
	}
	w.folding = make(chan struct{})
	w.epoch++
	go c.fold()
}

// fold moves frames into the main file while steps go on, in rounds: each leaves what the steps wrote meanwhile.
func (c *Circuit) fold() {
	defer c.life.leave()
	const rounds = 4
	started := c.cfg.Now()
	var row checkpointRow
	var err error
	for range rounds {
		if row, err = checkpointWAL(c.folder, "PASSIVE"); err != nil || row.busy != 0 || c.walBytes(row.frames-row.folded) <= c.limits.rest {
			break
		}
	}
	info, statErr := os.Stat(c.files.main)
	w := &c.wal
	w.mu.Lock()
	if err == nil {
		w.folded = row.folded
		w.rest = row.busy == 0 && c.walBytes(row.frames-row.folded) <= c.limits.rest
	}
	if statErr == nil {
		w.mainSize = info.Size()
	}
	close(w.folding)
	w.folding = nil
	c.closeGate()
	again, stuck := w.again, c.tooLong() && row.folded < row.frames
	w.again = false
	w.mu.Unlock()
	if err != nil {
		c.log.Error("fold failed", "error", c.explained(err))
	} else {
		c.log.Debug("WAL folded", "frames", row.folded, "of", row.frames, "took", c.cfg.Now().Sub(started))
	}
	switch {
	case err == nil && again:
		c.startFold()
	case stuck: // a reader that we do not know holds the rest back, or the disk failed
		c.after(c.limits.retry, c.startFold)
	}
	c.env.Wake()
}

// truncateRest runs on the loop's goroutine, between two steps: after a fold little is left to fold, and then the WAL begins anew. Our own
// readers put it off until they end; one that we do not know makes it busy, and then it is tried again later.
func (c *Circuit) truncateRest() error {
	w := &c.wal
	w.mu.Lock()
	defer w.mu.Unlock() // nothing may start to read the main file meanwhile; it takes milliseconds
	if !w.canTruncate() {
		c.closeGate()
		return nil
	}
	w.rest = false
	w.openGate()
	w.epoch++
	c.writer.waitForLocks(0) // for a reader the loop does not wait
	row, err := checkpointWAL(c.writer, "TRUNCATE")
	c.writer.waitForLocks(lockWait)
	if full(err) { // of no step's doing: the commit that follows finds room, or tells that there is none
		c.log.Warn("WAL not truncated, it is tried again", "error", c.explained(err))
		c.after(c.limits.retry, c.wantTruncate)
		return nil
	}
	if err != nil {
		return err
	}
	w.frames, w.folded = row.frames, row.folded
	if row.busy != 0 {
		c.log.Debug("WAL not truncated: somebody reads it", "frames", row.frames, "folded", row.folded)
		c.after(c.limits.retry, c.wantTruncate)
	}
	return nil
}

// canTruncate is for a caller that holds wal.mu.
func (w *wal) canTruncate() bool {
	return w.rest && w.folding == nil && w.snapshots == 0 && w.queries == 0
}

func (c *Circuit) wantTruncate() {
	c.wal.mu.Lock()
	c.wal.rest = true
	c.closeGate()
	c.wal.mu.Unlock()
	c.env.Wake()
}

// tooLong says that steps must wait for a fold. The caller holds wal.mu.
func (c *Circuit) tooLong() bool {
	w := &c.wal
	return c.walBytes(w.frames) > max(c.limits.waitMin, w.mainSize)
}

// mustWaitForFold is tooLong for Step: it says so, once each time.
func (c *Circuit) mustWaitForFold() bool {
	w := &c.wal
	w.mu.Lock()
	wait, said := c.tooLong(), w.saidWait
	w.saidWait = wait
	bytes, snapshots, queries := c.walBytes(w.frames), w.snapshots, w.queries
	w.mu.Unlock()
	if wait && !said {
		c.log.Warn("steps wait until the WAL is folded", "wal_bytes", bytes, "snapshots", snapshots, "queries", queries)
	}
	if wait {
		c.startFold()
	}
	return wait
}
