package sqlcircuit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/circuit"
)

// The harness steps a circuit without a pause, and meanwhile takes checkpoints, restores each and compares it, record by record, with what
// the state was at its step. Record number i sets row i*exactStride % exactRows to i, so the whole table follows from the step.
const (
	exactRows   = 300
	exactStride = 389 // has no factor in common with exactRows: neighbours in time are far apart in the table
	exactBatch  = 20  // records a step
)

type exactHarness struct {
	c         *Circuit
	dir       string
	older     string // the checkpoint before, and what its bytes were
	olderSum  string
	links     int // checkpoints whose main file is a hard link
	withWAL   int
	folds     uint64
	published int
	turn      chan struct{}
}

func exactConfig() Config {
	return Config{
		Now: time.Now,
		Schema: "CREATE TABLE rows (k INTEGER PRIMARY KEY, v INTEGER, pad TEXT); CREATE TABLE total (id INTEGER PRIMARY KEY, n INTEGER, sum INTEGER); " +
			"INSERT INTO total VALUES (1, 0, 0)",
		Inputs: []Input{{
			Name: "in", HTTP: &HTTPInput{Format: NDJSON},
			Apply: []string{
				fmt.Sprintf("INSERT INTO rows SELECT :record * %d %% %d, :record + 0, printf('%%0700d', :record) WHERE true "+
					"ON CONFLICT DO UPDATE SET v = excluded.v, pad = excluded.pad", exactStride, exactRows),
				"UPDATE total SET n = n + 1, sum = sum + :record",
			},
		}},
	}
}

// exactRestores runs the harness; an error is the first difference found.
func exactRestores(ctx context.Context, dir string, rounds int, planted faults) (*exactHarness, error) {
	h := &exactHarness{dir: dir, turn: make(chan struct{}, 1)}
	c, err := New(exactConfig())
	if err != nil {
		return nil, err
	}
	h.c = c
	c.faults = planted
	c.limits.foldMin, c.limits.foldMax, c.limits.rest = 5<<20, 5<<20, 256<<10 // a WAL of more than 1,000 pages between two folds
	live := filepath.Join(dir, "live")
	if err := os.Mkdir(live, 0o700); err != nil {
		return nil, err
	}
	if err := c.Open(ctx, circuit.Env{Dir: live}); err != nil {
		return nil, err
	}
	// Nothing pulls the plug here; without flushes the same run fits into seconds.
	err = errors.Join(c.writer.exec("PRAGMA synchronous = OFF"), c.folder.exec("PRAGMA synchronous = OFF"))
	if err == nil {
		err = h.run(ctx, rounds)
	}
	h.folds = c.wal.epoch
	return h, errors.Join(err, c.Close())
}

func (h *exactHarness) run(ctx context.Context, rounds int) error {
	ctx, stop := context.WithCancel(ctx)
	asked := make(chan error, 1)
	go func() { asked <- h.keepAsking(ctx) }()
	err := h.keepStepping(ctx, rounds)
	stop()
	return errors.Join(err, <-asked)
}

// keepStepping is the loop: per checkpoint it takes one step between the snapshot and the Write, and up to four beside the Write, the restore
// and the comparison.
func (h *exactHarness) keepStepping(ctx context.Context, rounds int) error {
	for h.published < rounds {
		if err := h.step(ctx); err != nil {
			return err
		}
		snapshot, err := h.c.Snapshot(ctx)
		if err != nil {
			return err
		}
		if err := h.step(ctx); err != nil {
			return err
		}
		written := make(chan error, 1)
		go func() { written <- h.publishAndCompare(ctx, snapshot) }()
		for i := 0; i < 4 && len(written) == 0 && err == nil; i++ {
			err = h.step(ctx)
		}
		if err = errors.Join(err, <-written); err != nil {
			return err
		}
	}
	return nil
}

func (h *exactHarness) step(ctx context.Context) error {
	n := int(h.c.step.Load()) * exactBatch
	b := &batch{done: make(chan answer, 1)}
	for i := range exactBatch {
		b.items = append(b.items, item{text: fmt.Sprint(n + i + 1), start: int64(i)})
	}
	if err := h.c.inputs[0].queueBatch(b); err != nil {
		return err
	}
	for h.c.step.Load() == uint64(n/exactBatch) {
		if _, err := h.c.Step(ctx); err != nil {
			return err
		}
	}
	select {
	case h.turn <- struct{}{}:
	default:
	}
	return nil
}

// keepAsking runs queries beside everything else; each must see one whole step.
func (h *exactHarness) keepAsking(ctx context.Context) error {
	for {
		select {
		case <-h.turn: // a query for every step, without a pause between two
		case <-ctx.Done():
			return nil
		}
		rows, err := h.c.Query(ctx, "SELECT n, sum, (SELECT step FROM cairn_circuit) AS step, (SELECT max(v) FROM rows) AS v FROM total")
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for row, err := range rows {
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			n := row[2].Value.(int64) * exactBatch
			if got := line(row); n > 0 && got != fmt.Sprintf("%d|%d|%d|%d", n, n*(n+1)/2, n/exactBatch, n) {
				return fmt.Errorf("a query saw half a step: %s", got)
			}
		}
	}
}

