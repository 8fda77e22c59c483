package syncer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
)

const (
	maxLives      = 3
	pushesPerLife = 4
)

// host is a machine that runs a pipeline: it may live several times, with its disk or an empty one.
type host struct {
	*machine
	index   int
	lives   int
	standby bool // it follows the repository until it is activated
	disk    *disk
	life    *life
	codecs  []*chunkCodec
	spool   *Spool
	wrong   mutants
}

// disk is what survives a kill: the circuit's state, its newest checkpoint and the worker's memory of it. The state is a list of marks, one a
// step.
type disk struct {
	history checkpoint.History
	step    uint64
	marks   []string
	newest  *heldCheckpoint
	saved   []byte
}

// life is one incarnation.
type life struct {
	h      *host
	w      *world
	ctx    context.Context
	rng    *rand.Rand
	disk   *disk
	worker *Worker
	cancel context.CancelFunc
	dead   atomic.Bool // killed: nothing that it still does is told or saved
	done   chan struct{}
	local  map[uuid.UUID]*heldCheckpoint
	told   []uuid.UUID // checkpoints whose push returned nil
	upkeep upkeepBeside

	activated   bool   // it was a standby, and is to take over
	displacedAt uint64 // another was activated in its place before it began: the head of the line that said so; 0 = no
}

func (h *host) actor() string { return fmt.Sprintf("%s%d", h.name, h.lives) }
func (h *host) alive() bool   { return h.life != nil && !h.life.dead.Load() && !h.life.ended() }

func (l *life) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

func (l *life) turn(what string, do func()) bool {
	return l.w.turn(l.ctx, l.h.machine, l.h.actor(), what, do)
}

func (l *life) gate() gate { return gate{w: l.w, on: l.h.machine, actor: l.h.actor()} }

// kill is kill -9: what is under way may land, nothing more is saved or told.
func (h *host) kill() {
	h.life.dead.Store(true)
	h.life.cancel()
}

