package circuit

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/trigger"
)

// book is what the loop and its callers know together. Every method expects the mutex held, unless it says otherwise; none of them blocks.
type book struct {
	mu sync.Mutex // guards everything below

	state    State
	err      error // what the loop ended with
	paused   bool
	ending   *ending // once the loop is told to end
	seen     Facts   // of the circuit, at the last look
	totals   Totals
	decision trigger.Decision

	stepAsks    []chan error // each has room for the one answer
	steps       stepBook
	checkpoints checkpointBook
	targets     []*targetBook
	sync        SyncSummary
	saved       savedSync
	owed        []*syncGroup         // requests that have their outcome, and are answered once that is saved
	promised    bool                 // a job will settle what is owed
	commits     map[uuid.UUID][]bool // by target: who committed a checkpoint that others may still commit
	waiters     []*waiter
	hindrance   func() string // Config.Obstacle; nil = none is ever told
}

func newBook(c Config) *book {
	b := &book{state: StateStarting, paused: c.Paused, seen: c.Opened, sync: c.LastSync, commits: map[uuid.UUID][]bool{}, hindrance: c.Obstacle}
	b.checkpoints.published = c.Restored
	b.saved = b.sync.saved()
	for i, t := range c.Targets {
		b.targets = append(b.targets, &targetBook{Target: t, policy: c.Policy.Targets[i], results: map[PushTrigger]*PushResult{}})
	}
	return b
}

// load begins the run: times of an earlier one are clamped to its start.
func (b *book) load(start time.Time) {
	b.state = StateRunning
	b.checkpoints.publishedAt = trigger.Clamp(b.checkpoints.published.At, start)
	for _, t := range b.targets {
		t.load(start)
	}
}

// notice begins a look at the circuit. It returns the last one, and whether the circuit has failed and must not be touched again. It takes
// the mutex itself.
func (b *book) notice() (last Facts, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checkpoints.notice()
	if b.ending != nil {
		b.ending.noticed = true
		failed = b.ending.cause != nil
	}
	return b.seen, failed
}

// see enters what the circuit said of itself and answers the requests that this settles.
func (b *book) see(f Facts, now time.Time) {
	b.seen = f
	b.checkpoints.see(f.Step)
	for _, t := range b.targets {
		s := t.Pusher.State()
		t.learn(b.checkpoints.published, s)
		switch {
		case s.Fenced:
			b.refuse(t, now, s.because(ErrFenced))
		case s.Held:
			b.refuse(t, now, s.because(ErrHeld))
		}
	}
	b.answerWaiters()
}

// facts is what the trigger is asked with.
func (b *book) facts(now time.Time) trigger.Facts {
	c := &b.checkpoints
	f := trigger.Facts{
		Now: now, Step: b.seen.Step, Buffered: b.seen.Buffered, StepAsked: b.seen.StepAsked || len(b.stepAsks) > 0, Paused: b.paused,
		Phase: trigger.Phase(b.seen.Phase), CheckpointRunning: c.running != nil, CheckpointBlocked: b.seen.Blocked,
		CheckpointEndedAt: c.endedAt, Published: c.published, StepFailedAt: b.steps.failedAt, StepFailures: b.steps.failures,
	}
	f.Published.At = c.publishedAt
	f.CheckpointCover, f.CheckpointAsked = c.wanted()
	for _, t := range b.targets {
		f.Targets = append(f.Targets, t.facts(t.Pusher.State()))
	}
	return f
}

// takeStepAsks takes the mutex itself.
func (b *book) takeStepAsks() []chan error {
	b.mu.Lock()
	defer b.mu.Unlock()
	asks := b.stepAsks
	b.stepAsks = nil
	return asks
}

// enterStep counts a step. Its number is read at the next look, together with everything else.
func (b *book) enterStep(r StepResult) {
	b.totals.Steps++
	b.totals.Applied += uint64(r.Applied)
	b.totals.Rejected += uint64(r.Rejected)
}

// endCheckpoint enters the outcome of the running attempt and tells how long it took. It takes the mutex itself.
func (b *book) endCheckpoint(now time.Time, made trigger.Checkpoint, err error) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	ended := b.checkpoints.running
	b.checkpoints.end(now, made, err)
	if ended.last && b.ending != nil {
		b.ending.enterCheckpoint(err)
	}
	b.answerWaiters()
	return now.Sub(ended.since)
}

// endPush enters the outcome of target i's job: timers, results, and what sync status will say. It takes the mutex itself; the caller
// settles afterwards.
func (b *book) endPush(i int, now time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.targets[i]
	told := b.blame(t, err) // asks the pusher, so before anything is changed
	p := t.running
	t.end(now, err)
	if err == nil {
		b.enterCommit(i, p)
	}
	switch p.trigger {
	case PushRequested:
		b.answerSync(t, p.ask, now, told)
	case PushPeriodic:
		b.enterPeriodic(p, now, err)
	case PushShutdown:
		b.ending.enterPush(t.Pusher.Name(), err)
	}
	b.forgetCommits()
	b.answerWaiters()
	b.promised = true
}

// close decides everything that is still open; err is what the loop failed with. It takes the mutex itself, and tells whether anything is
// left to be settled.
func (b *book) close(now time.Time, err error) (unsettled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err, b.state = err, StateStopped
	if err != nil && (b.ending == nil || b.ending.cause != nil) {
		b.state = StateFailed
	}
	stopped := b.stopped()
	b.checkpoints.fail(now, b.checkpoints.sequence, stopped)
	for _, t := range b.targets {
		if p := t.running; p != nil && p.ask != nil { // a panic has kept it from ending
			b.answerSync(t, p.ask, now, stopped)
		}
		t.running = nil
		b.refuse(t, now, stopped)
	}
	for _, done := range b.stepAsks {
		done <- stopped
	}
	b.stepAsks = nil
	b.answerWaiters()
	return b.unsettled()
}