// publishAndCompare writes the checkpoint as a draft, renames it, collects the one before the last, restores it and compares.
func (h *exactHarness) publishAndCompare(ctx context.Context, snapshot circuit.Snapshot) error {
	defer snapshot.Release()
	h.published++
	draft := filepath.Join(h.dir, ".tmp-checkpoint")
	if err := os.Mkdir(draft, 0o700); err != nil {
		return err
	}
	if err := snapshot.Write(ctx, draft); err != nil {
		return err
	}
	snapshot.Release()
	published := filepath.Join(h.dir, fmt.Sprintf("checkpoint-%d", h.published))
	if err := os.Rename(draft, published); err != nil {
		return err
	}
	sum, err := h.sumAndCount(published)
	if err != nil {
		return err
	}
	if err := h.compare(ctx, published, snapshot.Step()); err != nil {
		return fmt.Errorf("checkpoint %d: %w", h.published, err)
	}
	for path, want := range map[string]string{published: sum, h.older: h.olderSum} {
		if got, err := sumDir(path); path != "" && (err != nil || got != want) {
			return fmt.Errorf("checkpoint %s changed after it was published: %w", path, errors.Join(err, errors.New(got)))
		}
	}
	if h.older != "" {
		if err := os.RemoveAll(h.older); err != nil {
			return err
		}
	}
	h.older, h.olderSum = published, sum
	return nil
}

func (h *exactHarness) sumAndCount(path string) (string, error) {
	if _, err := os.Stat(filepath.Join(path, walName)); err == nil {
		h.withWAL++
	}
	if h.older != "" {
		a, errA := os.Stat(filepath.Join(path, mainName))
		b, errB := os.Stat(filepath.Join(h.older, mainName))
		if errA == nil && errB == nil && os.SameFile(a, b) {
			h.links++
		}
	}
	return sumDir(path)
}

// compare restores the checkpoint and reads it with SQLite's ordinary Go driver, which knows nothing of this package.
func (h *exactHarness) compare(ctx context.Context, checkpoint string, step uint64) error {
	dir, err := os.MkdirTemp(h.dir, "restored-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := h.c.Restore(ctx, checkpoint, dir); err != nil {
		return err
	}
	if h.published%10 == 0 { // each look reads the whole WAL
		if live, err := h.c.Inspect(ctx, dir); err != nil || live.Step != step {
			return fmt.Errorf("inspect: %+v, want step %d: %w", live, step, err)
		}
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, mainName))
	if err != nil {
		return err
	}
	defer db.Close()
	return compareRows(ctx, db, int64(step)*exactBatch)
}

func compareRows(ctx context.Context, db *sql.DB, n int64) error {
	var count, sum int64
	if err := db.QueryRowContext(ctx, "SELECT n, sum FROM total").Scan(&count, &sum); err != nil {
		return err
	}
	if count != n || sum != n*(n+1)/2 {
		return fmt.Errorf("%d records sum up to %d, want %d and %d", count, sum, n, n*(n+1)/2)
	}
	want := map[int64]int64{}
	for i := max(1, n-exactRows+1); i <= n; i++ {
		want[i*exactStride%exactRows] = i
	}
	rows, err := db.QueryContext(ctx, "SELECT k, v, pad = printf('%0700d', v) FROM rows ORDER BY k")
	if err != nil {
		return err
	}
	defer rows.Close()
	seen := 0
	for rows.Next() {
		var k, v int64
		var pad bool
		if err := rows.Scan(&k, &v, &pad); err != nil {
			return err
		}
		seen++
		if v != want[k] || !pad {
			return fmt.Errorf("row %d holds record %d (whole: %v), want %d", k, v, pad, want[k])
		}
	}
	if seen != len(want) {
		return fmt.Errorf("%d rows, want %d", seen, len(want))
	}
	return rows.Err()
}

// sumDir lists a directory's files with their sizes and sums.
func sumDir(dir string) (string, error) {
	text := strings.Builder{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		n, err := io.Copy(sum, f)
		fmt.Fprintf(&text, "%s %d %x\n", d.Name(), n, sum.Sum32())
		return err
	})
	return text.String(), err
}

func TestEveryRestoreIsExactWhileStepsFoldsAndQueriesRun(t *testing.T) {
	const rounds = 300
	h, err := exactRestores(t.Context(), t.TempDir(), rounds, faults{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d restores, %d steps, %d folds, %d hard links, %d with a WAL", h.published, h.c.step.Load(), h.folds/2, h.links, h.withWAL)
	if h.published != rounds || h.folds < 10 || h.links < 10 || h.links > rounds-5 || h.withWAL < rounds/2 {
		t.Errorf("the run did not meet everything it is meant to meet: %+v", *h)
	}
}

func TestTheHarnessFindsEachPlantedFault(t *testing.T) {
	for name, planted := range map[string]faults{
		"the writer checkpoints by itself":            {autocheckpoint: true},
		"the WAL is copied as long as its file is":    {prefixBySize: true},
		"a restore opens the checkpoint in its place": {openInPlace: openInPlace},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := exactRestores(t.Context(), t.TempDir(), 300, planted)
			if err == nil {
				t.Fatal("the harness noticed nothing")
			}
			t.Logf("found at checkpoint %d: %v", h.published, err)
		})
	}
}

// openInPlace is what a careless program does to a checkpoint: it opens the database, reads, and closes it.
func openInPlace(path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	var step int64
	return errors.Join(db.QueryRow("SELECT step FROM cairn_circuit").Scan(&step), db.Close())
}

func TestASnapshotTakenDuringAFoldIsExact(t *testing.T) {
	dir := t.TempDir()
	c := newCircuit(t, exactConfig())
	live := filepath.Join(dir, "live")
	if err := os.Mkdir(live, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := c.Open(t.Context(), circuit.Env{Dir: live}); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h := &exactHarness{c: c, dir: dir}
	for range 60 {
		if err := h.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c.limits.foldMin, c.limits.foldMax = 0, 0
	c.startFold()
	snapshot, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() { err = h.publishAndCompare(t.Context(), snapshot) })
	for range 10 {
		if err := h.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	done.Wait()
	if err != nil {
		t.Fatal(err)
	}
}
