package sqlcircuit

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/circuit"
)

// The statements of a plausible pipeline: two aggregates of one record.
func benchStatements() (schema string, apply []string) {
	schema = "CREATE TABLE by_key (k TEXT PRIMARY KEY, n INTEGER, sum INTEGER) WITHOUT ROWID; " +
		"CREATE TABLE by_day (day INTEGER PRIMARY KEY, n INTEGER, sum INTEGER);"
	return schema, []string{
		"INSERT INTO by_key VALUES (:record ->> 'key', 1, :record ->> 'value') ON CONFLICT DO UPDATE SET n = n + 1, sum = sum + excluded.sum",
		"INSERT INTO by_day VALUES (:record ->> 'day', 1, :record ->> 'value') ON CONFLICT DO UPDATE SET n = n + 1, sum = sum + excluded.sum",
	}
}

func benchRecord(i int) string {
	return fmt.Sprintf(`{"key":"k%d","day":%d,"value":%d,"note":"some text that is not looked at"}`, i%5000, i%365, i)
}

// BenchmarkRecords compares steps of the circuit (with positions, counts and a savepoint per record) with a bare loop of the same prepared
// statements in one transaction, through this package's own connection and through database/sql. The figure is ns per record.
func BenchmarkRecords(b *testing.B) {
	schema, apply := benchStatements()
	b.Run("circuit", func(b *testing.B) {
		r := open(b, b.TempDir(), Config{
			Schema: schema, Inputs: []Input{{Name: "in", HTTP: &HTTPInput{Format: NDJSON}, Apply: apply}},
		})
		for i := 0; i < b.N; {
			b.StopTimer()
			next := &batch{source: "s", seq: uint64(i + 1), done: make(chan answer, 1)}
			for ; len(next.items) < DefaultMaxBatch && i < b.N; i++ {
				next.items = append(next.items, item{text: benchRecord(i), start: int64(i)})
			}
			if err := r.inputs[0].queueBatch(next); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if _, err := r.Step(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		c, err := openConn(filepath.Join(b.TempDir(), "bare.db"), openCreate)
		if err != nil {
			b.Fatal(err)
		}
		defer c.close()
		if err := c.exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;" + schema); err != nil {
			b.Fatal(err)
		}
		statements := []*stmt{}
		for _, text := range apply {
			s, err := c.prepareOne(text)
			if err != nil {
				b.Fatal(err)
			}
			defer s.finalize()
			statements = append(statements, s)
		}
		for i := 0; i < b.N; {
			b.StopTimer()
			records := []string{}
			for ; len(records) < DefaultMaxBatch && i < b.N; i++ {
				records = append(records, benchRecord(i))
			}
			b.StartTimer()
			if err := c.exec("BEGIN"); err != nil {
				b.Fatal(err)
			}
			for _, record := range records {
				for _, s := range statements {
					if err := s.runWith(record); err != nil {
						b.Fatal(err)
					}
				}
			}
			if err := c.exec("COMMIT"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("database-sql", func(b *testing.B) { benchDriver(b, schema, apply) })
}

func benchDriver(b *testing.B, schema string, apply []string) {
	db, err := sql.Open("sqlite", filepath.Join(b.TempDir(), "bare.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;" + schema); err != nil {
		b.Fatal(err)
	}
	statements := []*sql.Stmt{}
	for _, text := range apply {
		s, err := db.Prepare(text)
		if err != nil {
			b.Fatal(err)
		}
		statements = append(statements, s)
	}
	for i := 0; i < b.N; {
		b.StopTimer()
		records := []string{}
		for ; len(records) < DefaultMaxBatch && i < b.N; i++ {
			records = append(records, benchRecord(i))
		}
		b.StartTimer()
		if _, err := db.Exec("BEGIN"); err != nil {
			b.Fatal(err)
		}
		for _, record := range records {
			for _, s := range statements {
				if _, err := s.Exec(sql.Named("record", record)); err != nil {
					b.Fatal(err)
				}
			}
		}
		if _, err := db.Exec("COMMIT"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSnapshot takes snapshots of 1 GiB of which 10% are in the WAL, and writes two: by copy and by hard link. Run it with
// -bench Snapshot -benchtime 100x; it needs 3 GiB of disk.
func BenchmarkSnapshot(b *testing.B) {
	const mib = 1 << 20
	r := open(b, b.TempDir(), Config{
		Schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, pad BLOB)",
		Inputs: []Input{{Name: "in", HTTP: &HTTPInput{Format: NDJSON}, Apply: []string{"UPDATE t SET pad = zeroblob(1) WHERE id = -1"}}},
	}, func(c *Circuit) { c.limits.foldMin, c.limits.foldMax, c.limits.waitMin = 8<<30, 8<<30, 8<<30 })
	fill := "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1024) SELECT i, zeroblob(1048000) FROM n"
	if err := r.writer.exec(fill); err != nil {
		b.Fatal(err)
	}
	if _, err := checkpointWAL(r.writer, "TRUNCATE"); err != nil {
		b.Fatal(err)
	}
	if err := r.writer.exec("UPDATE t SET pad = randomblob(1048000) WHERE id % 10 = 0"); err != nil {
		b.Fatal(err)
	}
	if err := r.measureWAL(); err != nil {
		b.Fatal(err)
	}
	s := r.Stats()
	b.Logf("database %d MiB, WAL %d MiB", s.DatabaseBytes/mib, s.WALBytes/mib)
	var worst time.Duration
	for b.Loop() {
		started := time.Now()
		snapshot, err := r.Snapshot(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		worst = max(worst, time.Since(started))
		b.StopTimer()
		snapshot.Release()
		b.StartTimer()
	}
	b.ReportMetric(float64(worst.Microseconds()), "worst-µs")
	for _, how := range []string{"copy", "link"} {
		snapshot, err := r.Snapshot(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		started := time.Now()
		if err := snapshot.Write(b.Context(), b.TempDir()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(started).Milliseconds()), how+"-ms")
		snapshot.Release()
	}
	var _ circuit.Snapshot = (*snapshot)(nil)
}
