package circuit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stopStory is one way down: what there is when Stop is called, and what there must be when Run has returned.
type stopStory struct {
	name    string
	given   func(r *rig) // before Stop; the loop runs, one checkpoint (step 1) is published and target a pushes on shutdown
	abrupt  bool         // stop?checkpoint=false
	then    func(r *rig) // after Stop
	took    time.Duration
	err     string // part of Run's error; "" = nil
	made    int    // checkpoints published in all
	step    uint64 // of the newest
	pushes  string // on a: checkpoint number and trigger of each
	onOther int    // pushes on b
}

func TestStop(t *testing.T) {
	for _, s := range []stopStory{
		{
			name: "nothing changed since the last checkpoint: it is pushed as it is",
			made: 1, step: 1, pushes: "1 shutdown",
		},
		{
			name:  "a step since the last checkpoint: a new one is made and pushed",
			given: func(r *rig) { r.engine.feed(1) },
			made:  2, step: 2, pushes: "2 shutdown",
		},
		{
			name:  "buffered input is left for the next run",
			given: func(r *rig) { _ = r.loop.Pause(); r.engine.feed(9) },
			made:  1, step: 1, pushes: "1 shutdown",
		},
		{
			name:   "without checkpoint nothing is made and nothing pushed",
			given:  func(r *rig) { r.engine.feed(1) },
			abrupt: true, made: 1, step: 1,
		},
		{
			name:   "without checkpoint a running push is cut off",
			given:  func(r *rig) { r.stores[0].takes = time.Hour; mustSync(r.t, r.loop, "a"); sleep(time.Second) },
			abrupt: true, made: 1, step: 1, pushes: "1 requested stopped",
		},
		{
			name:  "what the target has is not pushed again",
			given: func(r *rig) { mustSync(r.t, r.loop, "a"); synctest.Wait() },
			made:  1, step: 1, pushes: "1 requested",
		},
		{
			name: "a running push ends first, then the final one goes out",
			given: func(r *rig) {
				r.stores[0].takes = 4 * time.Second
				mustSync(r.t, r.loop, "a")
				sleep(time.Second)
				r.engine.feed(1)
			},
			took: 7 * time.Second, made: 2, step: 2, pushes: "1 requested, 2 shutdown",
		},
		{
			name: "a checkpoint of an older step that is being written is not the final one",
			given: func(r *rig) {
				r.disk.takes = 4 * time.Second
				r.engine.feed(1)
				synctest.Wait()
				mustCheckpoint(r.t, r.loop)
				sleep(time.Second)
				r.engine.feed(1)
			},
			took: 7 * time.Second, made: 3, step: 3, pushes: "3 shutdown",
		},
		{
			name: "an older one that fails meanwhile is no error: the final one covers it",
			given: func(r *rig) {
				r.disk.writing = func(ctx context.Context) error {
					if err := pass(ctx, 4*time.Second); len(r.disk.begun) == 2 {
						return errors.Join(errPlanted, err)
					}
					return nil
				}
				r.engine.feed(1)
				synctest.Wait()
				mustCheckpoint(r.t, r.loop)
				sleep(time.Second)
				r.engine.feed(1)
			},
			took: 7 * time.Second, made: 2, step: 3, pushes: "2 shutdown",
		},
		{
			name: "one of the current step that is being written is",
			given: func(r *rig) {
				r.disk.takes = 4 * time.Second
				r.engine.feed(1)
				synctest.Wait()
				mustCheckpoint(r.t, r.loop)
				sleep(time.Second)
			},
			took: 3 * time.Second, made: 2, step: 2, pushes: "2 shutdown",
		},
		{
			name: "a failed checkpoint is an error, and the last good one is pushed",
			given: func(r *rig) {
				r.disk.change(func(d *disk) { d.writing = func(context.Context) error { return errPlanted } })
				r.engine.feed(1)
			},
			err: "stop: final checkpoint: planted", made: 1, step: 1, pushes: "1 shutdown",
		},
		{
			name: "a failed push is an error and is not tried again",
			given: func(r *rig) {
				r.stores[0].pushing = func(context.Context, PushJob) error { return errPlanted }
			},
			err: "stop: final push to a: planted", made: 1, step: 1, pushes: "1 shutdown planted",
		},
		{
			name:  "a push that does not end is cut off at the deadline",
			given: func(r *rig) { r.stores[0].takes = time.Hour },
			took:  30 * time.Second, err: "push to a: shutdown timeout passed", made: 1, step: 1, pushes: "1 shutdown stopped",
		},
		{
			name:  "a checkpoint that does not end is cut off at the deadline, and there is no time left for its push",
			given: func(r *rig) { r.disk.takes = time.Hour; r.engine.feed(1) },
			took:  30 * time.Second, err: "final checkpoint of step 2: shutdown timeout passed", made: 1, step: 1,
		},
		{
			name:  "a blocked snapshot is waited for",
			given: func(r *rig) { r.engine.change(func(e *engine) { e.facts.Blocked = "transaction"; e.facts.Step = 2 }) },
			then: func(r *rig) {
				sleep(5 * time.Second)
				r.engine.change(func(e *engine) { e.facts.Blocked = "" })
			},
			took: 5 * time.Second, made: 2, step: 2, pushes: "2 shutdown",
		},
		{
			name:  "a snapshot that stays blocked is given up at the deadline",
			given: func(r *rig) { r.engine.change(func(e *engine) { e.facts.Blocked = "transaction"; e.facts.Step = 2 }) },
			took:  30 * time.Second, err: "final checkpoint of step 2: shutdown timeout passed", made: 1, step: 1,
		},
		{
			name: "a replay that blocks snapshots is stepped to its end",
			given: func(r *rig) {
				r.engine.change(func(e *engine) {
					e.facts.Phase, e.facts.Blocked, e.facts.Step = Replaying, "replaying", 2
					e.stepping = func(ctx context.Context) error {
						if e.look().Step == 4 {
							e.mu.Lock()
							e.facts.Phase, e.facts.Blocked = Running, ""
							e.mu.Unlock()
						}
						return pass(ctx, time.Second)
					}
				})
			},
			took: 3 * time.Second, made: 2, step: 5, pushes: "2 shutdown",
		},
		{
			name:  "a step that does not end is cut off at the deadline",
			given: func(r *rig) { r.stepFor(time.Hour) },
			took:  30 * time.Second, err: "push to a: shutdown timeout passed", made: 1, step: 1,
		},
		{
			name:   "without checkpoint a running step is cut off",
			given:  func(r *rig) { r.stepFor(time.Hour); sleep(time.Second) },
			abrupt: true, made: 1, step: 1,
		},
		{
			name:  "a second stop without checkpoint cuts off the step that the first one waits for",
			given: func(r *rig) { r.stepFor(time.Hour) },
			then:  func(r *rig) { sleep(3 * time.Second); _ = r.loop.Stop(false) },
			took:  3 * time.Second, made: 1, step: 1,
		},
		{
			name:  "a step that ends in time is waited for and saved",
			given: func(r *rig) { r.stepFor(5 * time.Second) },
			took:  5 * time.Second, made: 2, step: 2, pushes: "2 shutdown",
		},
		{
			name:  "a fenced target is left alone",
			given: func(r *rig) { r.stores[0].change(func(s *store) { s.state.Fenced = true }); r.engine.feed(1) },
			made:  2, step: 2,
		},
		{
			name:  "a held target is left alone",
			given: func(r *rig) { r.stores[0].change(func(s *store) { s.state.Held = true }); r.engine.feed(1) },
			made:  2, step: 2,
		},
		{
			name:  "a second stop without checkpoint cuts the first one short",
			given: func(r *rig) { r.stores[0].takes = time.Hour },
			then:  func(r *rig) { sleep(3 * time.Second); _ = r.loop.Stop(false) },
			took:  3 * time.Second, made: 1, step: 1, pushes: "1 shutdown stopped",
		},
		{
			name:  "a second stop with checkpoint changes nothing",
			given: func(r *rig) { r.stores[0].takes = 9 * time.Second },
			then:  func(r *rig) { sleep(3 * time.Second); _ = r.loop.Stop(true) },
			took:  9 * time.Second, made: 1, step: 1, pushes: "1 shutdown",
		},
		{
			name: "jobs on a target without push_on_shutdown may end, and get no successor",
			given: func(r *rig) {
				r.stores[1].takes = 5 * time.Second
				mustSync(r.t, r.loop, "b")
				synctest.Wait()
				r.engine.feed(1)
				synctest.Wait()
				mustSync(r.t, r.loop, "b")
				sleep(time.Second)
			},
			took: 4 * time.Second, made: 2, step: 2, pushes: "2 shutdown", onOther: 1,
		},
	} {
		t.Run(s.name, func(t *testing.T) { synctest.Test(t, s.run) })
	}
}

