package repository

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// tb is the part of testing.T and rapid.T that helpers need.
type tb interface {
	Helper()
	Fatal(args ...any)
}

func testID(n byte) uuid.UUID { return uuid.UUID{6: 0x70, 8: 0x80, 15: n} }

func testTime() time.Time { return time.Date(2026, 12, 1, 19, 30, 0, 123456789, time.UTC) }

func testWriter() Writer { return Writer{ID: testID(1), Incarnation: testID(2)} }

// source makes a file whose full chunks have the given letters; the last one is short by half a chunk.
func source(path, letters string) Source {
	s := Source{Path: path, Mode: 0o644}
	for i := range len(letters) {
		n := int64(ChunkSize)
		if i == len(letters)-1 {
			n /= 2
		}
		s.Size += n
		s.Chunks = append(s.Chunks, sumOf(letters[i], n))
	}
	return s
}

// sumOf stands for the digest of n bytes known by a letter; "0" is zeros.
func sumOf(letter byte, n int64) [32]byte {
	if letter == '0' {
		return HoleDigest(n)
	}
	return Sum(fmt.Appendf(nil, "%c %d", letter, n))
}

// push does what a pusher does, without bytes: stored lengths and pack digests are made up from what is stored.
func push(t tb, parent *Commit, number uint64, files []Source) *Commit {
	t.Helper()
	plan, err := PlanPush(parent, files)
	if err != nil {
		t.Fatal(err)
	}
	return commitOf(t, plan, number)
}

func commitOf(t tb, plan *PushPlan, number uint64) *Commit {
	t.Helper()
	b := NewBuilder(plan, 3, number)
	for i, n := range plan.New {
		encoding, storedLen := Raw, n.Length
		if i%3 == 1 && n.Length > 1 {
			encoding, storedLen = Zstd, n.Length/2
		}
		if _, _, err := b.Add(n.Digest, encoding, storedLen); err != nil {
			t.Fatal(err)
		}
	}
	for i := range b.Packs() {
		if _, err := b.Seal(i, Sum(fmt.Appendf(nil, "%d/%d", number, i))); err != nil {
			t.Fatal(err)
		}
	}
	packs, rows, err := b.Tables()
	if err != nil {
		t.Fatal(err)
	}
	c := &Commit{
		Number: number, Kind: KindCheckpoint, Epoch: 3, Writer: testWriter(), Created: testTime(), WrittenBy: "cairn 0.1.0",
		Checkpoint: Checkpoint{
			ID: testID(9), Step: 1000 + number, Created: testTime().Add(-time.Second), Incarnation: testID(2),
			Identity: Identity{Kind: "sql", Fingerprint: Sum([]byte("schema"))},
			History:  History{{Lineage: testID(20), UpTo: 500}, {Lineage: testID(21)}},
		},
		Packs: packs, Files: rows,
	}
	if number > 1 {
		c.Parent = Sum([]byte("parent"))
	}
	c.Totals = TotalsOf(c)
	return c
}

func testSeal(number uint64) *Commit {
	return &Commit{
		Number: number, Kind: KindSeal, Epoch: 3, Writer: testWriter(), Parent: Sum([]byte("parent")), Created: testTime(), WrittenBy: "cairn 0.1.0",
	}
}

// drawFiles draws a checkpoint of few distinct chunks, so that sharing within and across checkpoints is common.
func drawFiles(t *rapid.T, label string) []Source {
	paths := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
		"a", "b/c", "b/d", "e f", "\xff\xfe", "ü", "u\u0308", "b/\n", "%2F", "z/y/x/w", "con", "<&>",
	}), 0, 8, rapid.ID).Draw(t, label)
	files := make([]Source, len(paths))
	for i, p := range paths {
		files[i] = source(p, rapid.StringOfN(rapid.SampledFrom([]rune("0123abc")), 0, 5, -1).Draw(t, label+" chunks"))
		files[i].Mode = fs.FileMode(rapid.IntRange(0, 0o777).Draw(t, label+" mode"))
	}
	return files
}
