package circuit

import "time"

// StepFailure tells that a disk was full for the last step that had something to write. What it would have taken is tried again, unless
// whoever sent it has got the error.
type StepFailure struct {
	Error    string // of the last one
	Since    time.Time
	Failures int // in a row
}

// stepBook is what the book knows of steps that found a disk full; the zero value when the last step did not.
type stepBook struct {
	err      error
	since    time.Time // end of the first of them
	failedAt time.Time // end of the last
	failures int       // in a row
}

func (s *stepBook) fail(now time.Time, err error) {
	if s.failures == 0 {
		s.since = now
	}
	s.err, s.failedAt = err, now
	s.failures++
}

func (s *stepBook) status() *StepFailure {
	if s.failures == 0 {
		return nil
	}
	return &StepFailure{Error: s.err.Error(), Since: s.since, Failures: s.failures}
}

// hold enters a step that found a disk full: the trigger takes the next when its wait has ended.
func (l *Loop) hold(err error) {
	l.book.mu.Lock()
	s := &l.book.steps
	s.fail(l.cfg.Now(), err)
	failures := s.failures
	l.book.mu.Unlock()
	l.cfg.Log.Warn("no step until there is space: nothing was changed, and it is tried again", "error", err, "failures", failures)
}

// goOn enters a step that got through. Only one that moved the state shows that there is space again.
func (l *Loop) goOn(r StepResult) {
	l.book.mu.Lock()
	held, moved := l.book.steps, r.Step != l.book.seen.Step
	if moved {
		l.book.steps = stepBook{}
	}
	l.book.enterStep(r)
	now := l.cfg.Now()
	l.book.mu.Unlock()
	if moved && held.failures > 0 {
		l.cfg.Log.Info("there is space again, steps go on", "failures", held.failures, "waited", now.Sub(held.since))
	}
}
