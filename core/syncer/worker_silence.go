package syncer

import "context"

// unanswered is for a change of show, after judge: it keeps the error of a target that did not say how it stands, until it does. Where the wait for it
// was cut off, what its last attempt failed with says more.
func (w *Worker) unanswered(ctx context.Context, err error, note *tally) {
	if c, _, _, _ := conditionAfter(err); err == nil || c != Ready {
		return
	}
	w.silence = explained(err)
	if last := note.snapshot().Error; ctx.Err() != nil && last != "" {
		w.silence = last
	}
}

// silent is why the target does not say how it stands; "" = nothing is known to keep it from it. The caller has the mutex.
func (w *Worker) silent() string {
	if w.asking != nil {
		if now := w.asking.snapshot().Error; now != "" {
			return now
		}
	}
	return w.silence
}

// overlay shows a target that does not answer as what it is: nobody knows whether it is ready, or held still. The caller has the mutex.
func (w *Worker) overlay(s *Status) {
	why := w.silent()
	switch {
	case why == "":
	case s.Condition == Ready:
		s.Condition, s.Reason = Unavailable, why
	case s.Condition == Held:
		s.Reason += "; it was asked anew and did not answer, so whether that is so still is not known: " + why
	}
}
