//go:build torture || cloud

package main

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	_ "modernc.org/sqlite" // the restored state is opened without any code of ours

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/core/syncer"
)

// witness knows what each host had computed: the digests of its local checkpoints, as they lay on its disk, and what its feed holds.
type witness struct {
	files map[uuid.UUID]string // by checkpoint, what its manifest says of its files
	feeds []settings
}

// manifest is what a witness takes from a checkpoint.json.
type manifest struct {
	Body struct {
		ID    uuid.UUID
		Files []struct {
			Path   string
			Size   int64
			Chunks []string
		}
	}
}

// see reads the manifests of a fighter's local checkpoints, in whichever data folder they lie.
func (w *witness) see(dir string) {
	names, _ := filepath.Glob(filepath.Join(dir, "d*", pipe, "checkpoints", "*-*", "checkpoint.json")) // the pattern is right
	for _, name := range names {
		id, err := uuid.Parse(filepath.Base(filepath.Dir(name)))
		if err != nil || w.files[id] != "" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			continue // collected since
		}
		var m manifest
		if err := json.Unmarshal(text, &m); err != nil || m.Body.ID != id {
			continue // it is being written: only a manifest that is whole bears witness
		}
		var files strings.Builder
		for _, f := range m.Body.Files {
			fmt.Fprintln(&files, f.Path, f.Size, f.Chunks)
		}
		w.files[id] = files.String()
	}
}

// described is the same of a commit.
func described(c *repository.Commit) string {
	var files strings.Builder
	for _, f := range c.Files {
		var chunks []string
		for _, ch := range f.Chunks {
			chunks = append(chunks, hex.EncodeToString(ch.Digest[:]))
		}
		fmt.Fprintln(&files, f.Path, f.Size, chunks)
	}
	return files.String()
}

// restorer restores commits with a reader of its own, from the files of the target.
type restorer struct {
	reader *syncer.Reader
	spool  *syncer.Spool
	dir    string
}

func newRestorer(t *testing.T, target string) *restorer {
	t.Helper()
	dir := t.TempDir()
	spool, err := syncer.OpenSpool(filepath.Join(dir, "spool"))
	check(t, err)
	t.Cleanup(func() { check(t, spool.Close()) })
	reader, err := syncer.NewReader(syncer.ReaderConfig{
		Target: "observed", Prefix: pipe, Store: syncer.Direct(folder(target)), RetryBudget: time.Second, Now: time.Now,
	})
	check(t, err)
	return &restorer{reader, spool, dir}
}

// restored is what a restored state holds: the last id of each stream of records.
type restored map[string]int

// restore brings a commit back and reads its tables.
func (r *restorer) restore(ctx context.Context, number uint64, feeds []settings) (restored, error) {
	dir := filepath.Join(r.dir, "files")
	if _, err := r.reader.RestoreDir(ctx, syncer.RestoreRequest{From: syncer.Selector{Number: number}, Dir: dir, Spool: r.spool}); err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return tablesIn(ctx, dir, feeds)
}

// tablesIn reads the tables of a state in a folder. Every record of a stream up to its last one must have counted exactly once.
func tablesIn(ctx context.Context, dir string, feeds []settings) (restored, error) {
	db, err := sql.Open("sqlite", filepath.Join(dir, "state.db"))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	last := restored{}
	want := map[string]totals{"lines": {}, "calls": {}}
	for _, s := range feeds {
		for input, sums := range want {
			k, err := prefixOf(ctx, db, input, s)
			if err != nil {
				return nil, err
			}
			last[stream(input, s)] = k
			sums.add(input, s, k)
		}
	}
	return last, errors.Join(holds(ctx, db, "lines", want["lines"]), holds(ctx, db, "calls", want["calls"]))
}

func stream(input string, s settings) string { return fmt.Sprintf("%s of feed %d", input, s.feed) }