func (s stopStory) run(t *testing.T) {
	r := newRig(t, 0, []time.Duration{0, 0}, func(c *Config) { c.Targets[0].PushOnShutdown = true }).start()
	r.checkpoint()
	if s.given != nil {
		s.given(r)
	}
	synctest.Wait()
	asked := time.Now()
	if err := r.loop.Stop(!s.abrupt); err != nil {
		t.Fatal(err)
	}
	if s.then != nil {
		synctest.Wait()
		expect(t, "state meanwhile", r.loop.Status().State, StateStopping)
		s.then(r)
	}
	err := r.end()
	expect(t, "took", time.Since(asked), s.took)
	if !strings.Contains(text(err), s.err) || (err == nil) != (s.err == "") {
		t.Errorf("Run returned %v, want %q", err, s.err)
	}
	status := r.loop.Status()
	expect(t, "state", status.State, StateStopped)
	expect(t, "status error", status.Error, text(err))
	expect(t, "checkpoints", len(r.disk.published()), s.made)
	expect(t, "step", status.Checkpoint.Published.Step, s.step)
	expect(t, "pushes", r.stores[0].told(), s.pushes)
	expect(t, "pushes on b", len(r.stores[1].done()), s.onOther)
}

// stepFor has a step begin that takes that long.
func (r *rig) stepFor(d time.Duration) {
	r.engine.change(func(e *engine) { e.stepping = func(ctx context.Context) error { return pass(ctx, d) } })
	r.engine.feed(1)
	synctest.Wait()
}

