package host

import (
	"context"
	"sync"

	"github.com/cairnsync/cairn/core/syncer"
)

// reconsider asks the targets that are held anew ("" = all of them), beside each other and not for longer than somebody waits for an answer: whoever
// asks for something is told what is so now. Before the first loop of this host there is no state to compare them with.
func (p *pipeline) reconsider(ctx context.Context, target string) {
	p.mu.Lock()
	r, workers := p.run, p.workers
	ran := r != nil && r.loop != nil
	p.mu.Unlock()
	if !ran {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.host.opts.pace.remote)
	defer cancel()
	var group sync.WaitGroup
	for _, w := range workers {
		s := w.Status()
		if s.Condition != syncer.Held || target != "" && s.Target != target {
			continue
		}
		group.Go(func() {
			err := w.Reconsider(ctx, r.standing())
			p.log.Info("held target asked anew", "target", s.Target, "state", w.Status().Condition, "error", err)
			r.loop.Wake() // where it is ready now, a push may be due
		})
	}
	group.Wait()
}