// prefixOf is the number of records of a feed's stream, when they are its first ones, each once, and with the text that they came with.
func prefixOf(ctx context.Context, db *sql.DB, input string, s settings) (int, error) {
	var count, first, last, sum int
	row := db.QueryRowContext(ctx, `SELECT count(*), coalesce(min(id), 0), coalesce(max(id), 0), coalesce(sum(n), 0) FROM seen WHERE input = ? AND id BETWEEN ? AND ?`,
		input, s.id(1), s.id(feedSpan-1))
	if err := row.Scan(&count, &first, &last, &sum); err != nil {
		return 0, err
	}
	if count > 0 && (first != s.id(1) || last != s.id(count)) || sum != count {
		return 0, fmt.Errorf("%s: %d records from %d to %d, counted %d times: not the beginning of the stream, each once", stream(input, s), count, first, last, sum)
	}
	return count, nil
}

// totals are the rows of the table of that name: by bucket, how many records and the sum of their amounts.
type totals map[int][2]int

func (t totals) add(input string, s settings, records int) {
	for i := 1; i <= records; i++ {
		_, bucket, amount := drawn(input, s.id(i), s.payload)
		t[bucket] = [2]int{t[bucket][0] + 1, t[bucket][1] + amount}
	}
}

// holds compares the aggregates.
func holds(ctx context.Context, db *sql.DB, input string, want totals) error {
	rows, err := db.QueryContext(ctx, `SELECT bucket, n, amount FROM totals WHERE input = ?`, input)
	if err != nil {
		return err
	}
	defer rows.Close()
	seen := 0
	for rows.Next() {
		var bucket, n, amount int
		if err := rows.Scan(&bucket, &n, &amount); err != nil {
			return err
		}
		seen++
		if want[bucket] != [2]int{n, amount} {
			return fmt.Errorf("totals of %s, bucket %d: %d records, %d in all; want %v", input, bucket, n, amount, want[bucket])
		}
	}
	if seen != len(want) {
		return errors.Join(rows.Err(), fmt.Errorf("totals of %s: %d buckets, want %d", input, seen, len(want)))
	}
	return rows.Err()
}

// inOrder demands of two states that were committed one after the other in one reign that nothing of the first is missing in the second.
func inOrder(before, after restored) error {
	for name, k := range before {
		if after[name] < k {
			return fmt.Errorf("%s went back from record %d to %d within one reign", name, k, after[name])
		}
	}
	return nil
}

// allRestored restores every commit that readers see, and answers how many, and how many of them were also compared with a local checkpoint
// as it had lain on its host's disk.
func allRestored(t *testing.T, l *ledger, w *witness) (count, witnessed int) {
	t.Helper()
	r := newRestorer(t, l.dir)
	listed, err := r.reader.ListCommits(t.Context())
	check(t, err)
	visible := l.checkpoints()
	if len(listed) != len(visible) {
		t.Errorf("a reader lists %d checkpoints, the ledger has %d", len(listed), len(visible))
	}
	var epoch uint64 = math.MaxUint64
	var before restored
	for _, c := range visible {
		if !slices.ContainsFunc(listed, func(i syncer.CommitInfo) bool { return i.Number == c.Number }) {
			t.Errorf("a reader does not list commit %d", c.Number)
		}
		now, err := r.restore(t.Context(), c.Number, w.feeds)
		if err == nil && c.Epoch == epoch {
			err = inOrder(before, now)
		}
		if err != nil {
			t.Errorf("commit %d (checkpoint %s): %v", c.Number, c.Checkpoint.ID, err)
		}
		epoch, before = c.Epoch, now
		count++
		if local := w.files[c.Checkpoint.ID]; local != "" {
			witnessed++
			if local != described(c.Commit) {
				t.Errorf("commit %d says of checkpoint %s\n%s, its host had\n%s", c.Number, c.Checkpoint.ID, described(c.Commit), local)
			}
		}
	}
	return count, witnessed
}
