package trigger

import "github.com/google/uuid"

// Decide says what to do next, and what to remember until it is asked again. It answers with the first rule that holds; the package
// comment gives the rules. It changes nothing that it is given.
func Decide(p Policy, s State, f Facts) (Decision, State) {
	s = s.observe(p, f)
	if d, ok := checkpoint(p, f); ok {
		return d, s
	}
	if d, ok := requestedSync(f); ok {
		return d, s
	}
	if d, ok := periodicSync(p, f); ok {
		return d, s
	}
	if d, ok := step(p, s, f); ok {
		return d, State{} // what the step leaves behind starts a new delay
	}
	return park(p, s, f), s
}

// observe starts the flush delay with the first record that is buffered and drops it with the last. A pause does not stop it: after the
// pause a record that has waited long enough is flushed at once.
func (s State) observe(p Policy, f Facts) State {
	switch {
	case f.Buffered <= 0:
		return State{}
	case s.FlushAt.IsZero():
		return State{FlushAt: f.Now.Add(p.MaxDelay)}
	default:
		return s
	}
}

func checkpoint(p Policy, f Facts) (Decision, bool) {
	switch {
	case !f.checkpointCanStart():
		return Decision{}, false
	case f.checkpointOwed():
		return Decision{Kind: TakeCheckpoint, Why: WhyCheckpointAsked}, true
	default:
		due := checkpointDeadline(p, f)
		return Decision{Kind: TakeCheckpoint, Why: due.why}, due.passed(f.Now)
	}
}

func (f Facts) checkpointCanStart() bool {
	return !f.CheckpointRunning && f.CheckpointBlocked == ""
}

// checkpointOwed tells whether a checkpoint of the current state would serve a request that the published one does not. One taken
// before the circuit reaches the requested step would serve nobody, and be taken again and again.
func (f Facts) checkpointOwed() bool {
	covered := f.Published.ID != uuid.Nil && f.Published.Step >= f.CheckpointCover
	return f.CheckpointAsked && !covered && f.Step >= f.CheckpointCover
}

func requestedSync(f Facts) (Decision, bool) {
	for i, t := range f.Targets {
		if t.idle() && t.Asked != uuid.Nil {
			return Decision{Kind: Sync, Target: i, Checkpoint: t.Asked, Why: WhySyncAsked}, true
		}
	}
	return Decision{}, false
}

func (t TargetFacts) idle() bool {
	return !t.Busy && !t.Fenced && !t.Held
}

func periodicSync(p Policy, f Facts) (Decision, bool) {
	for i, t := range f.Targets {
		if due := pushDeadline(p.Targets[i], t, f.Published.ID); due.passed(f.Now) {
			return Decision{Kind: Sync, Target: i, Checkpoint: f.Published.ID, Periodic: true, Why: due.why}, true
		}
	}
	return Decision{}, false
}

func step(p Policy, s State, f Facts) (Decision, bool) {
	due := stepDeadline(p, s, f)
	return Decision{Kind: Step, Why: due.why}, due.passed(f.Now)
}

// whyStep is why a step is wanted now, whatever the clock says; "" when nothing but the clock can ask for one.
func whyStep(p Policy, f Facts) string {
	switch {
	case f.Phase == Replaying:
		return WhyReplaying
	case f.Phase == Bootstrapping:
		return WhyBootstrapping
	case f.StepAsked:
		return WhyStepAsked
	case f.Buffered > max(p.MinBatch, 0):
		return WhyEnoughInput
	default:
		return ""
	}
}

// park waits for the same deadlines that the rules above test. None of them has passed, or its rule would have answered.
func park(p Policy, s State, f Facts) Decision {
	next := checkpointDeadline(p, f)
	for i, t := range f.Targets {
		next = earlier(next, pushDeadline(p.Targets[i], t, f.Published.ID))
	}
	next = earlier(next, stepDeadline(p, s, f))
	if !next.set() {
		return Decision{Kind: Park, Why: WhyIdle}
	}
	return Decision{Kind: Park, Until: next.at, Why: next.await}
}
