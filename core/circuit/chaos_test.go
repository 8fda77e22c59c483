package circuit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

const chaosSeeds = 60

// TestWhateverHappensTheLoopKeepsItsWord goes through seeded histories of input, requests, blocks, faults and delays, each with a random end.
func TestWhateverHappensTheLoopKeepsItsWord(t *testing.T) {
	for seed := range uint64(chaosSeeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newChaos(t, seed).run() })
		})
	}
}

type chaos struct {
	*rig
	rand        *rand.Rand
	events      int64
	checkpoints []askedCheckpoint
	syncs       []askedSync
	steps       []<-chan error
}

type askedCheckpoint struct {
	CheckpointRequest
	step uint64 // the circuit's, when it was asked
}

type askedSync struct {
	SyncRequest
	target string
}

func newChaos(t *testing.T, seed uint64) *chaos {
	r := newRig(t, time.Minute, []time.Duration{5 * time.Minute, 7 * time.Minute, 0}, func(c *Config) {
		c.Targets[1].PushOnShutdown = true
	})
	c := &chaos{rig: r, rand: rand.New(rand.NewPCG(seed, 1))}
	r.engine.stepping = func(ctx context.Context) error { return pass(ctx, c.delay(3*time.Second)) }
	r.disk.writing = func(ctx context.Context) error { return errors.Join(pass(ctx, c.delay(2*time.Minute)), c.fault()) }
	for _, s := range r.stores {
		s.pushing = func(ctx context.Context, _ PushJob) error {
			return errors.Join(pass(ctx, c.delay(10*time.Minute)), c.fault())
		}
	}
	return c
}

// delay and fault are asked by several goroutines; the mutex of the log serves as well as any.
func (c *chaos) delay(most time.Duration) time.Duration {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	return time.Duration(c.rand.Int64N(int64(most)))
}

func (c *chaos) fault() error {
	if c.delay(10) < 3 {
		return errPlanted
	}
	return nil
}

func (c *chaos) run() {
	c.start()
	published := uint64(0)
	for range 400 {
		c.act(int(c.delay(12)))
		c.events++
		if c.delay(2) == 0 {
			sleep(c.delay(90 * time.Second))
		}
		s := c.loop.Status()
		if s.Checkpoint.Published.Step < published {
			c.t.Errorf("published went back from step %d to %d", published, s.Checkpoint.Published.Step)
		}
		published = s.Checkpoint.Published.Step
	}
	switch c.delay(3) {
	case 0:
		c.cancel()
	case 1:
		_ = c.loop.Stop(true)
	default:
		c.engine.change(func(e *engine) {
			e.facts.Phase, e.stepping = Replaying, func(context.Context) error { return errPlanted }
		})
		_ = c.loop.Resume()
	}
	<-c.ended
	c.judge()
}

func (c *chaos) act(what int) {
	switch what {
	case 0, 1, 2:
		c.engine.feed(1)
	case 3:
		step := c.engine.look().Step
		a, err := c.loop.RequestCheckpoint()
		expect(c.t, "checkpoint request", err, nil)
		c.checkpoints = append(c.checkpoints, askedCheckpoint{a, step})
	case 4, 5:
		target := []string{"", "a", "b", "c"}[c.delay(4)]
		a, err := c.loop.RequestSync(target)
		if err == nil {
			c.syncs = append(c.syncs, askedSync{a, target})
		} else if !errors.Is(err, ErrNothingToSync) {
			c.t.Error(err)
		}
	case 6:
		done, err := c.loop.RequestStep()
		expect(c.t, "step request", err, nil)
		c.steps = append(c.steps, done)
	case 7:
		_ = c.loop.Pause()
	case 8, 9:
		_ = c.loop.Resume()
	case 10:
		c.engine.change(func(e *engine) { e.facts.Blocked = "transaction" })
	default:
		c.engine.change(func(e *engine) { e.facts.Blocked = "" })
	}
}

func (c *chaos) judge() {
	newest := c.loop.Status().Checkpoint.Published
	for _, a := range c.checkpoints {
		if err := answered(c.t, a.Done); err == nil && newest.Step < a.step {
			c.t.Errorf("checkpoint %d answered well; step %d is published, %d was asked", a.Sequence, newest.Step, a.step)
		}
	}
	for _, a := range c.syncs {
		err := answered(c.t, a.Done)
		for _, s := range c.stores {
			if err == nil && (a.target == "" || a.target == s.name) && !s.has(a.Checkpoint) {
				c.t.Errorf("sync of %v to %q answered well; %s does not have it", a.Checkpoint, a.target, s.name)
			}
		}
	}
	for _, done := range c.steps {
		answered(c.t, done)
	}
	c.judgeOrder()
	c.judgeLooks()
}

// judgeOrder: requested pushes go out in the order asked, which is that of the ids.
func (c *chaos) judgeOrder() {
	for _, s := range c.stores {
		last := uuid.Nil
		for _, j := range s.done() {
			if j.Trigger == PushRequested && newer(last, j.Checkpoint) != j.Checkpoint {
				c.t.Errorf("%s got %v after %v", s.name, j.Checkpoint, last)
			} else if j.Trigger == PushRequested {
				last = j.Checkpoint
			}
		}
	}
}

func (c *chaos) judgeLooks() {
	jobs := int64(len(c.disk.begun))
	for _, s := range c.stores {
		jobs += int64(len(s.done()))
	}
	if actions := int64(len(c.engine.steps)) + jobs; c.looks.Load() > 2*actions+c.events+jobs+10 {
		c.t.Errorf("%d looks for %d actions and %d events", c.looks.Load(), actions, c.events)
	}
}

// has tells whether a push of the checkpoint ended well here.
func (s *store) has(id uuid.UUID) bool {
	for _, j := range s.done() {
		if j.Checkpoint == id && j.err == nil {
			return true
		}
	}
	return false
}
