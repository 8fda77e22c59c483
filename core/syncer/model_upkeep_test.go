package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cairnsync/cairn/core/repository"
)

// upkeepBeside is what one life does beside its pushes, one thing at a time: retention and sweep, pins.
type upkeepBeside struct {
	busy     atomic.Bool
	asked    atomic.Bool // the maintenance that runs was asked for
	finished atomic.Bool // busy ends when everybody rests: whether the next begins before or after is no race then
	running  sync.WaitGroup
	pins     []string // names that this life has given; owned by whoever is busy
}

// beside starts a task unless one is under way.
func (l *life) beside(what string, task func(ctx context.Context)) {
	if !l.upkeep.busy.CompareAndSwap(false, true) {
		return
	}
	l.upkeep.running.Go(func() {
		defer l.upkeep.finished.Store(true)
		task(as(l.ctx, l.h.actor()+" "+what))
	})
}

// settle ends what has finished.
func (u *upkeepBeside) settle() {
	if u.finished.CompareAndSwap(true, false) {
		u.busy.Store(false)
	}
}

// keepHouse does one of the things that are done beside pushes.
func (l *life) keepHouse() {
	switch n := l.rng.IntN(12); {
	case n < 5:
		l.beside("sweeps", func(ctx context.Context) { l.maintain(ctx, MaintainRequest{Thorough: n < 2}) })
	case n == 5:
		l.beside("sweeps", func(ctx context.Context) { l.maintain(ctx, MaintainRequest{DryRun: true}) })
	case n == 6 && len(l.told) > 0:
		of := l.told[l.rng.IntN(len(l.told))]
		l.beside("pins", func(ctx context.Context) { l.pin1(ctx, PinRequest{Name: l.pinName(), Checkpoint: of}) })
	case n == 7 && len(l.upkeep.pins) > 0 && !l.upkeep.busy.Load():
		l.beside("unpins", l.unpin)
	case n == 8:
		l.beside("proves", l.prove)
	}
}

// pinName is never used again: a delete of a pin that lands late would take a new pin of the same name.
func (l *life) pinName() string {
	return fmt.Sprintf("%s%d-%d", map[int]string{0: "a", 1: "b", 2: "s", 3: "c"}[l.h.index], l.h.lives, len(l.upkeep.pins)+1)
}

// maintain runs retention and sweep, and tells how it went.
func (l *life) maintain(ctx context.Context, req MaintainRequest) bool {
	l.upkeep.asked.Store(req.Thorough)
	report, err := l.worker.Maintain(ctx, req)
	if l.dead.Load() {
		return false
	}
	if err != nil {
		l.w.tell("%s: maintenance ends: %v", who(ctx), err)
		l.w.checker.upkept(l.w, who(ctx), err)
		return false
	}
	swept := int64(0)
	if report.Sweep != nil {
		swept = report.Sweep.Swept
	}
	l.w.tell("%s has retired %d commits and swept %d packs (dry: %t)", who(ctx), report.Retired, swept, req.DryRun)
	return true
}

// pin1 pins a checkpoint that this life has committed. From the answer on it may not be retired.
func (l *life) pin1(ctx context.Context, req PinRequest) {
	l.upkeep.pins = append(l.upkeep.pins, req.Name)
	pin, err := l.worker.Pin(ctx, req)
	switch {
	case l.dead.Load():
	case err != nil:
		l.w.tell("%s cannot pin: %v", who(ctx), err)
		l.w.checker.upkept(l.w, who(ctx), err)
	default:
		l.w.tell("%s has PINNED commit %d as %q", who(ctx), pin.Commit, pin.Name)
		l.w.checker.pinned(l.w, pin)
	}
}

// unpin takes the word back before the call: from then on nobody may count on it.
func (l *life) unpin(ctx context.Context) {
	name := l.upkeep.pins[len(l.upkeep.pins)-1]
	l.w.checker.unpinned(name)
	err := l.worker.Unpin(ctx, name)
	if l.dead.Load() {
		return
	}
	l.w.tell("%s unpins %q: %s", who(ctx), name, outcome(err))
}

// prove restores the newest commit; retention, told of it, keeps that commit.
func (l *life) prove(ctx context.Context) {
	known := l.worker.Status().Damage
	got, err := l.w.pull(ctx, l.gate(), Selector{})
	l.w.checker.pulled(l.w, who(ctx), got, err, nil)
	if l.dead.Load() || err != nil {
		return
	}
	l.w.tell("%s has PROVEN commit %d", who(ctx), got.commit.Number)
	proof := &Proof{At: l.h.now(), Commit: got.commit.Number, Checkpoint: got.commit.Checkpoint.ID}
	if _, err := l.worker.verified(ctx, VerifyReport{Proof: proof}, false, known); err == nil && !l.dead.Load() {
		l.w.checker.proved(l.worker.cfg.Writer, got.commit.Number)
	}
}

// upkept: a maintenance or a pin failed. That it finds corruption is not so.
func (c *checker) upkept(w *world, actor string, err error) {
	_, vanished := errors.AsType[*VanishedError](err)
	if fenced, ok := errors.AsType[*FencedError](err); ok {
		c.fenced(w, actor, fenced)
		return
	}
	if !w.ruined() && (vanished || errors.Is(err, repository.ErrCorrupt) || errors.Is(err, repository.ErrKeepsNothing)) {
		c.violation("%s: its upkeep says %v", actor, err)
	}
}

func (c *checker) pinned(w *world, pin repository.Pin) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.rolled {
		return // the pin may have gone with the rest
	}
	if c.exist[pin.Commit] == nil || !c.gc.Visible(pin.Commit) {
		c.violated("pin %q is acknowledged, and commit %d is not there", pin.Name, pin.Commit)
	}
	c.pins[pin.Name] = pin.Commit
}

func (c *checker) unpinned(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pins, name)
}

func (c *checker) proved(writer repository.Writer, n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proven[writer] = n
}

// litterGoes: retention and sweep of the newest writer leave no object of a retired commit and no pack of a dead epoch that no commit names.
func (w *world) litterGoes(ctx context.Context, writer *life) {
	for _, h := range w.hosts {
		if h.life != nil && h.life != writer {
			h.kill() // or one might take over, and the writer would have no say any more
		}
	}
	alone := w.until(func() bool { return writer.upkeep.busy.CompareAndSwap(false, true) })
	epoch := writer.worker.Status().Epoch
	if _, taken := w.mem.Content(repository.EpochKey(modelPrefix, epoch+1)); taken || !alone {
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ctx := as(ctx, writer.h.actor()+" sweeps")
		for range 3 {
			if writer.maintain(ctx, MaintainRequest{Thorough: true, MaxDelete: maxSteps}) {
				return
			}
		}
	}()
	done := func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
	if !w.until(done) {
		w.checker.violation("no progress: a maintenance does not end though nothing goes wrong")
		return
	}
	w.checker.tidy(w, epoch)
}

// tidy: nothing lies there that nobody can need any more.
func (c *checker) tidy(w *world, epoch uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range c.exist {
		if !c.gc.Visible(n) && w.policy != nil {
			c.violated("commit %d is retired, and after a sweep its object is still there", n)
		}
	}
	for _, key := range w.mem.Keys() {
		id, err := repository.ParsePackKey(modelPrefix, key)
		if err != nil || id.Epoch >= epoch {
			continue
		}
		named := false
		for _, m := range c.exist {
			named = named || slices.Contains(m.Packs, id)
		}
		if !named {
			c.violated("pack %s belongs to no commit and to an epoch below %d, and a sweep left it", briefly(key), epoch)
		}
	}
}
