package syncer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// checker looks into the store behind everybody's back and knows what was told.
type checker struct {
	mu      sync.Mutex
	fault   string // the first violation
	acked   map[string]string
	decoded map[string]*modelCommit // by key
	line    []*modelCommit          // visible, as of the last change of the store
	zstd    *zstd.Decoder
	codec   commitCodec
}

type modelCommit struct {
	*repository.Commit

	stored []byte
	marks  string // the restored state of a checkpoint
	fault  error  // why it cannot be restored
}

func newChecker(dec *zstd.Decoder, codec commitCodec) *checker {
	return &checker{acked: map[string]string{}, decoded: map[string]*modelCommit{}, zstd: dec, codec: codec}
}

func (c *checker) violation(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violated(format, args...)
}

func (c *checker) violated(format string, args ...any) {
	if c.fault == "" {
		c.fault = fmt.Sprintf(format, args...)
	}
}

// told: a push answered nil. From now on the state may not be lost.
func (c *checker) told(w *world, actor string, cp *heldCheckpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line = c.visible(w.mem)
	if w.wiped {
		c.checkWhole(w.mem, actor, cp)
		return
	}
	for _, mark := range strings.Fields(string(cp.files["marks"])) {
		c.acked[mark] = actor
	}
	c.checkAcked(actor + " reports success")
}

// checkWhole: success that is told after the store was wiped is about a commit in a repository that can be read. Where the commit of a request
// that came too late lies in the new repository, nobody can build on it, and an operator must see to it.
func (c *checker) checkWhole(mem *sdktest.Mem, actor string, cp *heldCheckpoint) {
	if _, ok := mem.Content(repository.FormatKey(modelPrefix)); !ok {
		c.violated("%s reports success in a store without FORMAT.json", actor)
	}
	for _, m := range c.line {
		if m.Kind == repository.KindCheckpoint && (m.Checkpoint.ID == cp.manifest.ID) == (m.fault == nil) {
			return
		}
	}
	c.violated("%s reports success, and no whole commit holds its checkpoint", actor)
}

// wiped: nothing that was reported or read is there any more.
func (c *checker) wiped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.acked)
	clear(c.decoded)
}

// fenced: a writer stopped. Somebody must have taken over.
func (c *checker) fenced(w *world, actor string, err *FencedError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := w.mem.Content(repository.EpochKey(modelPrefix, err.Epoch+1)); !ok && !w.wiped {
		c.violated("%s believes it is fenced, but epoch %d does not exist", actor, err.Epoch+1)
	}
}

// check holds the store to the invariants, after it has changed.
func (c *checker) check(w *world) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line = c.visible(w.mem)
	c.checkStatus(w)
	if w.wiped {
		return
	}
	c.checkLine(w.mem)
	c.checkAcked("the store")
}

// checkLine: one line of history, each listed commit restorable.
func (c *checker) checkLine(mem *sdktest.Mem) {
	var before *modelCommit
	for _, m := range c.line {
		if before != nil {
			switch {
			case m.Epoch < before.Epoch:
				c.violated("epochs go down along the listed commits: %d after %d at commit %d", m.Epoch, before.Epoch, m.Number)
			case m.Number == before.Number+1 && m.Parent != repository.Sum(before.stored):
				c.violated("commit %d does not follow commit %d", m.Number, before.Number)
			case m.Number != before.Number+1 && m.Epoch == before.Epoch && m.Kind == repository.KindSeal:
				c.violated("commit numbers have a hole below %d", m.Number)
			}
		}
		before = m
		if m.Kind != repository.KindCheckpoint {
			continue
		}
		if m.fault != nil {
			c.violated("commit %d is listed and cannot be restored: %v", m.Number, m.fault)
		}
		for _, p := range m.Packs {
			if _, ok := mem.Content(repository.PackKey(modelPrefix, p)); !ok {
				c.violated("commit %d is listed, but pack %s is gone", m.Number, p)
			}
		}
	}
}

