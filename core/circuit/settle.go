package circuit

import (
	"errors"

	"github.com/google/uuid"
)

// savedSync is the part of sync status that is told only once it is saved: after a kill it must not go back. A failure that is forgotten
// misleads nobody, so failures are shown at once.
type savedSync struct{ success, periodic uuid.UUID }

func (s SyncSummary) saved() savedSync { return savedSync{s.Success, s.Periodic} }

// copied shares nothing with the book, and runs nothing: a running push does not outlive its run.
func (s SyncSummary) copied() SyncSummary {
	s.Failure, s.PeriodicFailure = clone(s.Failure), clone(s.PeriodicFailure)
	s.Running = uuid.Nil
	return s
}

// unsettled is true when requests are owed an answer and no job has promised it; from then on the caller has.
func (b *book) unsettled() bool {
	if len(b.owed) == 0 || b.promised {
		return false
	}
	b.promised = true
	return true
}

// settle saves what sync status is about to say, then lets it say so, answers the requests that it settles, and releases their pins. Both
// host calls may block, so it runs on a job's goroutine and without the mutex.
func (l *Loop) settle() {
	l.saving.Lock()
	defer l.saving.Unlock()
	summary, owed := l.book.takeOwed()
	if l.cfg.SaveSync != nil {
		if err := guard("save of sync status", func() error { l.cfg.SaveSync(summary); return nil }); err != nil {
			l.logFailure("sync status not saved", err) // the commits exist all the same
		}
	}
	l.book.tell(summary.saved(), owed)
	for _, g := range owed {
		g.release()
	}
}

// takeOwed takes the mutex itself.
func (b *book) takeOwed() (SyncSummary, []*syncGroup) {
	b.mu.Lock()
	defer b.mu.Unlock()
	owed := b.owed
	b.owed, b.promised = nil, false
	return b.sync.copied(), owed
}

// tell takes the mutex itself.
func (b *book) tell(saved savedSync, owed []*syncGroup) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved = saved
	for _, g := range owed {
		g.done <- errors.Join(g.errs...)
	}
}
