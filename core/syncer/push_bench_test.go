package syncer

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// bench is one machine with checkpoints on a real disk, before a store in memory that can be made to fail.
type bench struct {
	t       *testing.T
	mem     *sdktest.Mem
	store   *sdktest.Faulty
	root    string
	dir     *checkpoint.Dir
	spool   *Spool
	writer  repository.Writer
	history checkpoint.History
	host    string
}

// pipelineID is the same on all machines of a test.
func pipelineID() uuid.UUID { return uuid.MustParse("0192f3d0-0000-7000-8000-00000000aaaa") }

func newBench(t *testing.T) *bench { return newBenchOn(t, sdktest.NewMem(), "alpha") }

func newBenchOn(t *testing.T, mem *sdktest.Mem, host string) *bench {
	t.Helper()
	b := &bench{t: t, mem: mem, store: &sdktest.Faulty{Target: mem}, root: t.TempDir(), host: host}
	b.writer = repository.Writer{ID: uuid.Must(uuid.NewV7()), Incarnation: uuid.Must(uuid.NewV7())}
	b.history = checkpoint.History{{Lineage: uuid.Must(uuid.NewV7())}}
	var err error
	if b.dir, err = checkpoint.OpenDir(filepath.Join(b.root, "storage"), checkpoint.Options{Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.dir.Close() })
	if b.spool, err = OpenSpool(filepath.Join(b.root, "spool")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.spool.Close() })
	return b
}

// worker opens a worker of this machine's present incarnation. Its backoff waits for nothing.
func (b *bench) worker(change ...func(*Config)) *Worker {
	b.t.Helper()
	cfg := Config{
		Target: "offsite", Prefix: "strikes", Store: Direct(b.store), Pipeline: pipelineID(), PipelineName: "strikes",
		Writer: b.writer, Host: b.host, WrittenBy: "cairn test", Local: b.dir.Checkpoints(), Spool: b.spool,
		StateFile: b.dir.SyncFile("offsite"), Now: time.Now, Jitter: func() float64 { return 0 }, RetryBudget: time.Nanosecond,
	}
	for _, f := range change {
		f(&cfg)
	}
	w, err := Open(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	return w
}

// restart is the next incarnation of the same machine.
func (b *bench) restart(change ...func(*Config)) *Worker {
	b.writer.Incarnation = uuid.Must(uuid.NewV7())
	return b.worker(change...)
}

// publish makes a local checkpoint.
func (b *bench) publish(step uint64, files map[string]string) uuid.UUID {
	b.t.Helper()
	draft, err := b.dir.Checkpoints().Begin()
	if err != nil {
		b.t.Fatal(err)
	}
	for path, content := range files {
		full := filepath.Join(draft.Dir(), path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o700), os.WriteFile(full, []byte(content), 0o600)); err != nil {
			b.t.Fatal(err)
		}
	}
	m, err := draft.Publish(b.t.Context(), checkpoint.Meta{
		Step: step, Created: time.Now(), Incarnation: b.writer.Incarnation, Kind: "test", History: b.history,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return m.ID
}

// file is the path of a file of a published checkpoint.
func (b *bench) file(id uuid.UUID, path string) string {
	b.t.Helper()
	p, err := b.dir.Checkpoints().Pin(id)
	if err != nil {
		b.t.Fatal(err)
	}
	defer p.Release()
	return filepath.Join(p.Dir(), path)
}

func (b *bench) push(w *Worker, id uuid.UUID, trigger Trigger) error {
	b.t.Helper()
	return w.Push(b.t.Context(), Job{Checkpoint: id, Trigger: trigger})
}

func (b *bench) mustPush(w *Worker, id uuid.UUID, trigger Trigger) {
	b.t.Helper()
	if err := b.push(w, id, trigger); err != nil {
		b.t.Fatal(err)
	}
}

// commits reads all commits in the store, by number.
func (b *bench) commits() map[uint64]*repository.Commit {
	b.t.Helper()
	found := map[uint64]*repository.Commit{}
	for _, key := range b.mem.Keys() {
		n, err := repository.ParseCommitKey("strikes", key)
		if err != nil {
			continue
		}
		data, _ := b.mem.Content(key)
		if found[n], err = repository.DecodeCommit(n, data); err != nil {
			b.t.Fatal(err)
		}
	}
	return found
}

// newest is the commit with the highest number.
func (b *bench) newest() *repository.Commit {
	b.t.Helper()
	all := b.commits()
	top := uint64(0)
	for n := range maps.Keys(all) {
		top = max(top, n)
	}
	return all[top]
}

// content restores a commit from the store's bytes and compares digests on the way.
func (b *bench) content(c *repository.Commit) map[string]string {
	b.t.Helper()
	codec, err := newChunkCodec()
	if err != nil {
		b.t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range c.Files {
		var text strings.Builder
		for i, ch := range f.Chunks {
			text.Write(b.chunk(codec, c, ch, f.ChunkLen(i)))
		}
		got[f.Path] = text.String()
	}
	return got
}

func (b *bench) chunk(codec *chunkCodec, c *repository.Commit, ch repository.Chunk, length int64) []byte {
	b.t.Helper()
	content := make([]byte, length)
	if ch.Encoding != repository.Hole {
		pack, ok := b.mem.Content(repository.PackKey("strikes", c.Packs[ch.Pack]))
		if !ok || repository.Sum(pack) != c.Packs[ch.Pack].SHA256 {
			b.t.Fatalf("commit %d: pack %s is missing or damaged", c.Number, c.Packs[ch.Pack])
		}
		content = pack[ch.Offset : ch.Offset+ch.Stored]
	}
	if ch.Encoding == repository.Zstd {
		var err error
		if content, err = codec.dec.DecodeAll(content, nil); err != nil {
			b.t.Fatal(err)
		}
	}
	if repository.Sum(content) != ch.Digest {
		b.t.Fatalf("commit %d: a chunk is not what it was", c.Number)
	}
	return content
}

// failOn makes the nth call of that kind fail with the code; after = the call has happened when it fails.
func (b *bench) failOn(op, part string, nth int, code sdk.Code, after bool) {
	seen := 0
	hit := func(call sdktest.Call) error {
		if call.Op != op || !strings.Contains(call.Key, part) {
			return nil
		}
		if seen++; seen == nth {
			return &sdk.Error{Code: code, Op: op, Key: call.Key}
		}
		return nil
	}
	b.store.Before, b.store.After = nil, nil
	if after {
		b.store.After = func(_ context.Context, call sdktest.Call, err error) error { return errors.Join(err, hit(call)) }
		return
	}
	b.store.Before = func(_ context.Context, call sdktest.Call) error { return hit(call) }
}

func (b *bench) heal() { b.store.Before, b.store.After, b.store.Body = nil, nil, nil }

// Short names for the hooks' parameters.
type (
	ctxt  = context.Context
	callt = sdktest.Call
)

// record is a hook that lists the calls.
func record(calls *[]string) func(ctxt, callt) error {
	var mu sync.Mutex
	return func(_ ctxt, c callt) error {
		mu.Lock()
		defer mu.Unlock()
		*calls = append(*calls, c.Op+" "+c.Key)
		return nil
	}
}
