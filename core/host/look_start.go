package host

import (
	"context"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/syncer"
)

// lookOnce looks, beside the loop of a run that has begun, whether the repository is still ours, until it gets an answer: with nothing to push nobody
// else would, and a primary that was taken over while it was down would call itself up to date. A run that has its answer makes no more calls.
func (p *pipeline) lookOnce(ctx context.Context, r *run, w *syncer.Worker) {
	try := func() (done bool) {
		err := w.Look(ctx, r.stands)
		s := w.Status()
		if err == nil || ctx.Err() != nil {
			return true
		}
		p.log.Warn("a target does not say that it is still ours", "target", s.Target, "state", s.Condition, "error", err)
		r.loop.Wake()
		return s.Condition == syncer.Fenced || s.Condition == syncer.Held // else somebody may put it right
	}
	if !try() {
		p.host.opts.pace.again(ctx, try)
	}
}

// standing is the state that runs, as far as commits are compared with it.
func (r *run) standing() checkpoint.Manifest {
	now, status := r.stands, r.loop.Status()
	now.ID, now.Step = status.Checkpoint.Published.ID, max(now.Step, status.Step)
	now.History = upTo(now.History, now.Step)
	return now
}
