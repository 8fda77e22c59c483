package syncer

import (
	"context"
	"time"
)

// What may be needed once nothing goes wrong any more: steps of the scheduler for one thing, and time until all is well.
const (
	calmSteps = 250
	calmTime  = 10 * time.Minute
)

// recovers: the faults have stopped and what is under way has landed. The newest writer commits or, when all have stopped, a fresh start does;
// a reader restores that commit; and what no commit needs goes from the store. It gives the time that took.
func (w *world) recovers(ctx context.Context, wrong mutants) time.Duration {
	w.heal()
	began := time.Now()
	writer := w.newestWriterCommits()
	if writer == nil && w.rolled {
		return 0 // what is left of the store may be for the operator
	}
	if writer == nil && w.checker.found() == "" {
		writer = w.freshStartCommits(wrong)
	}
	if w.checker.found() == "" {
		w.newestIsPulled(ctx)
	}
	if w.checker.found() == "" {
		w.litterGoes(ctx, writer)
	}
	took := time.Since(began)
	if w.checker.found() == "" && took > calmTime {
		w.checker.violation("all is well again only after %s", took)
	}
	return took
}

// newestWriterCommits lets everyone go on; it gives the writer of the highest epoch when that committed something new meanwhile, else nil.
func (w *world) newestWriterCommits() *life {
	var newest *life
	told := 0
	for _, h := range w.hosts {
		if !h.alive() || h.life.worker == nil {
			continue
		}
		if e := h.life.worker.Status().Epoch; e > 0 && (newest == nil || e > newest.worker.Status().Epoch) {
			newest, told = h.life, len(h.life.told)
		}
	}
	if w.until(func() bool { return newest != nil && len(newest.told) > told }) {
		return newest
	}
	return nil
}

// until lets things happen until done, or until nothing or too much has happened.
func (w *world) until(done func() bool) bool {
	for range calmSteps {
		if w.checker.found() != "" || done() {
			break
		}
		if !w.step() {
			break
		}
	}
	return done()
}

func (w *world) freshStartCommits(wrong mutants) *life {
	for _, h := range w.hosts { // a standby that is activated meanwhile would rightly hold the fresh one
		if h.life != nil {
			h.kill()
		}
	}
	w.rest() // until they have given up what they had under way
	w.sweepAbandoned()
	w.settle() // a commit of theirs that landed after the look of the fresh one would rightly hold it
	fresh := w.addHost("C", cast-1, wrong)
	fresh.start(w)
	if !w.until(func() bool { return len(fresh.life.told) > 0 }) {
		w.checker.violation("no progress: a fresh start does not commit though nothing goes wrong")
	}
	return fresh.life
}

// newestIsPulled: a whole restore of the newest state, by somebody who has just come.
func (w *world) newestIsPulled(ctx context.Context) {
	v := &visitor{machine: &machine{name: "V"}}
	w.visitors = append(w.visitors, v)
	var err error
	v.start(func() {
		before := w.checker.reported()
		var got *pulled
		got, err = w.pull(ctx, gate{w: w, on: v.machine, actor: v.name}, Selector{})
		w.checker.pulled(w, v.name, got, err, before)
	})
	if !w.until(v.ended) || err != nil {
		w.checker.violation("no progress: the newest commit cannot be restored though nothing goes wrong: %v", err)
	}
}
