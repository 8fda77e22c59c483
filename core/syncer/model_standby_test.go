package syncer

import (
	"errors"

	"github.com/cairnsync/cairn/core/repository"
)

// A standby pulls until it is told to take over: then its copy, once it is that of the newest commit below its seal, is the state that it
// continues from.

const standbyPulls = 5

// follow pulls now and then. It gives the newest copy and true when the operator activates; false when the standby ended before.
func (l *life) follow() (copied *pulled, activated bool) {
	var kept keepsTwo
	for range standbyPulls {
		var before []mark
		if !l.turn("pulls", func() {
			before = l.w.checker.reported()
			activated = l.w.rng.IntN(4) == 0
		}) {
			return nil, false
		}
		if activated {
			break
		}
		got, err := l.w.pull(l.ctx, l.gate(), Selector{})
		l.w.checker.pulled(l.w, l.h.actor(), got, err, before)
		if err != nil {
			continue
		}
		if old := kept.newest(); old != nil && old.commit.Number > got.commit.Number && !l.w.ruined() {
			l.w.checker.violation("%s went back from commit %d to commit %d", l.h.actor(), old.commit.Number, got.commit.Number)
		}
		kept.add(got)
	}
	l.w.tell("%s is ACTIVATED", l.h.actor())
	l.activated = true
	return kept.newest(), true
}

// takeOver claims and seals; nobody commits behind our back from then on, so what is newest now is what we must continue from. Another try is
// the operator's, who asks for the newest state and accepts no older one.
func (l *life) takeOver() bool {
	for range 3 {
		if !l.turn("takes over", nil) {
			return false
		}
		claimed, err := l.worker.Claim(l.ctx)
		if l.dead.Load() {
			return false
		}
		if fenced, ok := errors.AsType[*FencedError](err); ok {
			l.w.tell("%s is fenced: %v", l.h.actor(), err)
			l.w.checker.fenced(l.w, l.h.actor(), fenced)
			return false
		}
		if err != nil {
			l.w.tell("%s cannot take over: %v", l.h.actor(), err)
			continue
		}
		if l.catchUp(claimed.Newest) {
			return true
		}
	}
	return false
}

// catchUp makes the newest commit below our seal our state.
func (l *life) catchUp(newest *CommitInfo) bool {
	if newest == nil || l.onHistory(newest) {
		return true
	}
	got, err := l.w.pull(l.ctx, l.gate(), Selector{Number: newest.Number})
	l.w.checker.pulled(l.w, l.h.actor(), got, err, nil)
	if err != nil {
		l.w.tell("%s cannot pull commit %d: %v", l.h.actor(), newest.Number, err)
		return false
	}
	saved := l.disk.saved
	l.disk = l.diskOf(got)
	l.disk.saved = saved
	l.h.disk = l.disk
	return true
}

// onHistory says whether our state has passed through the commit.
func (l *life) onHistory(c *CommitInfo) bool {
	ours := repository.Point{Step: l.disk.step}
	for _, r := range l.disk.history {
		ours.History = append(ours.History, repository.Reign(r))
	}
	return repository.Relate(ours, repository.Point{History: c.Checkpoint.History, Step: c.Checkpoint.Step}).OnHistory
}
