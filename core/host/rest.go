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
	rests := p.dir != nil && p.run == nil && !p.underWay() && !p.scratch() // what is scratch says nothing
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

// lookAfterFailure reads the newest local checkpoint after a run that did not come to its loop; what is known stays where it cannot be read.
func (p *pipeline) lookAfterFailure(ctx context.Context) {
	if p.dir == nil || p.scratch() {
		return
	}
	newest, err := p.newest(context.WithoutCancel(ctx))
	if err != nil {
		p.log.Warn("local checkpoints cannot be read", "error", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest.newest = newest
}

// endRest waits until nothing reads the state at rest any more. Nothing begins to from then on: the caller is the run.
func (p *pipeline) endRest() {
	p.resting.Lock()
	defer p.resting.Unlock()
}
