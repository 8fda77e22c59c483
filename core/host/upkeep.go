package host

import (
	"context"
	"sync"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/core/syncer"
)

// keeper maintains one repository beside the pushes of one run: each push that succeeded is followed by retention and a sweep. Pushes that end while
// one runs are followed by one more, not by one each. What fails is shown by status and tried again after the next push.
type keeper struct {
	worker *syncer.Worker
	due    chan struct{} // holds at most one
}

// pushed says that a push has succeeded. It never waits.
func (k *keeper) pushed() {
	if k == nil {
		return
	}
	select {
	case k.due <- struct{}{}:
	default: // it is due already, and has not begun
	}
}

// run maintains after pushes until ctx ends. It may be cut off anywhere.
func (k *keeper) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.due:
			_, _ = k.worker.Maintain(ctx, syncer.MaintainRequest{}) // the worker notes what became of it, and logs it
		}
	}
}

// keep has the repository maintained after each push of this run, if it has a retention block; nil if not.
func (r *run) keep(block config.Sync, worker *syncer.Worker) *keeper {
	if block.Retention == nil {
		return nil // nothing goes unless somebody asks
	}
	k := &keeper{worker: worker, due: make(chan struct{}, 1)}
	r.keepers = append(r.keepers, k)
	return k
}

// unseen are the targets that the run has not asked yet whether they are still ours: an activation has.
func (p *pipeline) unseen(r *run) []*syncer.Worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.activated != nil || p.dir == nil {
		return nil
	}
	return p.workers
}

// keepLooping drives the run's loop, with the keepers, the first look at each target and the late claims beside it, and returns when all of them have
// ended.
func (p *pipeline) keepLooping(ctx context.Context, r *run) error {
	beside, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	for _, k := range r.keepers {
		others.Go(func() { k.run(beside) })
	}
	for _, w := range p.unseen(r) {
		others.Go(func() { p.lookOnce(beside, r, w) })
	}
	for _, w := range r.late {
		others.Go(func() { p.claimLate(beside, w) })
	}
	err := r.loop.Run(ctx)
	r.phase("ending maintenance", nil)
	stop()
	others.Wait()
	return err
}

// policy is what a retention block asks of the syncer; nil = every commit is kept.
func policy(r *config.Retention) *repository.Retention {
	return (*repository.Retention)(r)
}
