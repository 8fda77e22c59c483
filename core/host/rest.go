package host

import (
	"context"

	"github.com/cairnsync/cairn/core/trigger"
)

// rest is what a pipeline held when nothing ran last, so that status does not call it empty.
type rest struct {
	known  bool // step is
	step   uint64
	newest trigger.Checkpoint
}

// lookAtRest reads it, where no run is going to tell. What cannot be read stays unknown and is logged: the next start says what to do.
func (p *pipeline) lookAtRest(ctx context.Context) {
	p.resting.Lock()
	defer p.resting.Unlock()
	p.mu.Lock()
	rests := p.dir != nil && p.run == nil && p.state == stateStopped && !p.scratch() // what is scratch says nothing
	p.mu.Unlock()
	if !rests {
		return
	}
	var seen rest
	err := guarded("look at the stopped state", func() (err error) {
		if seen.newest, err = p.newest(ctx); err != nil {
			return err
		}
		c, err := p.host.opts.Circuit(p.cfg)
		if err != nil {
			return err
		}
		live, err := c.Inspect(ctx, p.stateDir())
		seen.known, seen.step = live.Exists && live.Exact, live.Step
		return err
	})
	if err != nil {
		p.log.Warn("the state of the stopped pipeline cannot be read", "error", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = seen
}

// endRest waits until nothing reads the state at rest any more. Nothing begins to from then on: the caller is the run.
func (p *pipeline) endRest() {
	p.resting.Lock()
	defer p.resting.Unlock()
}