// told is what a target was asked to do and how it ended.
func (s *store) told() string {
	var out []string
	for _, j := range s.done() {
		line := fmt.Sprintf("%d %s", j.Checkpoint[15], j.Trigger)
		switch {
		case errors.Is(j.err, context.Canceled):
			line += " stopped"
		case j.err != nil:
			line += " " + j.err.Error()
		}
		out = append(out, line)
	}
	return strings.Join(out, ", ")
}

func TestAnEmptyCircuitStopsWithoutACheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0}, func(c *Config) { c.Targets[0].PushOnShutdown = true }).start()
		if err := r.loop.Stop(true); err != nil {
			t.Fatal(err)
		}
		expect(t, "Run", r.end(), nil)
		expect(t, "checkpoints", len(r.disk.published()), 0)
		expect(t, "pushes", len(r.stores[0].done()), 0)
	})
}

func TestTheFinalCheckpointAnswersTheRequestsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil).start()
		r.engine.change(func(e *engine) { e.facts.Blocked = "transaction" })
		r.engine.feed(1)
		synctest.Wait()
		asked := mustCheckpoint(t, r.loop)
		wait := make(chan error, 1)
		go func() { wait <- r.loop.WaitCheckpoint(t.Context(), 1) }()
		synctest.Wait()
		if err := r.loop.Stop(true); err != nil {
			t.Fatal(err)
		}
		unanswered(t, asked.Done)
		r.engine.change(func(e *engine) { e.facts.Blocked = "" })
		expect(t, "Run", r.end(), nil)
		expect(t, "request", answered(t, asked.Done), nil)
		expect(t, "wait", answered(t, wait), nil)
	})
}

func TestAStopBeforeTheRunIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil)
		r.engine.facts.Step = 3
		if err := r.loop.Stop(true); err != nil {
			t.Fatal(err)
		}
		r.start()
		expect(t, "Run", r.end(), nil)
		expect(t, "checkpoints", len(r.disk.published()), 1)
		expect(t, "steps", len(r.engine.steps), 0)
	})
}

func TestAStopThatComesDuringALookIsNotJudgedByIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil).start()
		r.checkpoint()
		r.engine.change(func(e *engine) {
			e.looking = func() {
				e.change(func(e *engine) { e.facts.Step = 2 })
				_ = r.loop.Stop(true)
			}
		})
		expect(t, "Run", r.end(), nil)
		expect(t, "published step", r.loop.Status().Checkpoint.Published.Step, 2)
	})
}

func TestAStepThatFailsDuringAStopOutranksIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil).start()
		r.engine.change(func(e *engine) { e.facts.Step, e.facts.Blocked = 2, "transaction" })
		_ = r.loop.Stop(true)
		synctest.Wait()
		r.engine.change(func(e *engine) {
			e.facts.Phase = Bootstrapping
			e.stepping = func(context.Context) error { return errPlanted }
		})
		if err := r.end(); !errors.Is(err, errPlanted) {
			t.Errorf("Run returned %v", err)
		}
		expect(t, "state", r.loop.Status().State, StateFailed)
	})
}
