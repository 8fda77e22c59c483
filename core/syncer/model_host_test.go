package syncer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

const (
	maxLives      = 3
	pushesPerLife = 4
)

// host is a machine: it may live several times, with its disk or an empty one.
type host struct {
	name   string
	index  int
	lives  int
	disk   *disk
	life   *life
	codecs []*chunkCodec
	spool  *Spool
	wrong  mutants
}

// disk is what survives a kill: the circuit's state and the worker's memory of it. The state is a list of marks, one a step.
type disk struct {
	history checkpoint.History
	step    uint64
	marks   []string
	saved   []byte
}

// life is one incarnation.
type life struct {
	h      *host
	w      *world
	rng    *rand.Rand
	disk   *disk
	worker *Worker
	cancel context.CancelFunc
	dead   bool // killed: nothing that it still does is told or saved
	done   chan struct{}
	local  map[uuid.UUID]*heldCheckpoint
	told   []uuid.UUID // checkpoints whose push returned nil
}

func (h *host) actor() string { return fmt.Sprintf("%s%d", h.name, h.lives) }
func (h *host) alive() bool   { return h.life != nil && !h.life.dead && !h.life.ended() }

func (l *life) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// kill is kill -9: what is under way may land, nothing more is saved or told.
func (h *host) kill() {
	h.life.dead = true
	h.life.cancel()
}

