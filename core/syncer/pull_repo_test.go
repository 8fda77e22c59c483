package syncer

import (
	"bytes"
	"context"
	"encoding/binary"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

const testPrefix = "strikes"

func startOfTime() time.Time { return time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) }

// idOf is a uuid v7 known by a number.
func idOf(n uint64) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:], n<<16)
	id[6], id[8] = 0x70, 0x80
	binary.BigEndian.PutUint32(id[12:], uint32(n))
	return id
}

// noise is content that does not compress; text is content that does.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func text(line string, n int) []byte { return bytes.Repeat([]byte(line), n/len(line)+1)[:n] }

// content is a checkpoint's files: path to bytes, mode 0600 unless modes says otherwise.
type content map[string][]byte

func (c content) mode(path string) fs.FileMode {
	if bytes.HasPrefix([]byte(path), []byte("ro/")) {
		return 0o440
	}
	return 0o600
}

// author writes a repository object by object, by the format alone: what it writes owes nothing to the pusher.
type author struct {
	t       testing.TB
	mem     *sdktest.Mem
	epoch   uint64
	number  uint64
	sum     repository.Digest
	base    *repository.Commit
	commits map[uint64]*repository.Commit
	gcs     uint64
	past    repository.History // the lineages before the current one
	packOf  int64              // bytes at which a pack is closed early; 0 = only when it is full
}

func newAuthor(t testing.TB) *author {
	a := &author{t: t, mem: sdktest.NewMem(), commits: map[uint64]*repository.Commit{}}
	f := repository.Format{
		RepositoryID: idOf(1), PipelineID: idOf(2), PipelineName: "strikes", Created: startOfTime(), WrittenBy: "cairn 0.1.0",
	}
	a.plant(repository.FormatKey(testPrefix), must(repository.EncodeFormat(f)))
	a.plant(repository.ReadmeKey(testPrefix), repository.ReadmeText(f))
	a.reign()
	return a
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func (a *author) plant(key string, content []byte) { a.mem.Plant(key, content) }

func (a *author) writer() repository.Writer {
	return repository.Writer{ID: idOf(3), Incarnation: idOf(100 + a.epoch)}
}

func (a *author) at() time.Time { return startOfTime().Add(time.Duration(a.number) * time.Minute) }

// reign claims the next epoch and seals the line.
func (a *author) reign() {
	a.epoch++
	a.plant(repository.EpochKey(testPrefix, a.epoch), must(repository.EncodeEpoch(repository.Epoch{
		Number: a.epoch, Writer: a.writer(), Host: "db-1", Started: a.at(), WrittenBy: "cairn 0.1.0",
	})))
	a.add(&repository.Commit{Kind: repository.KindSeal})
}

// add completes a commit as the next of the line and stores it.
func (a *author) add(c *repository.Commit) {
	a.number++
	c.Number, c.Epoch, c.Writer, c.Parent, c.Created, c.WrittenBy = a.number, a.epoch, a.writer(), a.sum, a.at(), "cairn 0.1.0"
	if c.Kind == repository.KindCheckpoint {
		c.Totals = repository.TotalsOf(c)
		a.base = c
	}
	stored := must(repository.EncodeCommit(c))
	a.sum = repository.Sum(stored)
	a.commits[c.Number] = c
	a.plant(repository.CommitKey(testPrefix, c.Number), stored)
}

// commit pushes files as the checkpoint idOf(1000+step).
func (a *author) commit(step uint64, files content) *repository.Commit {
	a.t.Helper()
	plan, err := repository.PlanPush(a.base, sourcesOf(files))
	if err != nil {
		a.t.Fatal(err)
	}
	packs, rows := a.pack(plan, files)
	c := &repository.Commit{Kind: repository.KindCheckpoint, Packs: packs, Files: rows, Checkpoint: repository.Checkpoint{
		ID: idOf(1000 + step), Step: step, Created: startOfTime().Add(time.Duration(step) * time.Second), Incarnation: idOf(100 + a.epoch),
		Identity: repository.Identity{Kind: "sql", Fingerprint: repository.Sum([]byte("schema"))},
		History:  append(slices.Clone(a.past), repository.Reign{Lineage: idOf(50 + uint64(len(a.past))), UpTo: step}),
	}}
	a.add(c)
	return c
}

func (a *author) pack(plan *repository.PushPlan, files content) ([]repository.PackID, []repository.File) {
	a.t.Helper()
	b := repository.NewBuilder(plan, a.epoch, a.number+1)
	var packs []*bytes.Buffer
	sealed := 0 // of packs; without packOf they are closed at the end
	for _, n := range plan.New {
		from := int64(n.Index) * repository.ChunkSize
		raw := files[plan.Files[n.File].Path][from : from+n.Length]
		encoding, stored := repository.Raw, raw
		if z := compress(raw); len(z) < len(raw) {
			encoding, stored = repository.Zstd, z
		}
		i, off, err := b.Add(n.Digest, encoding, int64(len(stored)))
		if err != nil {
			a.t.Fatal(err)
		}
		if i == len(packs) {
			packs = append(packs, &bytes.Buffer{})
		}
		if int64(packs[i].Len()) != off {
			a.t.Fatalf("offset %d of a pack of %d bytes", off, packs[i].Len())
		}
		packs[i].Write(stored)
		if a.packOf > 0 && b.PackSize(i) >= a.packOf {
			a.seal(b, i, packs[i].Bytes())
			sealed = i + 1
		}
	}
	for i := sealed; i < len(packs); i++ {
		a.seal(b, i, packs[i].Bytes())
	}
	table, rows, err := b.Tables()
	if err != nil {
		a.t.Fatal(err)
	}
	return table, rows
}

func (a *author) seal(b *repository.Builder, pack int, content []byte) {
	a.t.Helper()
	id, err := b.Seal(pack, repository.Sum(content))
	if err != nil {
		a.t.Fatal(err)
	}
	a.plant(repository.PackKey(testPrefix, id), content)
}

func compress(raw []byte) []byte {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic(err)
	}
	return e.EncodeAll(raw, nil)
}

