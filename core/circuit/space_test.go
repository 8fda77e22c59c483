package circuit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cairnsync/cairn/core/trigger"
)

// errFull is a step's, as a circuit makes it.
var errFull = fmt.Errorf("step 2: commit: %w", ErrNoSpace)

// fillDisk makes every step find it full until the returned function is called.
func (r *rig) fillDisk() (free func()) {
	r.engine.change(func(e *engine) { e.stepping = func(context.Context) error { return errFull } })
	return func() { r.engine.change(func(e *engine) { e.stepping = nil }) }
}

func (l *lines) count(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.text {
		n += strings.Count(line, part)
	}
	return n
}

func TestAFullDiskHoldsStepsBackAndTheyGoOnByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{time.Minute}).start()
		r.checkpoint()
		free := r.fillDisk()
		begun := time.Now()
		r.engine.feed(5)
		sleep(10 * time.Minute)
		s := r.loop.Status()
		expect(t, "state", s.State, StateRunning)
		expect(t, "step", s.Step, 1)
		expect(t, "buffered", s.Buffered, 5)
		expect(t, "error", s.StepFailure.Error, errFull.Error())
		expect(t, "since", s.StepFailure.Since, begun)
		expect(t, "why", s.Why, trigger.WhyAwaitSpace)
		expect(t, "pushes meanwhile", len(r.stores[0].done()), 1)
		if n := s.StepFailure.Failures; n < 20 || n > 45 || n != r.log.count("no step until there is space") {
			t.Errorf("%d attempts in ten minutes with waits of 1 s to 30 s, %d lines", n, r.log.count("no step until there is space"))
		}
		free()
		sleep(time.Until(s.Until))
		s = r.loop.Status()
		expect(t, "step with space", s.Step, 2)
		expect(t, "failure with space", s.StepFailure, nil)
		expect(t, "applied once", s.Totals.Applied, 6)
		expect(t, "lines of the end", r.log.count("steps go on"), 1)
	})
}

func TestAStepThatMovesNothingIsNoSignOfSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil).start()
		r.checkpoint()
		r.fillDisk()
		r.engine.feed(1)
		synctest.Wait()
		r.loop.goOn(StepResult{Step: 1})
		if r.loop.Status().StepFailure == nil {
			t.Error("a step without effect has ended the wait")
		}
	})
}

func TestARequestForAStepHearsThatTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil).start()
		r.fillDisk()
		done, err := r.loop.RequestStep()
		if err != nil {
			t.Fatal(err)
		}
		if err := answered(t, done); !errors.Is(err, ErrNoSpace) || errors.Is(err, ErrStopped) {
			t.Errorf("answered %v", err)
		}
	})
}

func TestAStopOnAFullDiskSavesWhatIsCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil).start()
		r.engine.feed(1)
		synctest.Wait()
		r.fillDisk()
		r.engine.feed(1)
		sleep(time.Minute)
		if err := r.loop.Stop(true); err != nil {
			t.Fatal(err)
		}
		expect(t, "run", r.end(), nil)
		expect(t, "step saved", r.disk.published()[0].Step, 1)
	})
}

func TestAStopThatMustStepFirstDoesNotSpinOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil).start()
		r.checkpoint()
		r.fillDisk()
		r.engine.change(func(e *engine) { e.facts.Phase, e.facts.Blocked = Replaying, "replaying"; e.facts.Step++ })
		synctest.Wait()
		if err := r.loop.Stop(true); err != nil {
			t.Fatal(err)
		}
		if err := r.end(); !errors.Is(err, ErrShutdownTimeout) {
			t.Errorf("run: %v", err)
		}
		if n := r.loop.Status().StepFailure.Failures; n < 2 || n > 10 {
			t.Errorf("%d steps in %v", n, DefaultShutdownTimeout)
		}
	})
}
