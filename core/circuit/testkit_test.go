package circuit

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/cairnsync/cairn/core/trigger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errPlanted = errors.New("planted")

// id is the n-th checkpoint id: they rise, as those of a checkpointer do.
func id(n uint64) uuid.UUID {
	var u uuid.UUID
	binary.BigEndian.PutUint64(u[8:], n)
	u[6], u[8] = 0x70, 0x80
	return u
}

// engine is a circuit that counts: a step consumes what is buffered. Its fields are set before Run or through change.
type engine struct {
	t      *testing.T
	inside atomic.Bool // of a method that the loop's goroutine alone may call
	wake   func()

	mu       sync.Mutex
	facts    Facts
	told     string                          // Blocked of the facts that were read last
	stepping func(ctx context.Context) error // in place of a plain step that takes no time
	pinning  func() error
	looking  func() // after the facts were read, before they are returned
	taken    int    // snapshots
	released int
	steps    []time.Time // ends
}

// enter fails the test when two goroutines are inside the circuit at once.
func (e *engine) enter() (leave func()) {
	if !e.inside.CompareAndSwap(false, true) {
		e.t.Error("the circuit was called by two goroutines at once")
	}
	return func() { e.inside.Store(false) }
}

func (e *engine) Identity() Identity                             { return Identity{Kind: "engine"} }
func (e *engine) Inspect(context.Context, string) (Live, error)  { return Live{}, nil }
func (e *engine) Restore(context.Context, string, string) error  { return nil }
func (e *engine) Open(_ context.Context, env Env) error          { e.wake = env.Wake; return nil }
func (e *engine) Close() error                                   { return nil }
func (e *engine) Snapshot(ctx context.Context) (Snapshot, error) { defer e.enter()(); return e.pin() }

func (e *engine) Step(ctx context.Context) (StepResult, error) { defer e.enter()(); return e.step(ctx) }

func (e *engine) Facts() Facts { defer e.enter()(); return e.look() }

// change also wakes the loop.
func (e *engine) change(f func(*engine)) {
	e.mu.Lock()
	f(e)
	e.mu.Unlock()
	e.wake()
}

// feed buffers records, which a step will consume.
func (e *engine) feed(records int) {
	e.change(func(e *engine) { e.facts.Buffered += records })
}

func (e *engine) look() Facts {
	e.mu.Lock()
	facts, looking := e.facts, e.looking
	e.told = facts.Blocked
	e.looking = nil
	e.mu.Unlock()
	if looking != nil {
		looking()
	}
	return facts
}

