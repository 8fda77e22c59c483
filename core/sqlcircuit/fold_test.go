package sqlcircuit

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/circuit"
)

// fatConfig makes every record write some pages.
func fatConfig() Config {
	return Config{
		Schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, pad TEXT)",
		Inputs: []Input{{
			Name: "in", HTTP: &HTTPInput{Format: NDJSON}, Apply: []string{"INSERT INTO t (pad) VALUES (printf('%050000d', :record))"},
		}},
	}
}

func (r *rig) fatten(t *testing.T, batches int) {
	t.Helper()
	for range batches {
		if _, err := r.send(t, circuit.Batch{Body: body("1\n2\n")}); err != nil {
			t.Fatal(err)
		}
	}
}

// settled waits until the WAL is no longer than the circuit promises: one that is shorter is not due, whatever its main file has grown to.
func (r *rig) settled(t *testing.T) {
	t.Helper()
	r.runUntil(t, func() bool {
		s := r.Stats()
		return !s.Folding && s.WALBytes <= max(r.limits.foldMin, s.DatabaseBytes/4)
	})
}

func TestTheConnectionsNeverCheckpointByThemselves(t *testing.T) {
	r := open(t, t.TempDir(), fatConfig(), func(c *Circuit) { c.limits.foldMin = 64 << 20 })
	r.fatten(t, 60) // over 1,500 pages: SQLite's own autocheckpoint would have run
	row, err := r.walFrames()
	if err != nil || row.folded != 0 || row.frames < 1500 {
		t.Fatalf("%+v, %v", row, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(r.files.wal); err != nil || info.Size() < r.walBytes(row.frames) {
		t.Fatalf("the last connection folded when it closed: %v, %v", info, err)
	}
}

func TestALongWALIsFoldedAndBegunAnew(t *testing.T) {
	r := open(t, t.TempDir(), fatConfig(), func(c *Circuit) { c.limits.foldMin = 1 << 20 })
	r.fatten(t, 40)
	r.settled(t)
	if s := r.Stats(); s.DatabaseBytes < 3<<20 {
		t.Fatalf("stats: %+v", s)
	}
	wantRows(t, r.Circuit, "SELECT count(*) FROM t", "80")
}

func TestNoFoldBeginsWhileASnapshotIsOut(t *testing.T) {
	r := open(t, t.TempDir(), fatConfig(), func(c *Circuit) { c.limits.foldMin = 1 << 20 })
	s, err := r.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.fatten(t, 20)
	if got := r.Stats(); got.Folding || got.WALBytes < 2<<20 {
		t.Fatalf("stats: %+v", got)
	}
	s.Release()
	r.settled(t)
}

func TestStepsWaitForAFoldAboveTheLimitAndSaySo(t *testing.T) {
	log := &bytes.Buffer{}
	r := &rig{dir: t.TempDir(), woken: make(waker, 1), Circuit: newCircuit(t, fatConfig(), func(c *Circuit) {
		c.limits.foldMin, c.limits.waitMin, c.limits.retry = 1<<20, 2<<20, time.Millisecond
	})}
	err := r.Open(t.Context(), circuit.Env{Dir: r.dir, Wake: r.woken.wake, Log: hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Warn})})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := r.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for r.Stats().Waiting == "" {
		r.fatten(t, 1)
	}
	b := &batch{items: []item{{text: "1", start: 1}}, done: make(chan answer, 1)}
	if err := r.inputs[0].queueBatch(b); err != nil {
		t.Fatal(err)
	}
	before := r.Facts()
	result, err := r.Step(t.Context())
	if err != nil || result.Applied != 0 || before.Buffered != 0 || before.StepAsked || len(b.done) != 0 {
		t.Fatalf("facts %+v, step %+v, %v", before, result, err)
	}
	if !strings.Contains(log.String(), "steps wait until the WAL is folded") {
		t.Fatalf("log: %s", log)
	}
	s.Release()
	r.runUntil(t, func() bool { return len(b.done) == 1 })
	if r.Stats().Waiting != "" {
		t.Fatalf("stats: %+v", r.Stats())
	}
}

func TestALongQueryDelaysTheFoldAndNoStep(t *testing.T) {
	r := open(t, t.TempDir(), fatConfig(), func(c *Circuit) { c.limits.foldMin, c.limits.rest = 1<<20, 1<<20 })
	r.fatten(t, 1)
	rows, err := r.Query(t.Context(), "SELECT id FROM t UNION ALL SELECT 0")
	if err != nil {
		t.Fatal(err)
	}
	for range rows {
		r.fatten(t, 20)
		if got := r.Stats().WALBytes; got < 1<<20 {
			t.Fatalf("the WAL was begun anew under a reader: %d bytes", got)
		}
		break
	}
	r.settled(t)
	wantRows(t, r.Circuit, "SELECT count(*) FROM t", "42")
}

func TestQueriesWithoutAGapDoNotKeepTheWALFromBeingTruncated(t *testing.T) {
	r := open(t, t.TempDir(), fatConfig(), func(c *Circuit) {
		c.limits.foldMin, c.limits.gate = 1<<20, time.Minute // on a machine with much else to do, a second may not be enough for the queries to end
	})
	stop, asked := make(chan struct{}), make(chan error, 2)
	for range 2 {
		go func() {
			for {
				select {
				case <-stop:
					asked <- nil
					return
				default:
				}
				rows, err := r.Query(t.Context(), "SELECT count(*) AS n FROM t")
				if err != nil {
					asked <- err
					return
				}
				for range rows {
				}
			}
		}()
	}
	r.fatten(t, 60)
	r.settled(t)
	close(stop)
	for range 2 {
		if err := <-asked; err != nil {
			t.Fatal(err)
		}
	}
}

func TestSeveralSnapshotsMayBeOut(t *testing.T) {
	r := open(t, t.TempDir(), fatConfig())
	snapshots := []circuit.Snapshot{}
	for range 4 {
		s, err := r.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		snapshots = append(snapshots, s)
		r.fatten(t, 1)
	}
	for i, s := range snapshots {
		dir := t.TempDir()
		if err := s.Write(t.Context(), dir); err != nil || s.Step() != uint64(i) {
			t.Fatalf("snapshot %d at step %d: %v", i, s.Step(), err)
		}
		to := t.TempDir()
		if err := r.Restore(t.Context(), dir, to); err != nil {
			t.Fatal(err)
		}
		if live, err := r.Inspect(t.Context(), to); err != nil || live.Step != s.Step() {
			t.Fatalf("%+v, %v", live, err)
		}
		s.Release()
	}
}

func TestACopyThatSomebodyWroteToIsNotLinkedAgain(t *testing.T) {
	r := open(t, t.TempDir(), fatConfig())
	first := checkpointOf(t, r.Circuit)
	if err := openInPlace(first + "/" + mainName); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(first+"/"+mainName, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	second := checkpointOf(t, r.Circuit)
	a, errA := os.Stat(first + "/" + mainName)
	b, errB := os.Stat(second + "/" + mainName)
	if errA != nil || errB != nil || os.SameFile(a, b) {
		t.Fatalf("the changed file was linked: %v, %v", errA, errB)
	}
}