func sourcesOf(files content) []repository.Source {
	var sources []repository.Source
	for _, p := range slices.Sorted(maps.Keys(files)) {
		s := repository.Source{Path: p, Size: int64(len(files[p])), Mode: files.mode(p)}
		for piece := range slices.Chunk(files[p], repository.ChunkSize) {
			s.Chunks = append(s.Chunks, repository.Sum(piece))
		}
		sources = append(sources, s)
	}
	return sources
}

// retire makes gc say that commits at or below upTo are gone, save kept, and deletes them and the packs that only they named.
func (a *author) retire(upTo uint64, kept ...uint64) {
	a.gcs++
	g := repository.GC{
		Number: a.gcs, Epoch: a.epoch, Writer: a.writer(), UpTo: upTo, Kept: kept, Created: a.at(), WrittenBy: "cairn 0.1.0",
	}
	a.plant(repository.GCKey(testPrefix, a.gcs), must(repository.EncodeGC(g)))
	used := map[repository.PackID]bool{}
	for n, c := range a.commits {
		for _, id := range c.Packs {
			used[id] = used[id] || g.Visible(n)
		}
	}
	for n := range a.commits {
		if !g.Visible(n) {
			a.remove(repository.CommitKey(testPrefix, n))
			delete(a.commits, n)
		}
	}
	for id, still := range used {
		if !still {
			a.remove(repository.PackKey(testPrefix, id))
		}
	}
}

func (a *author) remove(key string) {
	a.t.Helper()
	if err := a.mem.Delete(context.Background(), []string{key}); err != nil {
		a.t.Fatal(err)
	}
}

// ticking is a clock that is a second later at each look, so that a call that always fails comes to the end of its budget.
func ticking() func() time.Time {
	var looks atomic.Int64
	return func() time.Time { return startOfTime().Add(time.Duration(looks.Add(1)) * time.Second) }
}

// reader reads from a target, with retries that do not wait.
func readerOf(t testing.TB, target sdk.Target) *Reader {
	t.Helper()
	r, err := NewReader(ReaderConfig{
		Target: "offsite", Prefix: testPrefix, Store: Direct(target), RetryBudget: 10 * time.Second,
		Now: ticking(), Jitter: func() float64 { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func spoolOf(t testing.TB) *Spool {
	t.Helper()
	s, err := OpenSpool(filepath.Join(t.TempDir(), "spool"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		entries, err := os.ReadDir(s.Dir())
		if err != nil || len(entries) > 1 { // the mark
			t.Errorf("the spool is left with %v, %v", entries, err)
		}
		s.Close()
	})
	return s
}

func localOf(t testing.TB) (*checkpoint.Dir, *checkpoint.Store) {
	t.Helper()
	d, err := checkpoint.OpenDir(t.TempDir(), checkpoint.Options{Now: startOfTime})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, d.Checkpoints()
}

// sameFiles compares a directory with content, byte for byte, modes too.
func sameFiles(t testing.TB, dir string, want content) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		expected, ok := want[rel]
		if !ok || !bytes.Equal(got, expected) {
			t.Errorf("file %q: %d bytes, not those of the checkpoint (known: %v, %d bytes)", rel, len(got), ok, len(expected))
		}
		if info.Mode() != want.mode(rel) {
			t.Errorf("file %q has mode %v, want %v", rel, info.Mode(), want.mode(rel))
		}
		seen++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != len(want) {
		t.Errorf("%d files, want %d", seen, len(want))
	}
}

// pin keeps a commit; the caller says which.
func (a *author) pin(p repository.Pin) {
	p.Created, p.By, p.WrittenBy = a.at(), "db-1", "cairn 0.1.0"
	a.plant(repository.PinKey(testPrefix, p.Name), must(repository.EncodePin(p)))
}
