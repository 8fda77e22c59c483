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
	worker maintainer
	due    chan struct{} // holds at most one
}

// maintainer is what a keeper needs of a syncer.Worker.
type maintainer interface {
	Maintain(ctx context.Context, req syncer.MaintainRequest) (syncer.MaintainReport, error)
}

func newKeeper(worker maintainer) *keeper {
	return &keeper{worker: worker, due: make(chan struct{}, 1)}
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
			if ctx.Err() != nil {
				return // both were ready; what is begun now would be cut off
			}
			_, _ = k.worker.Maintain(ctx, syncer.MaintainRequest{}) // the worker notes what became of it, and logs it
		}
	}
}

// keep has the repository maintained after each push of this run, if it has a retention block; nil if not.
func (r *run) keep(block config.Sync, worker *syncer.Worker) *keeper {
	if block.Retention == nil {
		return nil // nothing goes unless somebody asks
	}
	k := newKeeper(worker)
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
	var beside []func(context.Context)
	for _, k := range r.keepers {
		beside = append(beside, k.run)
	}
	for _, w := range p.unseen(r) {
		beside = append(beside, func(ctx context.Context) { p.lookOnce(ctx, r, w) })
	}
	for _, w := range r.late {
		beside = append(beside, func(ctx context.Context) { p.claimLate(ctx, r, w) })
	}
	return alongside(ctx, beside, func() error {
		err := r.loop.Run(ctx)
		r.phase("ending maintenance", nil)
		return err
	})
}

// alongside runs main with others beside it. Once main has ended, those are told to, and it returns when the last of them has.
func alongside(ctx context.Context, others []func(context.Context), main func() error) error {
	beside, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	for _, other := range others {
		group.Go(func() { other(beside) })
	}
	err := main()
	stop()
	group.Wait()
	return err
}

// policy is what a retention block asks of the syncer; nil = every commit is kept.
func policy(r *config.Retention) *repository.Retention {
	return (*repository.Retention)(r)
}
