package circuit

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// slowSave keeps what is saved until the test lets it go.
type slowSave struct {
	begun chan SyncSummary
	end   chan struct{}
}

func (s slowSave) into(c *Config) {
	c.SaveSync = func(sum SyncSummary) {
		s.begun <- sum
		<-s.end
	}
}

func newSlowSave() slowSave { return slowSave{begun: make(chan SyncSummary), end: make(chan struct{})} }

// A kill between the answer and the save would make success go back.
func TestAnOutcomeIsSavedBeforeItIsToldToAnyone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		save := newSlowSave()
		r := newRig(t, 0, []time.Duration{10 * time.Second, 0}, save.into).start()
		first := r.checkpoint()
		asked := mustSync(t, r.loop, "")
		<-save.begun // the first target's part; the request is not answered by it
		save.end <- struct{}{}
		expect(t, "saved", (<-save.begun).Success, first.ID)
		synctest.Wait()
		unanswered(t, asked.Done)
		expect(t, "success while it is being saved", r.loop.Status().Sync.Success, uuid.Nil)
		steps := len(r.engine.steps)
		r.engine.feed(1)
		synctest.Wait()
		expect(t, "steps while it is being saved", len(r.engine.steps), steps+1)
		save.end <- struct{}{}
		expect(t, "answer", answered(t, asked.Done), nil)
		expect(t, "success afterwards", r.loop.Status().Sync.Success, first.ID)

		second := r.checkpoint()
		expect(t, "saved of a periodic push", (<-save.begun).Periodic, second.ID)
		expect(t, "periodic while it is being saved", r.loop.Status().Sync.Periodic, uuid.Nil)
		save.end <- struct{}{}
		synctest.Wait()
		expect(t, "periodic afterwards", r.loop.Status().Sync.Periodic, second.ID)
	})
}

// The loop itself answers a request to a fenced target, and that can complete it: then too it is saved first, and not on the loop's goroutine.
func TestWhatAFenceSettlesIsSavedBeforeItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		save := newSlowSave()
		r := newRig(t, 0, []time.Duration{0, 0}, save.into)
		r.start()
		r.checkpoint()
		r.stores[1].takes = time.Hour
		mustSync(t, r.loop, "b")
		synctest.Wait()
		r.engine.feed(1)
		synctest.Wait()
		made := r.checkpoint()
		asked := mustSync(t, r.loop, "")
		<-save.begun // of a
		save.end <- struct{}{}
		synctest.Wait()
		r.stores[1].change(func(s *store) { s.state.Fenced = true })
		r.loop.Wake()
		expect(t, "saved", (<-save.begun).Success, made.ID)
		unanswered(t, asked.Done)
		expect(t, "success while it is being saved", r.loop.Status().Sync.Success, uuid.Nil)
		steps := len(r.engine.steps)
		r.engine.feed(1)
		synctest.Wait()
		expect(t, "steps while it is being saved", len(r.engine.steps), steps+1)
		save.end <- struct{}{}
		if err := answered(t, asked.Done); !errors.Is(err, ErrFenced) {
			t.Errorf("answered %v", err)
		}
		expect(t, "success afterwards", r.loop.Status().Sync.Success, made.ID)
		go func() {
			<-save.begun // of the job that the end cuts off
			save.end <- struct{}{}
		}()
		r.cancel()
		_ = r.end()
	})
}

func TestAPanicOfWhatTheHostGivesEndsNothing(t *testing.T) {
	for name, plant := range map[string]func(*Config){
		"SaveSync": func(c *Config) { c.SaveSync = func(SyncSummary) { panic("boom") } },
		"release": func(c *Config) {
			c.Pin = func(uuid.UUID) (func(), error) { return func() { panic("boom") }, nil }
		},
		"no release": func(c *Config) { c.Pin = func(uuid.UUID) (func(), error) { return nil, nil } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 0, []time.Duration{0}, plant).start()
				made := r.checkpoint()
				asked := mustSync(t, r.loop, "")
				expect(t, "answer", answered(t, asked.Done), nil)
				expect(t, "success", r.loop.Status().Sync.Success, made.ID)
				r.stores[0].change(func(s *store) { s.state.Fenced = true })
				asked = mustSync(t, r.loop, "") // answered by the loop itself
				if err := answered(t, asked.Done); !errors.Is(err, ErrFenced) {
					t.Errorf("answered %v", err)
				}
				synctest.Wait()
				expect(t, "state", r.loop.Status().State, StateRunning)
			})
		})
	}
}

func TestAPanicOfPinIsTheRequestsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0}, func(c *Config) {
			c.Pin = func(uuid.UUID) (func(), error) { panic("boom") }
		}).start()
		r.checkpoint()
		_, err := r.loop.RequestSync("")
		if panicked := (*PanicError)(nil); !errors.As(err, &panicked) {
			t.Errorf("answered %v", err)
		}
	})
}

// doubtful is a pusher whose State panics once when it is told to.
type doubtful struct {
	*store
	due *atomic.Bool
}

func (d doubtful) State() PushState {
	if d.due.Swap(false) {
		panic("boom")
	}
	return d.store.State()
}

func TestAPanicOfAPushersStateEndsTheLoopNotTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var due atomic.Bool
		r := newRig(t, 0, []time.Duration{0}, func(c *Config) {
			c.Targets[0].Pusher = doubtful{c.Targets[0].Pusher.(*store), &due}
		})
		r.stores[0].pushing = func(context.Context, PushJob) error {
			due.Store(true) // the job asks for the state to learn why it failed
			return errPlanted
		}
		r.start()
		r.checkpoint()
		asked := mustSync(t, r.loop, "")
		var panicked *PanicError
		if err := r.end(); !errors.As(err, &panicked) || panicked.In != "push job" {
			t.Errorf("Run returned %v", err)
		}
		if err := answered(t, asked.Done); !errors.Is(err, ErrStopped) {
			t.Errorf("answered %v", err)
		}
	})
}