func (e *engine) step(ctx context.Context) (StepResult, error) {
	e.mu.Lock()
	stepping := e.stepping
	e.mu.Unlock()
	if stepping != nil {
		if err := stepping(ctx); err != nil {
			return StepResult{}, err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	r := StepResult{Applied: e.facts.Buffered}
	e.facts.Step++
	e.facts.Buffered = 0
	r.Step = e.facts.Step
	e.steps = append(e.steps, time.Now())
	return r, nil
}

func (e *engine) pin() (Snapshot, error) {
	e.mu.Lock()
	pinning := e.pinning
	e.mu.Unlock()
	if pinning != nil {
		if err := pinning(); err != nil {
			return nil, err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.told != "" { // what has come since the loop looked, it cannot know
		e.t.Errorf("snapshot taken while blocked: %s", e.told)
	}
	e.taken++
	return &pinned{engine: e, step: e.facts.Step}, nil
}

type pinned struct {
	engine   *engine
	step     uint64
	released atomic.Bool
}

func (p *pinned) Step() uint64                        { return p.step }
func (p *pinned) Write(context.Context, string) error { return nil }
func (p *pinned) Release() {
	if p.released.Swap(true) {
		p.engine.t.Error("snapshot released twice")
	}
	p.engine.mu.Lock()
	p.engine.released++
	p.engine.mu.Unlock()
}

// disk is a checkpointer that takes its time.
type disk struct {
	mu      sync.Mutex
	takes   time.Duration
	writing func(ctx context.Context) error // in place of takes
	next    uint64
	made    []trigger.Checkpoint // published
	begun   []time.Time          // attempts
	ended   []time.Time
}

func (d *disk) Write(ctx context.Context, s Snapshot) (trigger.Checkpoint, error) {
	d.mu.Lock()
	takes, writing := d.takes, d.writing
	d.begun = append(d.begun, time.Now())
	d.mu.Unlock()
	err := pass(ctx, takes)
	if writing != nil {
		err = writing(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = append(d.ended, time.Now())
	if err != nil {
		return trigger.Checkpoint{}, err
	}
	d.next++
	c := trigger.Checkpoint{ID: id(d.next), Step: s.Step(), At: time.Now()}
	d.made = append(d.made, c)
	return c, nil
}

func (d *disk) change(f func(*disk)) { d.mu.Lock(); defer d.mu.Unlock(); f(d) }

func (d *disk) published() []trigger.Checkpoint {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]trigger.Checkpoint(nil), d.made...)
}

// pass lets time pass.
func pass(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// store is a target that takes its time.
type store struct {
	name string

	mu      sync.Mutex
	state   PushState
	takes   time.Duration
	pushing func(ctx context.Context, job PushJob) error // after takes
	jobs    []pushed
	busy    bool
}

type pushed struct {
	PushJob
	begun, ended time.Time
	err          error
}

func (s *store) Name() string { return s.name }

func (s *store) State() PushState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

func (s *store) Push(ctx context.Context, job PushJob) error {
	s.mu.Lock()
	if s.busy {
		panic("two jobs at once on " + s.name)
	}
	s.busy = true
	takes, pushing, p := s.takes, s.pushing, pushed{PushJob: job, begun: time.Now()}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.busy = false
		s.mu.Unlock()
	}()
	p.err = pass(ctx, takes)
	if p.err == nil && pushing != nil {
		p.err = pushing(ctx, job)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.ended = time.Now()
	s.jobs = append(s.jobs, p)
	if p.err == nil {
		s.state.Committed = newer(s.state.Committed, job.Checkpoint)
	}
	return p.err
}

func (s *store) change(f func(*store)) { s.mu.Lock(); defer s.mu.Unlock(); f(s) }

func (s *store) done() []pushed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]pushed(nil), s.jobs...)
}

// rig is a loop with its surroundings.
type rig struct {
	t      *testing.T
	loop   *Loop
	engine *engine
	disk   *disk
	stores []*store
	log    *lines
	looks  atomic.Int64 // times the trigger was asked

	cancel context.CancelFunc
	ended  chan struct{}
	err    error // of Run, once ended is closed
}

// newRig makes a loop that is not running yet. Its targets are named a, b, … after their intervals; 0 = on request only.
func newRig(t *testing.T, checkpointEvery time.Duration, pushEvery []time.Duration, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, engine: &engine{t: t}, disk: &disk{}, log: &lines{}, ended: make(chan struct{})}
	cfg := Config{
		Circuit: r.engine, Checkpointer: r.disk, Now: time.Now, Incarnation: id(1 << 40),
		Policy: trigger.Policy{CheckpointEvery: checkpointEvery},
		Log:    hclog.New(&hclog.LoggerOptions{Output: r.log, Level: hclog.Info}),
	}
	for i, every := range pushEvery {
		s := &store{name: string(rune('a' + i))}
		r.stores = append(r.stores, s)
		cfg.Targets = append(cfg.Targets, Target{Pusher: s})
		cfg.Policy.Targets = append(cfg.Policy.Targets, trigger.TargetPolicy{
			Name: s.name, PushEvery: every, RetryMin: time.Second, RetryMax: time.Minute,
		})
	}
	for _, f := range change {
		f(&cfg)
	}
	loop, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	loop.decide = func(p trigger.Policy, s trigger.State, f trigger.Facts) (trigger.Decision, trigger.State) {
		r.looks.Add(1)
		return trigger.Decide(p, s, f)
	}
	r.loop = loop
	if err := r.engine.Open(t.Context(), Env{Wake: loop.Wake}); err != nil {
		t.Fatal(err)
	}
	return r
}

// start runs the loop; the test's end cancels it.
func (r *rig) start() *rig {
	ctx, cancel := context.WithCancel(r.t.Context())
	r.cancel = cancel
	go func() {
		defer close(r.ended)
		r.err = r.loop.Run(ctx)
	}()
	r.t.Cleanup(func() {
		cancel()
		<-r.ended
		if r.engine.taken != r.engine.released {
			r.t.Errorf("%d snapshots taken, %d released", r.engine.taken, r.engine.released)
		}
	})
	synctest.Wait()
	return r
}

// end waits for Run to return.
func (r *rig) end() error {
	<-r.ended
	return r.err
}

// sleep lets simulated time pass, then everything settle.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// checkpoint feeds the engine and has a checkpoint made.
func (r *rig) checkpoint() trigger.Checkpoint {
	r.t.Helper()
	r.engine.feed(1)
	synctest.Wait()
	asked, err := r.loop.RequestCheckpoint()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := <-asked.Done; err != nil {
		r.t.Fatal(err)
	}
	return r.loop.Status().Checkpoint.Published
}

// answered is the one value of a Done channel; the test fails when there is none, or a second one.
// lines collects the log.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(p))
	return len(p), nil
}

func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// announced is what the log says of long waits.
func (l *lines) announced() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, line := range l.text {
		if _, what, ok := strings.Cut(line, "still waiting: "); ok {
			out = append(out, strings.TrimSpace(what))
		}
	}
	return out
}