// start begins the next life; the scheduler decides what is left of the disk.
func (h *host) start(w *world) {
	h.lives++
	switch {
	case h.disk == nil || w.rng.IntN(2) == 0:
		h.disk = nil
		w.tell("%s starts on an empty disk", h.actor())
	case w.rng.IntN(3) == 0:
		h.disk = &disk{history: h.disk.history, step: h.disk.step, marks: h.disk.marks, saved: []byte("{damaged")}
		w.tell("%s starts on its old disk, its sync state damaged", h.actor())
	default:
		copied := *h.disk
		h.disk = &copied
		w.tell("%s starts on its old disk", h.actor())
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{
		h: h, w: w, rng: rand.New(rand.NewPCG(uint64(h.index), w.rng.Uint64())), disk: h.disk, cancel: cancel,
		done: make(chan struct{}), local: map[uuid.UUID]*heldCheckpoint{},
	}
	h.life = l
	go func() {
		defer close(l.done)
		defer cancel()
		l.run(ctx, pushesPerLife)
	}()
}

// run is what a host does: it takes its state from the disk or the repository, then checkpoints and pushes.
func (l *life) run(ctx context.Context, pushes int) {
	if !l.w.turn(ctx, l.h.actor(), "begins", l.restore) || !l.openWorker() {
		return
	}
	cp := (*heldCheckpoint)(nil)
	for range pushes {
		again := cp != nil && l.rng.IntN(3) == 0
		if !l.w.turn(ctx, l.h.actor(), "takes a checkpoint", nil) {
			return
		}
		if !again {
			cp = l.checkpoint()
		}
		err := l.worker.Push(ctx, Job{Checkpoint: cp.manifest.ID, Trigger: Periodic})
		if l.dead {
			return
		}
		if !l.report(cp, err) {
			return
		}
		if err == nil && l.rng.IntN(2) == 0 {
			l.retain(ctx)
		}
	}
}

// restore chooses the state: the disk's own, else the newest commit of the repository, else a fresh start.
func (l *life) restore() {
	if l.disk != nil {
		return
	}
	lineage := modelID(3, uint64(l.h.index), uint64(l.h.lives))
	l.disk = &disk{history: checkpoint.History{{Lineage: lineage}}}
	if c, marks := l.w.checker.newest(); c != nil {
		point := repository.Point{History: c.Checkpoint.History, Step: c.Checkpoint.Step}
		l.disk = &disk{step: c.Checkpoint.Step, marks: strings.Fields(marks)}
		for _, r := range point.Fork(lineage) {
			l.disk.history = append(l.disk.history, checkpoint.Reign(r))
		}
		l.w.tell("%s restores commit %d", l.h.actor(), c.Number)
	}
	l.h.disk = l.disk
}

func (l *life) openWorker() bool {
	budget := time.Nanosecond // a call that fails once fails its job
	if l.rng.IntN(2) == 0 {
		budget = 10 * time.Second
	}
	w, err := open(Config{
		Target: "t", Prefix: modelPrefix, Store: Direct(gate{w: l.w, actor: l.h.actor()}),
		Pipeline: modelID(1, 0, 0), PipelineName: "p", Host: l.h.name, WrittenBy: "model",
		Writer: repository.Writer{ID: modelID(2, uint64(l.h.index), 0), Incarnation: modelID(2, uint64(l.h.index), uint64(l.h.lives))},
		Spool:  l.h.spool, Fencing: l.w.fencing, RetryBudget: budget, Now: time.Now, Jitter: func() float64 { return 0.5 },
	}, l, l)
	if err != nil {
		l.w.checker.violation("%s: open: %v", l.h.actor(), err)
		return false
	}
	w.packs.codecs = l.h.codecs
	w.codec, w.wrong = l.w.checker.codec, l.h.wrong
	if !l.w.probes {
		w.probe = func(context.Context, bool) ProbeReport { return l.w.rights() }
	}
	w.session = w.newSession()
	l.worker = w
	return true
}

// checkpoint makes one step and a checkpoint of it: all marks so far, and a file that never changes.
func (l *life) checkpoint() *heldCheckpoint {
	l.disk.step++
	l.disk.marks = append(l.disk.marks[:len(l.disk.marks):len(l.disk.marks)], fmt.Sprintf("%s.%d", l.h.actor(), l.disk.step))
	files := map[string][]byte{"marks": []byte(strings.Join(l.disk.marks, " ")), "same": []byte("a file that never changes")}
	m := checkpoint.Manifest{
		ID: modelID(4, uint64(l.h.index)<<8|uint64(l.h.lives), l.disk.step), Step: l.disk.step, Created: time.Now(),
		Incarnation: l.worker.cfg.Writer.Incarnation, Kind: "model", History: l.disk.history,
	}
	for _, path := range []string{"marks", "same"} {
		m.Files = append(m.Files, checkpoint.File{
			Path: path, Size: int64(len(files[path])), Mode: 0o600, Chunks: [][32]byte{sha256.Sum256(files[path])},
		})
	}
	cp := &heldCheckpoint{manifest: m, files: files}
	l.local[m.ID] = cp
	return cp
}

// report tells the checker what the push answered; false when this life ends with it.
func (l *life) report(cp *heldCheckpoint, err error) bool {
	fenced, isFenced := errors.AsType[*FencedError](err)
	held, isHeld := errors.AsType[*HeldError](err)
	lost, isLost := errors.AsType[*LostError](err)
	switch {
	case err == nil && slices.Contains(l.told, cp.manifest.ID):
		l.w.tell("%s knows that step %d is committed", l.h.actor(), cp.manifest.Step)
	case err == nil:
		l.told = append(l.told, cp.manifest.ID)
		l.w.tell("%s REPORTS step %d committed", l.h.actor(), cp.manifest.Step)
		l.w.checker.told(l.w, l.h.actor(), cp)
	case isFenced:
		l.w.tell("%s is fenced: %v", l.h.actor(), err)
		l.w.checker.fenced(l.w, l.h.actor(), fenced)
		return false
	case isHeld:
		l.w.tell("%s is held: commit %d", l.h.actor(), held.Commit)
		l.h.disk = nil // the operator restores
		return false
	case isLost:
		l.w.tell("%s is held: commit %d is lost", l.h.actor(), lost.Was.Number)
		if !l.w.wiped {
			l.w.checker.violation("%s misses commit %d, and nobody wiped the store", l.h.actor(), lost.Was.Number)
		}
		return false
	case isGone(err) && !l.w.wiped:
		l.w.checker.violation("%s: %v, and nobody wiped the store", l.h.actor(), err)
	case errors.Is(err, repository.ErrCorrupt) && !l.w.wiped:
		l.w.checker.violation("%s finds corruption: %v", l.h.actor(), err)
		return false
	default:
		l.w.tell("%s: push of step %d fails: %v", l.h.actor(), cp.manifest.Step, err)
	}
	return true
}

// retain is retention as DESIGN section 7 has it, keeping the newest checkpoint only. A call that fails ends it.
func (l *life) retain(ctx context.Context) {
	t, e := gate{w: l.w, actor: l.h.actor()}, l.worker.Status().Epoch
	gc, err := highestGC(ctx, t)
	if err != nil || gc.Epoch > e || e == 0 {
		return
	}
	numbers, err := numbersOf(ctx, t, repository.CommitPrefix(modelPrefix), repository.ParseCommitKey)
	if err != nil {
		return
	}
	top := uint64(0)
	for i := len(numbers) - 1; i >= 0 && top == 0; i-- {
		data, err := readObject(ctx, t, repository.CommitKey(modelPrefix, numbers[i]), repository.MaxCommit)
		if err != nil {
			return
		}
		if c, err := l.w.checker.codec.decode(numbers[i], data); err == nil && c.Kind == repository.KindCheckpoint && gc.Visible(numbers[i]) {
			top = numbers[i]
		}
	}
	if top <= 1 || top-1 <= gc.UpTo {
		return
	}
	next := repository.GC{
		Number: gc.Number + 1, Epoch: e, Writer: l.worker.cfg.Writer, UpTo: top - 1, Created: time.Now(), WrittenBy: "model",
	}
	body, err := repository.EncodeGC(next)
	if err != nil {
		l.w.checker.violation("encode gc: %v", err)
		return
	}
	if _, err := t.Put(ctx, sdk.PutRequest{Key: repository.GCKey(modelPrefix, next.Number), Body: sdk.BytesBody(body), IfAbsent: true}); err != nil {
		return
	}
	if _, err := readObject(ctx, t, repository.EpochKey(modelPrefix, e+1), repository.MaxSmall); !isNotFound(err) {
		return
	}
	for _, n := range numbers {
		if n < top && t.Delete(ctx, []string{repository.CommitKey(modelPrefix, n)}) != nil {
			return
		}
	}
}

// A life is the source of its checkpoints and the memory of its worker.

func (l *life) pin(id uuid.UUID) (pinned, error) {
	cp, ok := l.local[id]
	if !ok {
		return nil, checkpoint.ErrNone
	}
	return cp, nil
}

func (l *life) load() ([]byte, error) {
	if l.disk.saved == nil {
		return nil, fs.ErrNotExist
	}
	return l.disk.saved, nil
}

func (l *life) save(data []byte) error {
	if !l.dead {
		l.disk.saved = bytes.Clone(data)
	}
	return nil
}

func (l *life) setAside() error { return nil }

// heldCheckpoint is a checkpoint in memory.
type heldCheckpoint struct {
	manifest checkpoint.Manifest
	files    map[string][]byte
}

func (c *heldCheckpoint) Manifest() checkpoint.Manifest { return c.manifest }
func (c *heldCheckpoint) Release()                      {}
func (c *heldCheckpoint) open(f checkpoint.File) (chunkFile, error) {
	return memFile{bytes.NewReader(c.files[f.Path])}, nil
}

type memFile struct{ *bytes.Reader }

func (memFile) Close() error { return nil }

// modelID is a version 7 id made of numbers, the same on every run.
func modelID(kind byte, a, b uint64) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[0:], b+1)
	binary.BigEndian.PutUint64(id[8:], a+1)
	id[0] = kind
	id[6], id[8] = 0x70|id[6]&0x0f, 0x80|id[8]&0x3f
	return id
}