// checkAcked: the newest commit contains everything that was ever reported.
func (c *checker) checkAcked(who string) {
	if len(c.acked) == 0 {
		return
	}
	newest, marks := c.newestLocked()
	if newest == nil {
		c.violated("%s: success was reported and there is no commit", who)
		return
	}
	has := " " + marks + " "
	for mark, actor := range c.acked {
		if !strings.Contains(has, " "+mark+" ") {
			c.violated("%s: the newest commit %d lacks %s, which %s reported", who, newest.Number, mark, actor)
			return
		}
	}
}

// checkStatus: no status names an id without a commit.
func (c *checker) checkStatus(w *world) {
	for _, h := range w.hosts {
		if !h.alive() || h.life.worker == nil {
			continue
		}
		s := h.life.worker.Status()
		if s.Committed != nil && s.Committed.Number == 0 {
			c.violated("%s: status names checkpoint %s without a commit", h.actor(), s.Committed.Checkpoint)
		}
		for _, rec := range s.Jobs {
			if rec.State == JobSucceeded && rec.Commit == 0 {
				c.violated("%s: job %d succeeded without a commit", h.actor(), rec.ID)
			}
		}
	}
}

func (c *checker) newest() (*repository.Commit, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, marks := c.newestLocked()
	if m == nil {
		return nil, ""
	}
	return m.Commit, marks
}

func (c *checker) newestLocked() (*modelCommit, string) {
	for i := len(c.line) - 1; i >= 0; i-- {
		if c.line[i].Kind == repository.KindCheckpoint {
			return c.line[i], c.line[i].marks
		}
	}
	return nil, ""
}

// visible gives the listed commits that gc does not hide, ascending.
func (c *checker) visible(mem *sdktest.Mem) (line []*modelCommit) {
	gc, err := highestGC(context.Background(), mem)
	if err != nil {
		c.violated("gc: %v", err)
	}
	numbers, err := numbersOf(context.Background(), mem, repository.CommitPrefix(modelPrefix), repository.ParseCommitKey)
	if err != nil {
		c.violated("list commits: %v", err)
	}
	for _, n := range numbers {
		if gc.Visible(n) {
			line = append(line, c.commit(mem, n))
		}
	}
	return line
}

func (c *checker) commit(mem *sdktest.Mem, n uint64) *modelCommit {
	key := repository.CommitKey(modelPrefix, n)
	stored, _ := mem.Content(key)
	if m := c.decoded[key]; m != nil && bytes.Equal(m.stored, stored) {
		return m
	}
	commit, err := c.codec.decode(n, stored)
	if err != nil {
		c.violated("commit %d: %v", n, err)
		commit = &repository.Commit{Number: n}
	}
	m := &modelCommit{Commit: commit, stored: stored}
	for _, f := range commit.Files {
		content, err := c.restore(mem, commit, f)
		if err != nil {
			m.fault = errors.Join(m.fault, err)
		}
		if f.Path == "marks" {
			m.marks = string(content)
		}
	}
	c.decoded[key] = m
	return m
}

// restore reads a file of one chunk.
func (c *checker) restore(mem *sdktest.Mem, commit *repository.Commit, f repository.File) ([]byte, error) {
	chunk := f.Chunks[0]
	pack, ok := mem.Content(repository.PackKey(modelPrefix, commit.Packs[chunk.Pack]))
	if !ok || chunk.Offset+chunk.Stored > int64(len(pack)) {
		return nil, fmt.Errorf("file %q: no such range of pack %s", f.Path, commit.Packs[chunk.Pack])
	}
	content := pack[chunk.Offset : chunk.Offset+chunk.Stored]
	if chunk.Encoding == repository.Zstd {
		var err error
		if content, err = c.zstd.DecodeAll(content, nil); err != nil {
			return nil, err
		}
	}
	if sha256.Sum256(content) != chunk.Digest {
		return nil, fmt.Errorf("file %q: other bytes than were pushed", f.Path)
	}
	return content, nil
}

// plainCodec stores commits as uncompressed JSON.
func plainCodec() commitCodec {
	return commitCodec{
		encode: func(c *repository.Commit) ([]byte, error) { return json.Marshal(c) },
		decode: func(n uint64, stored []byte) (*repository.Commit, error) {
			c := &repository.Commit{}
			if err := json.Unmarshal(stored, c); err != nil || c.Number != n {
				return nil, fmt.Errorf("commit %d: %w", n, repository.ErrCorrupt)
			}
			return c, nil
		},
	}
}
