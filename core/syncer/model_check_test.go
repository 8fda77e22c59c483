package syncer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// checker looks into the store behind everybody's back and knows what was made and what was told. What happens in the store is checked as it
// happens (model_landing_test.go), what is told when it is told.
type checker struct {
	mu       sync.Mutex
	fault    string // the first violation
	acked    []mark // reported and not to be lost
	era      int    // of the store: what was reported in an earlier one is lost
	states   map[uuid.UUID]*heldCheckpoint
	decoded  map[string]*modelCommit // by key
	exist    map[uint64]*modelCommit
	ever     map[uint64]*modelCommit // the first that landed under a number
	ids      map[uuid.UUID]bool      // checkpoints of which a commit has landed
	deleted  map[uint64]bool         // numbers whose commit was deleted once: what comes to life there again is a ghost
	gc       repository.GC
	headThen uint64            // what head was when the store was put back
	head     uint64            // highest commit number that landed
	epoch    uint64            // of that
	pins     map[string]uint64 // acknowledged: the commit by the pin's name
	proven   map[repository.Writer]uint64
	zstd     *chunkDecoder
	codec    commitCodec
	prefixes struct{ commit, epoch, gc, pack, pin string }
}

// mark is one step that was reported, as states name it.
type mark struct {
	name, actor string
	era         int // of the store
}

type modelCommit struct {
	*repository.Commit

	stored []byte
	marks  string // of the restored state, with a blank around each
	fault  error  // why it cannot be restored
}

func newChecker(dec *chunkDecoder, codec commitCodec) *checker {
	c := &checker{states: map[uuid.UUID]*heldCheckpoint{}, zstd: dec, codec: codec}
	c.prefixes.commit, c.prefixes.gc = repository.CommitPrefix(modelPrefix), repository.GCPrefix(modelPrefix)
	c.prefixes.epoch = repository.EpochPrefix(modelPrefix)
	c.prefixes.pack, c.prefixes.pin = repository.PackPrefix(modelPrefix), repository.PinKey(modelPrefix, "")[:len(modelPrefix)+len("/pin/")]
	c.forget()
	return c
}

// forget is what a wiped store leaves.
func (c *checker) forget() {
	c.acked, c.gc, c.head, c.epoch, c.ids = nil, repository.GC{}, 0, 0, map[uuid.UUID]bool{}
	c.decoded, c.exist, c.ever = map[string]*modelCommit{}, map[uint64]*modelCommit{}, map[uint64]*modelCommit{}
	c.deleted, c.pins, c.proven = map[uint64]bool{}, map[string]uint64{}, map[repository.Writer]uint64{}
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

// found is what was violated first; "" = nothing was.
func (c *checker) found() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}

// made: the circuit of a host was in this state.
func (c *checker) made(cp *heldCheckpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states[cp.manifest.ID] = cp
}

// told: a push answered nil. From now on the state may not be lost.
func (c *checker) told(w *world, actor string, cp *heldCheckpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.changed.Store(true)
	if w.wiped {
		c.checkWhole(w.mem, actor, cp)
		return
	}
	if w.rolled {
		c.checkHeld(w.mem, actor, cp)
	}
	for name := range strings.FieldsSeq(string(cp.files["marks"])) {
		if !slices.ContainsFunc(c.acked, func(m mark) bool { return m.name == name }) {
			c.acked = append(c.acked, mark{name, actor, c.era})
		}
	}
	c.checkAcked(actor + " reports success")
}

// checkWhole: success that is told after the store was wiped is about a commit in a repository that can be read. Where the commit of a request
// that came too late lies in the new repository, nobody can build on it, and an operator must see to it.
func (c *checker) checkWhole(mem *sdktest.Mem, actor string, cp *heldCheckpoint) {
	if _, ok := mem.Content(repository.FormatKey(modelPrefix)); !ok {
		c.violated("%s reports success in a store without FORMAT.json", actor)
	}
	for _, m := range c.visible(mem) {
		if m.Kind == repository.KindCheckpoint && (m.Checkpoint.ID == cp.manifest.ID) == (m.fault == nil) {
			return
		}
	}
	c.violated("%s reports success, and no whole commit holds its checkpoint", actor)
}

// visible reads the commits that gc does not hide from the store itself, ascending.
func (c *checker) visible(mem *sdktest.Mem) (line []*modelCommit) {
	gc, err := highestGC(context.Background(), mem)
	if err != nil {
		c.violated("gc: %v", err)
	}
	numbers, err := numbersOf(context.Background(), mem, c.prefixes.commit, repository.ParseCommitKey)
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

// wiped: nothing that was reported or read is there any more.
func (c *checker) wiped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
}