// start begins the next life; the scheduler decides what is left of the disk.
func (h *host) start(w *world) {
	h.lives++
	switch {
	case h.disk == nil || w.rng.IntN(3) == 0:
		h.disk = nil
		w.narrate("%s starts on an empty disk", h.actor())
	case w.rng.IntN(4) == 0:
		copied := *h.disk
		copied.saved = []byte("{damaged")
		h.disk = &copied
		w.narrate("%s starts on its old disk, its sync state damaged", h.actor())
	default:
		copied := *h.disk
		h.disk = &copied
		w.narrate("%s starts on its old disk", h.actor())
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{
		h: h, w: w, ctx: ctx, rng: rand.New(rand.NewPCG(uint64(h.index), w.rng.Uint64())), disk: h.disk, cancel: cancel,
		done: make(chan struct{}), local: map[uuid.UUID]*heldCheckpoint{},
	}
	if l.disk != nil && l.disk.newest != nil {
		l.local[l.disk.newest.manifest.ID] = l.disk.newest
	}
	h.life = l
	go func() {
		defer close(l.done)
		defer cancel()
		l.run()
		l.upkeep.running.Wait()
	}()
}

// run is what a host does: it takes its state from the disk or the repository, then checkpoints and pushes, and keeps the repository tidy beside.
func (l *life) run() {
	if !l.turn("begins", nil) || !l.restore() || !l.openWorker() {
		return
	}
	if l.activated && !l.takeOver() {
		return
	}
	l.resumes()
	cp := l.disk.newest
	for range pushesPerLife {
		again := cp != nil && l.rng.IntN(3) == 0
		if !l.turn("takes a checkpoint", nil) {
			return
		}
		if !again {
			cp = l.checkpoint()
		}
		trigger := Periodic
		if l.rng.IntN(4) == 0 {
			trigger = Requested
		}
		err := l.worker.Push(l.ctx, Job{Checkpoint: cp.manifest.ID, Trigger: trigger})
		if l.dead.Load() {
			return
		}
		if !l.report(cp, trigger, err) {
			return
		}
		if err == nil {
			l.keepHouse()
		}
	}
}

// restore chooses the state as a start does: the disk's own, else the newest commit of the repository, else, when it is proven that there is
// none, a fresh one. A standby follows until it is activated.
func (l *life) restore() bool {
	if l.disk != nil {
		return true
	}
	var copied *pulled
	if l.h.standby {
		var activated bool
		if copied, activated = l.follow(); !activated {
			return false
		}
	} else {
		var before []mark
		if !l.turn("asks for the newest commit", func() { before = l.w.checker.reported() }) {
			return false
		}
		got, err := l.w.pull(l.ctx, l.gate(), Selector{})
		l.w.checker.pulled(l.w, l.h.actor(), got, err, before)
		switch {
		case err == nil:
			copied = got
		case !errors.Is(err, ErrNoCommit):
			l.w.tell("%s cannot start: %v", l.h.actor(), err)
			return false
		}
	}
	l.disk = l.diskOf(copied)
	l.h.disk = l.disk
	return true
}

// diskOf is the state that continues from what was pulled under a lineage of its own; nil = a fresh one.
func (l *life) diskOf(from *pulled) *disk {
	lineage := modelID(3, uint64(l.h.index), uint64(l.h.lives))
	if from == nil {
		l.w.tell("%s starts fresh", l.h.actor())
		return &disk{history: checkpoint.History{{Lineage: lineage}}}
	}
	cp := from.commit.Checkpoint
	point := repository.Point{History: cp.History, Step: cp.Step}
	d := &disk{step: cp.Step, marks: strings.Fields(string(from.files["marks"]))}
	for _, r := range point.Fork(lineage) {
		d.history = append(d.history, checkpoint.Reign(r))
	}
	l.w.tell("%s continues from commit %d, step %d", l.h.actor(), from.commit.Number, cp.Step)
	return d
}

func (l *life) openWorker() bool {
	budget := time.Nanosecond // a call that fails once fails its job
	if l.rng.IntN(2) == 0 {
		budget = 10 * time.Second
	}
	w, err := open(Config{
		Target: "t", Prefix: modelPrefix, Store: Direct(l.gate()),
		Pipeline: modelID(1, 0, 0), PipelineName: "p", Host: l.h.name, WrittenBy: "model",
		Writer: repository.Writer{ID: modelID(2, uint64(l.h.index), 0), Incarnation: modelID(2, uint64(l.h.index), uint64(l.h.lives))},
		Spool:  l.h.spool, Fencing: l.w.fencing, RetryBudget: budget, Now: l.h.now, Jitter: func() float64 { return 0.5 },
		Retention: l.w.policy,
	}, l, l)
	if errors.Is(err, syscall.ENOSPC) {
		l.w.tell("%s cannot start: %v", l.h.actor(), err)
		return false
	}
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
	w.stand = w.session.standing()
	l.worker = w
	l.w.checker.began(l)
	return true
}

// checkpoint makes one step and a checkpoint of it: all marks so far, files that change now and then and come back to what they were, one
// that never changes, an empty one and one that is a hole.
func (l *life) checkpoint() *heldCheckpoint {
	l.disk.step++
	step := l.disk.step
	l.disk.marks = append(l.disk.marks[:len(l.disk.marks):len(l.disk.marks)], fmt.Sprintf("%s.%d", l.h.actor(), step))
	cp := &heldCheckpoint{files: map[string][]byte{
		"empty": nil, "hole": make([]byte, 100), "marks": []byte(strings.Join(l.disk.marks, " ")), "same": []byte("a file that never changes"),
		"shard/0": fmt.Appendf(nil, "the first shard, %d", step/2%2), "shard/1": fmt.Appendf(nil, "the second shard, %d", step/3%2),
	}}
	cp.manifest = checkpoint.Manifest{
		ID: modelID(4, uint64(l.h.index)<<8|uint64(l.h.lives), step), Step: step, Created: l.h.now(),
		Incarnation: l.worker.cfg.Writer.Incarnation, Kind: "model", History: l.disk.history,
	}
	for _, path := range slices.Sorted(maps.Keys(cp.files)) {
		file := checkpoint.File{Path: path, Size: int64(len(cp.files[path])), Mode: 0o600}
		if file.Size > 0 {
			file.Chunks = [][32]byte{sha256.Sum256(cp.files[path])}
		}
		cp.manifest.Files = append(cp.manifest.Files, file)
	}
	l.disk.newest = cp
	l.local[cp.manifest.ID] = cp
	l.w.checker.made(cp)
	return cp
}

// report tells the checker what the push answered; false when this life ends with it.
func (l *life) report(cp *heldCheckpoint, trigger Trigger, err error) bool {
	fenced, isFenced := errors.AsType[*FencedError](err)
	held, isHeld := errors.AsType[*HeldError](err)
	lost, isLost := errors.AsType[*LostError](err)
	switch {
	case err == nil && slices.Contains(l.told, cp.manifest.ID):
		l.w.tell("%s knows that step %d is committed", l.h.actor(), cp.manifest.Step)
		if trigger == Requested { // it has looked
			l.w.checker.told(l.w, l.h.actor(), cp)
		}
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
		if !l.w.ruined() {
			l.w.checker.violation("%s misses commit %d, and nobody wiped the store", l.h.actor(), lost.Was.Number)
		}
		return false
	case isGone(err) && !l.w.ruined():
		l.w.checker.violation("%s: %v, and nobody wiped the store", l.h.actor(), err)
	case errors.Is(err, repository.ErrCorrupt) && !l.w.ruined():
		l.w.checker.violation("%s finds corruption: %v", l.h.actor(), err)
		return false
	default:
		l.w.tell("%s: push of step %d fails: %v", l.h.actor(), cp.manifest.Step, err)
	}
	return true
}

// createTemp makes the files of the host's spool.
func (h *host) createTemp(dir, pattern string) (*os.File, error) {
	if h.full.Load() > 0 {
		return nil, &fs.PathError{Op: "open", Path: pattern, Err: syscall.ENOSPC}
	}
	return os.CreateTemp(dir, pattern)
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
	if l.h.full.Load() > 0 {
		return &fs.PathError{Op: "write", Path: "sync state", Err: syscall.ENOSPC}
	}
	if !l.dead.Load() {
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
