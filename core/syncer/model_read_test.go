package syncer

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/cairnsync/cairn/core/repository"
)

// reported is what may not be lost.
func (c *checker) reported() []mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.acked)
}

// pulled: somebody restored, or could not. What was restored is a state that the circuit had; the newest holds all that was reported before it
// was asked for, and that there is none is only said when nothing was reported.
func (c *checker) pulled(w *world, who string, got *pulled, err error, before []mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before = c.ofNow(before)
	switch {
	case w.wiped, err != nil && w.rolled: // what it finds in ruins, and what was reported before, are no longer its matter
	case errors.Is(err, repository.ErrCorrupt):
		c.violated("%s finds corruption: %v", who, err)
	case errors.Is(err, ErrNoCommit) && len(before) > 0:
		c.violated("%s finds no commit, though success was reported before it asked", who)
	case err != nil:
		w.tell("%s cannot pull: %v", who, err)
	default:
		w.tell("%s pulled commit %d, step %d", who, got.commit.Number, got.commit.Checkpoint.Step)
		if err := c.isState(got.commit, got.files); err != nil {
			c.violated("%s restored commit %d: %v", who, got.commit.Number, err)
		}
		if lost := lacking(" "+string(got.files["marks"])+" ", before); lost != nil {
			c.violated("%s restored commit %d, which lacks %s, reported before it asked", who, got.commit.Number, lost.name)
		}
	}
}

// listed: what a listing names exists or has existed, ends with all that was reported before, and ascends.
func (c *checker) listed(w *world, who string, list []CommitInfo, err error, before []mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before = c.ofNow(before)
	switch {
	case w.wiped, err != nil && w.rolled:
		return
	case errors.Is(err, repository.ErrCorrupt):
		c.violated("%s finds corruption: %v", who, err)
		return
	case err != nil:
		w.tell("%s cannot list: %v", who, err)
		return
	case len(list) == 0 && len(before) > 0:
		c.violated("%s lists no commit, though success was reported before it asked", who)
	}
	last := uint64(0)
	for _, info := range list {
		m := c.ever[info.Number]
		if m == nil || m.Kind != repository.KindCheckpoint || !w.lies && !w.rolled && m.Checkpoint.ID != info.Checkpoint.ID || info.Number <= last {
			c.violated("%s lists commit %d of checkpoint %s, which was never made", who, info.Number, info.Checkpoint.ID)
			return
		}
		last = info.Number
	}
	if m := cmp.Or(c.exist[last], c.ever[last]); m != nil {
		if lost := lacking(m.marks, before); lost != nil {
			c.violated("%s lists commit %d as the newest, which lacks %s, reported before it asked", who, last, lost.name)
		}
	}
}

// audit asks at the end, with nobody at work: each listed commit is restored by the reader's own code and is a state that the circuit had.
func (w *world) audit() {
	if w.ruined() {
		return // a commit of a request that came too late may lie in ruins
	}
	ctx := context.Background()
	r, err := w.reader(w.mem)
	if err != nil {
		w.checker.violation("%v", err)
		return
	}
	list, err := r.ListCommits(ctx)
	w.checker.listed(w, "the audit", list, err, w.checker.reported())
	for i, info := range list {
		var before []mark
		if i == len(list)-1 {
			before = w.checker.reported()
		}
		got, err := w.pull(ctx, w.mem, Selector{Number: info.Number})
		if err != nil {
			w.checker.violation("the audit cannot restore listed commit %d: %v", info.Number, err)
			return
		}
		w.checker.pulled(w, "the audit", got, nil, before)
	}
}
