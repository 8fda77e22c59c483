package circuit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cairnsync/cairn/core/trigger"
)

// Loop drives one circuit. It is run once.
type Loop struct {
	cfg    Config
	decide func(trigger.Policy, trigger.State, trigger.Facts) (trigger.Decision, trigger.State)
	book   *book
	wake   chan struct{} // has room for one: calls coalesce

	saving sync.Mutex // makes calls of SaveSync one at a time, in order

	cut      context.CancelFunc // ends the step that runs, and every later one; guarded by the book's mutex, nil before Run
	cutTimer *time.Timer        // calls cut when a stop runs out of time; guarded likewise

	// Of the goroutine in Run.
	memory trigger.State
	jobs   sync.WaitGroup
	waits  *announcer // what the pipeline waits for
	calls  *announcer // what the goroutine itself is inside of
}

// New makes a loop. It touches neither the circuit nor the targets, save for their names.
func New(cfg Config) (*Loop, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("build loop: %w", err)
	}
	return &Loop{
		cfg: cfg, decide: trigger.Decide, book: newBook(cfg), wake: make(chan struct{}, 1),
		waits: &announcer{log: cfg.Log}, calls: &announcer{log: cfg.Log},
	}, nil
}

// Wake makes a parked loop look again. It never blocks, calls coalesce, and any goroutine may call it.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run drives the open circuit until Stop, the end of ctx, or a failure, and returns when its last job has ended.
//
// It returns nil after a Stop of which all could be done, and an error that starts with "stop:" otherwise. When ctx ends it cancels the running
// jobs and returns ctx's error. When the circuit fails, by an error of Step that does not come from its context or by a panic, no further work
// is started, running jobs may end within ShutdownTimeout, and Run returns that error. A failed Snapshot is not a failed circuit.
func (l *Loop) Run(ctx context.Context) error {
	jobs, cancel := context.WithCancel(ctx)
	defer cancel()
	turns, cut := context.WithCancel(jobs)
	defer cut()
	if err := l.begin(cut); err != nil {
		return err
	}
	err := guard("loop", func() error { return l.drive(jobs, turns) })
	cancel()
	if err == ctx.Err() {
		l.finish(nil) // nil, or ended from outside as asked
	} else {
		l.finish(err)
	}
	return err
}

// drive is the loop: observe, stamp the time, decide, act, repeat. The jobs run under ctx; turns is for what the circuit does on this
// goroutine, Step and Snapshot, and ends earlier: see bound.
func (l *Loop) drive(ctx, turns context.Context) error {
	for ctx.Err() == nil {
		facts := l.observe()
		next := l.next(facts)
		if next.done {
			break
		}
		switch next.Kind {
		case trigger.Step:
			l.step(turns)
		case trigger.TakeCheckpoint:
			l.takeCheckpoint(ctx, turns, facts)
		case trigger.Sync:
			l.startPush(ctx, facts, next)
		default:
			l.park(ctx, facts.Now, next.Until)
		}
	}
	return l.outcome(ctx)
}

// observe looks at the circuit, unless it has failed, and then at everything else.
func (l *Loop) observe() trigger.Facts {
	seen, err := l.look()
	if err != nil {
		l.fail(err)
	}
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	now := l.cfg.Now()
	l.book.see(seen, now)
	if l.book.unsettled() {
		l.job("settling", l.settle)
	}
	return l.book.facts(now)
}

// look asks the circuit for its facts. What has come until then, requests or a Stop, is judged by them; what comes meanwhile is not.
func (l *Loop) look() (seen Facts, err error) {
	seen, failed := l.book.notice()
	if failed {
		return seen, nil
	}
	err = guard("facts", func() error {
		seen = l.cfg.Circuit.Facts()
		return nil
	})
	return seen, err
}

// decided is a decision and who made it.
type decided struct {
	trigger.Decision
	final bool // by the ending loop, not by the trigger
	done  bool // the ending loop owes nothing more
}

// next asks the trigger or, once the loop is ending, the ending.
func (l *Loop) next(f trigger.Facts) decided {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	var d decided
	switch e := l.book.ending; {
	case e == nil:
		d.Decision, l.memory = l.decide(l.cfg.Policy, l.memory, f)
	case e.noticed:
		d.final = true
		d.Decision, d.done = e.decide(l.cfg.Targets, f)
	default: // told to stop during the look: its wake-up ends the park at once
	}
	l.book.decision = d.Decision
	l.waits.set(waitingFor(d, f))
	return d
}

