package syncer

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// CASES A72: a store that takes two requests at a time is asked for fewer than eight, and the push succeeds.
func TestAStoreThatThrottlesIsAskedForLess(t *testing.T) {
	b := newBench(t)
	id := b.publish(1, map[string]string{"f": incompressible(10, 50<<20)})
	synctest.Test(t, func(t *testing.T) {
		var inFlight, refused atomic.Int64
		b.store.Before = func(_ ctxt, c callt) error {
			now := inFlight.Add(1)
			time.Sleep(100 * time.Millisecond)
			if now > 2 && c.Op == "put" {
				inFlight.Add(-1)
				refused.Add(1)
				return &sdk.Error{Code: sdk.Throttled}
			}
			return nil
		}
		b.store.After = func(_ ctxt, _ callt, err error) error {
			inFlight.Add(-1)
			return err
		}
		slots := NewLimiter(8)
		w := b.worker(func(c *Config) {
			c.Slots, c.RetryBudget, c.Jitter = slots, time.Minute, func() float64 { return 0.5 }
		})
		if err := w.Push(t.Context(), Job{Checkpoint: id, Trigger: Periodic}); err != nil {
			t.Fatal(err)
		}
		if _, bound := slots.InFlight(); refused.Load() == 0 || bound > 6 {
			t.Errorf("throttled %d times, the bound is %d", refused.Load(), bound)
		}
		if rec := w.Status().Jobs[0]; rec.Attempts < 2 || rec.Requests < 10 || rec.Bytes < 50<<20 || rec.Objects != 8 {
			t.Errorf("record %+v", rec)
		}
	})
}

// CASES A75: a target that accepts and never answers.
func TestATargetThatNeverAnswersFailsItsJobInTimeAndShowsSinceWhen(t *testing.T) {
	b := newBench(t)
	id := b.publish(1, map[string]string{"f": "1"})
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		b.store.Before = func(ctx ctxt, c callt) error {
			if c.Op == "put" && strings.Contains(c.Key, "pack/") {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		w := b.worker(func(c *Config) { c.RetryBudget = time.Minute; c.Jitter = func() float64 { return 0.5 } })
		ended := make(chan error, 1)
		go func() { ended <- w.Push(t.Context(), Job{Checkpoint: id, Trigger: Periodic}) }()
		time.Sleep(35 * time.Second)
		s := w.Status()
		if s.Condition != Pushing || s.Running == nil || !s.Running.StuckSince.Equal(began) || s.Running.Attempts != 2 || s.Running.Error == "" {
			t.Errorf("status while it hangs: %+v, running %+v", s, s.Running)
		}
		err := <-ended
		if !errors.Is(err, sdk.Unavailable) || !strings.Contains(err.Error(), "no answer within 15s") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took < 50*time.Second || took > 80*time.Second {
			t.Errorf("it took %s with a budget of a minute", took)
		}
	})
}