// fenced: a writer stopped. Somebody must have taken over.
func (c *checker) fenced(w *world, actor string, err *FencedError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := w.mem.Content(repository.EpochKey(modelPrefix, err.Epoch+1)); !ok && !w.ruined() {
		c.violated("%s believes it is fenced, but epoch %d does not exist", actor, err.Epoch+1)
	}
}

// checkAcked: the newest commit contains everything that was ever reported.
func (c *checker) checkAcked(who string) {
	if len(c.acked) == 0 {
		return
	}
	newest := c.newest()
	if newest == nil {
		c.violated("%s: success was reported and there is no commit", who)
		return
	}
	if lost := lacking(newest.marks, c.acked); lost != nil {
		c.violated("%s: the newest commit %d lacks %s, which %s reported", who, newest.Number, lost.name, lost.actor)
	}
}

// lacking gives one of the marks that a state has not.
func lacking(state string, marks []mark) *mark {
	for i := range marks {
		if !strings.Contains(state, " "+marks[i].name+" ") {
			return &marks[i]
		}
	}
	return nil
}

// newest is the newest checkpoint commit that gc does not hide.
func (c *checker) newest() *modelCommit {
	for n := c.head; n > 0; n-- {
		if m := c.exist[n]; m != nil && m.Kind == repository.KindCheckpoint && c.gc.Visible(n) {
			return m
		}
	}
	return nil
}

// statuses: none names what was never committed.
func (c *checker) statuses(w *world) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range w.hosts {
		if !h.alive() || h.life.worker == nil {
			continue
		}
		s := h.life.worker.Status()
		if at := s.Committed; at != nil && !w.ruined() { // whoever has not noticed yet names what was there
			if m := c.ever[at.Number]; m == nil || m.Kind != repository.KindCheckpoint || !w.lies && m.Checkpoint.ID != at.Checkpoint {
				c.violated("%s: status names checkpoint %s (step %d) as commit %d, which is not its commit", h.actor(), at.Checkpoint, at.Step, at.Number)
			}
		}
		for _, id := range []uuid.UUID{s.Success, s.Periodic} {
			if id != uuid.Nil && !w.wiped && !c.committed(id) {
				c.violated("%s: status names checkpoint %s, which was never committed", h.actor(), id)
			}
		}
		for _, rec := range s.Jobs {
			if rec.State == JobSucceeded && rec.Commit == 0 {
				c.violated("%s: job %d succeeded without a commit", h.actor(), rec.ID)
			}
		}
	}
}

func (c *checker) committed(id uuid.UUID) bool { return c.ids[id] }

// commit reads what lies under a number, and restores it.
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
	if commit.Kind == repository.KindCheckpoint {
		files, err := c.restore(mem, commit)
		if err == nil {
			err = c.isState(commit, files)
		}
		m.fault, m.marks = err, " "+string(files["marks"])+" "
	}
	c.decoded[key] = m
	return m
}

// restore reads the files of a commit, none of which is longer than a chunk, by the checker's own reading of the format.
func (c *checker) restore(mem *sdktest.Mem, commit *repository.Commit) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, f := range commit.Files {
		files[f.Path] = make([]byte, f.Size)
		for _, chunk := range f.Chunks {
			if chunk.Encoding == repository.Hole {
				continue
			}
			pack, ok := mem.Content(repository.PackKey(modelPrefix, commit.Packs[chunk.Pack]))
			if !ok || chunk.Offset+chunk.Stored > int64(len(pack)) {
				return nil, fmt.Errorf("file %q: no such range of pack %s", f.Path, commit.Packs[chunk.Pack])
			}
			content := pack[chunk.Offset : chunk.Offset+chunk.Stored]
			if chunk.Encoding == repository.Zstd {
				var err error
				if content, err = c.zstd.zstd.DecodeAll(content, nil); err != nil {
					return nil, err
				}
			}
			copy(files[f.Path], content)
		}
	}
	return files, nil
}

// isState: these are the files of the state that the circuit had when it made the checkpoint, each byte of them and no others.
func (c *checker) isState(commit *repository.Commit, files map[string][]byte) error {
	made := c.states[commit.Checkpoint.ID]
	if made == nil {
		return errors.New("no circuit ever made its checkpoint")
	}
	if len(files) != len(made.files) {
		return fmt.Errorf("%d files, the circuit had %d", len(files), len(made.files))
	}
	for path, content := range made.files {
		if got, ok := files[path]; !ok || !bytes.Equal(got, content) {
			return fmt.Errorf("file %q: %q, the circuit had %q", path, got, content)
		}
	}
	return nil
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