// waitingFor is what somebody waits for, in words for the log; "" = nobody does.
func waitingFor(d decided, f trigger.Facts) string {
	switch {
	case d.final:
		return d.Why
	case !f.CheckpointAsked:
		return ""
	case f.CheckpointRunning:
		return "requested checkpoint: one is being written"
	case f.CheckpointBlocked != "":
		return "requested checkpoint: no snapshot can be taken: " + f.CheckpointBlocked
	default:
		return ""
	}
}

// step takes one step and answers the requests for it. One that ends because ctx has ended, or because a disk is full, changed nothing, and is
// no failure.
func (l *Loop) step(ctx context.Context) {
	asks := l.book.takeStepAsks()
	var result StepResult
	err := l.call("step", func() (err error) {
		result, err = l.cfg.Circuit.Step(ctx)
		return err
	})
	full := errors.Is(err, ErrNoSpace)
	answer := err
	if err != nil && !full {
		answer = fmt.Errorf("%w: %w", ErrStopped, err)
	}
	for _, done := range asks {
		done <- answer
	}
	switch {
	case err == nil:
		l.goOn(result)
	case full:
		l.hold(err)
	case ctx.Err() == nil || !errors.Is(err, ctx.Err()):
		l.fail(fmt.Errorf("step: %w", err))
	}
}

// park waits for a moment, a wake-up or the end. A moment that has passed counts as a millisecond from now, so that not even a mistaken
// decision could spin.
func (l *Loop) park(ctx context.Context, now, until time.Time) {
	var timer <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(max(until.Sub(now), time.Millisecond))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-timer:
	case <-l.wake:
	case <-ctx.Done():
	}
}

// call runs one of the circuit's own methods, which may take long and may panic.
func (l *Loop) call(name string, f func() error) error {
	l.calls.set(name + " to end")
	defer l.calls.set("")
	return guard(name, f)
}

// fail starts the end of a loop whose circuit has failed.
func (l *Loop) fail(cause error) {
	l.logFailure("circuit failed", cause)
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	deadline := l.cfg.Now().Add(l.shutdownTimeout())
	if e := l.book.ending; e != nil && e.deadline.Before(deadline) {
		deadline = e.deadline
	}
	l.book.ending = newFailure(cause, deadline)
}

func (l *Loop) begin(cut context.CancelFunc) error {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	if l.book.state != StateStarting {
		return ErrRunning
	}
	l.book.load(l.cfg.Now())
	l.cut = cut
	l.bound()
	return nil
}

// bound makes a step that is running keep the word of a Stop: it is cut off at once when nothing is owed, else at the deadline. The loop's
// goroutine is inside the step then and cannot look at the clock itself. The caller holds the book's mutex.
func (l *Loop) bound() {
	switch e := l.book.ending; {
	case e == nil || l.cut == nil: // not told, or not running yet
	case !e.wait:
		l.cut()
	case l.cutTimer == nil:
		l.cutTimer = time.AfterFunc(e.deadline.Sub(l.cfg.Now()), l.cut)
	}
}

// unbound ends the timer that bound may have started.
func (l *Loop) unbound() {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	if l.cutTimer != nil {
		l.cutTimer.Stop()
	}
}

// outcome is what Run returns. A failure of the circuit outranks the end of ctx.
func (l *Loop) outcome(ctx context.Context) error {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	e := l.book.ending
	if ctx.Err() != nil && (e == nil || e.cause == nil) {
		return ctx.Err()
	}
	return e.result()
}

// finish waits for the cancelled jobs and answers everything that is still open. failure is what status shows from then on.
func (l *Loop) finish(failure error) {
	l.unbound()
	l.waits.set("")
	l.calls.set("cancelled jobs to end")
	l.jobs.Wait()
	if l.book.close(l.cfg.Now(), failure) {
		l.job("settling", l.settle)
		l.jobs.Wait()
	}
	l.calls.set("")
	l.cfg.Log.Debug("loop ended", "error", failure) // whoever ran it tells the rest
}

func (l *Loop) shutdownTimeout() time.Duration {
	if l.cfg.ShutdownTimeout == 0 {
		return DefaultShutdownTimeout
	}
	return l.cfg.ShutdownTimeout
}
