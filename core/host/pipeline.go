package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/syncer"
)

// state is where a pipeline is between two runs of its loop. What the loop itself says (running, paused, stopping) refines stateRunning.
type state string

const (
	stateStopped  state = "stopped"
	stateStarting state = "starting"
	stateRunning  state = "running"
	stateStopping state = "stopping"
	stateFailed   state = "failed"
)

// pipeline is one configured pipeline over all its runs.
type pipeline struct {
	host *Host
	cfg  config.Pipeline
	log  hclog.Logger
	dir  *checkpoint.Dir // nil = memory storage: nothing on disk outlives a run

	mu      sync.Mutex // guards what stands below; never held while waiting for a run
	work    context.Context
	state   state
	err     error // of the last run, when state is failed
	record  checkpoint.Pipeline
	desired checkpoint.Desired
	run     *run // the current or the last one; nil before the first
	workers []*syncer.Worker
}

// run is one incarnation: one circuit, opened once, and the loop that drives it.
type run struct {
	id      uuid.UUID
	circuit circuit.Circuit
	loop    *circuit.Loop // nil until the circuit is open
	cancel  context.CancelFunc
	done    chan struct{} // closed when everything of the run has ended
	from    string        // what it started from, for people
}

func newPipeline(h *Host, cfg config.Pipeline) (*pipeline, error) {
	p := &pipeline{host: h, cfg: cfg, log: h.opts.Log.Named(cfg.Name), state: stateStopped, desired: checkpoint.Desired(cfg.Initial)}
	if cfg.Backend.Type != config.FileBackend {
		return p, nil
	}
	dir, err := checkpoint.OpenDir(cfg.Backend.Path, checkpoint.Options{Now: h.opts.Now, Hook: h.opts.Hook})
	if err != nil {
		return nil, err
	}
	p.dir = dir
	record, err := dir.Pipeline()
	switch {
	case errors.Is(err, fs.ErrNotExist): // it has never run here
	case err != nil:
		return nil, errors.Join(err, dir.Close())
	default:
		p.record, p.desired = record, record.Desired
		if err := p.openWorkers(uuid.Nil); err != nil { // so that status tells what is safe before the first run
			return nil, errors.Join(err, dir.Close())
		}
	}
	return p, nil
}

func (p *pipeline) close() error {
	if p.dir == nil {
		return nil
	}
	return p.dir.Close()
}

// Name is the pipeline's.
func (p *pipeline) Name() string { return p.cfg.Name }

// startAsDesired begins the first run of this host, unless the pipeline was left stopped. work outlives every run.
func (p *pipeline) startAsDesired(work context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.work = work
	if p.desired != checkpoint.Stopped {
		p.launch()
	}
}

// launch begins a run; the caller holds mu and has seen that none is under way.
func (p *pipeline) launch() {
	ctx, cancel := context.WithCancel(p.work)
	r := &run{id: uuid.Must(uuid.NewV7()), cancel: cancel, done: make(chan struct{})}
	p.run, p.state, p.err = r, stateStarting, nil
	go p.drive(ctx, r)
}

// drive is one run from its beginning to its end.
func (p *pipeline) drive(ctx context.Context, r *run) {
	defer close(r.done)
	defer r.cancel()
	err := p.begin(ctx, r)
	if err == nil {
		err = r.loop.Run(ctx)
	}
	if r.circuit != nil {
		if failed := r.circuit.Close(); failed != nil {
			err = errors.Join(err, fmt.Errorf("close circuit: %w", failed))
		}
	}
	p.ended(ctx, err)
}

// ended notes how a run ended. A run that was cut off because it was asked to end has not failed.
func (p *pipeline) ended(ctx context.Context, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil || ctx.Err() != nil {
		p.state = stateStopped
		p.log.Info("pipeline stopped")
		return
	}
	p.state, p.err = stateFailed, err
	p.log.Error("pipeline failed", "error", err)
}

// running gives the open circuit and its loop to the run, unless that was told to end meanwhile.
func (p *pipeline) running(ctx context.Context, r *run, c circuit.Circuit, loop *circuit.Loop) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.circuit = c
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.loop, p.state = loop, stateRunning
	return nil
}

// shutdown ends the current run, if any, in order, and waits for it. The desired state stays: the next host takes it up.
func (p *pipeline) shutdown() {
	p.mu.Lock()
	r := p.run
	if r == nil || p.state == stateStopped || p.state == stateFailed {
		p.mu.Unlock()
		return
	}
	p.stopRun(r, true)
	p.mu.Unlock()
	<-r.done
}

// stopRun tells a run to end; the caller holds mu. A run that has not come to its loop has nothing to save.
func (p *pipeline) stopRun(r *run, checkpoint bool) {
	if p.state == stateStarting {
		r.cancel()
		p.state = stateStopping
		return
	}
	if err := r.loop.Stop(checkpoint && p.dir != nil); err != nil {
		p.log.Debug("stop", "error", err) // it is ending by itself: that is what was asked for
	}
	p.state = stateStopping
}

// ready is nil when the pipeline is in its desired state.
func (p *pipeline) ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.state == stateFailed:
		return fmt.Errorf("pipeline %q has failed: %w", p.cfg.Name, p.err)
	case p.desired != checkpoint.Stopped && p.state != stateRunning:
		return fmt.Errorf("pipeline %q is %s", p.cfg.Name, p.state)
	}
	return nil
}

// openWorkers makes the pipeline's workers anew, for one incarnation; the caller holds mu or is alone.
func (p *pipeline) openWorkers(incarnation uuid.UUID) error {
	blocks, _ := p.cfg.Backend.Sync() // no blocks where the backend cannot sync
	workers := make([]*syncer.Worker, 0, len(blocks))
	for _, block := range blocks {
		worker, err := syncer.Open(p.workerConfig(block, incarnation))
		if err != nil {
			return err
		}
		workers = append(workers, worker)
	}
	p.workers = workers
	return nil
}
