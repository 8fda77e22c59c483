package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// EndBy bounds the taking down that follows the end of Run's context: half of what is left until then is for the calls that drain, a quarter lies between
// SIGTERM and SIGKILL, and the rest is for the clean-up, which takes a moment. Timeouts still hold where they are shorter. It has to be called before that context ends.
func (s *Supervisor) EndBy(deadline time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endBy = deadline
}

// haste is what EndBy said.
func (s *Supervisor) haste() haste {
	s.mu.Lock()
	defer s.mu.Unlock()
	return haste{by: s.endBy, now: s.opts.Now}
}

// haste bounds the steps of a taking down together. The zero value bounds each by its own timeout only.
type haste struct {
	by  time.Time
	now func() time.Time
}

// leastStep is what a step of the clean-up gets in any case: it takes milliseconds, but on a busy machine, and what is cut short there is left behind.
const leastStep = time.Second

// step is how long a step of the clean-up may take that may take d.
func (h haste) step(d time.Duration) time.Duration { return min(d, max(leastStep, h.share(d, 1))) }

// share is one part of what is left, and d at most, so that there is time for the steps after it.
func (h haste) share(d, parts time.Duration) time.Duration {
	if h.by.IsZero() {
		return d
	}
	return min(d, max(0, h.by.Sub(h.now())/parts))
}

// end takes the process down and removes what belongs to it. gently = calls in flight may finish first and the process is asked before
// it is killed. Every step is bounded, whatever the plugin does, and ctx may be dead: only its values count.
func (s *session) end(ctx context.Context, gently bool) { s.endIn(ctx, gently, haste{}) }

// endIn is end, in haste.
func (s *session) endIn(ctx context.Context, gently bool, h haste) {
	t := s.opts.Timeouts
	if s.proc != nil && s.proc.number() != 0 {
		s.proc.listenFor(h.share(lastWords, 8))
		if gently && !s.useless.Load() && !s.proc.hasExited() {
			s.drain(context.WithoutCancel(ctx), h.share(t.Drain, 2))
			s.report(s.proc.signal(syscall.SIGTERM))
			within(h.share(t.Term, 2), s.proc.exited)
		}
		s.report(s.proc.signal(syscall.SIGKILL))
		if !within(h.step(t.Kill), s.proc.exited) || !within(h.step(lastWords+t.Kill), s.proc.drained) {
			s.report(fmt.Errorf("plugin process %s does not end after SIGKILL; the kernel keeps it", s.proc.ID()))
		}
	}
	if s.peer != nil && !bounded(h.step(t.Kill), s.peer.Kill) {
		s.report(errors.New("go-plugin did not let go of the process"))
	}
	for _, w := range s.synced {
		s.report(w.Close())
	}
	if !bounded(h.step(t.Kill), s.working.Wait) {
		s.report(errors.New("goroutines of the plugin connection did not end"))
	}
	s.out.close()
	if s.dir != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.step(t.Kill))
		defer cancel()
		s.report(s.dir.remove(ctx.Done()))
	}
}

// drain waits for the answer for so long in all: most of that is for the calls in flight, the rest for the target's own closing, which the plugin does before it
// answers.
func (s *session) drain(ctx context.Context, patience time.Duration) {
	if s.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	running, err := s.client.Drain(ctx, patience*9/10)
	switch {
	case ctx.Err() != nil: // whatever the call has made of it: it is not the store that did not answer
		s.opts.Log.Warn("plugin not drained: it did not answer in time; a call or its closing hangs", "plugin", s.spec.Plugin, "waited", patience.Round(time.Millisecond))
	case err != nil:
		s.opts.Log.Warn("plugin not drained", "plugin", s.spec.Plugin, "error", s.mask.error(err))
	case running > 0:
		s.opts.Log.Warn("plugin not drained: calls go on", "plugin", s.spec.Plugin, "calls", running, "waited", (patience * 9 / 10).Round(time.Millisecond))
	}
}
