package host

import (
	"context"
	"errors"
	"fmt"
	"sync"

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
	stateStandby  state = "standby"
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

	acting    sync.Mutex // one request of an operator at a time; likewise
	recording sync.Mutex // one change of the record at a time; held over its flush to disk, never while waiting for a run
	resting   sync.Mutex // held while the state is read at rest; a start waits for it, for a circuit may lock what it inspects

	mu       sync.Mutex      // guards what stands below; never held over a call that can block
	work     context.Context // what runs live in; nil = none begins: the host has not come to it yet, or it is ending
	state    state
	err      error // of the last run: why it failed, or what its stop did not get done
	recalled bool  // record is what pipeline.json says, or there is none
	record   checkpoint.Pipeline
	desired  checkpoint.Desired
	run      *run                       // the current or the last one; nil before the first
	workers  []*syncer.Worker           // in the order of the sync blocks; empty before the first state
	summary  circuit.SyncSummary        // of sync status, as saved; a loop knows better
	rest     rest                       // what it held when nothing ran last
	follower *syncer.Follower           // of a standby; nil = it has not followed in this host
	reading  map[string]syncer.Progress // how far the verifications are that read chunks, by target
	refused  string                     // why the last activation failed; "" = it did not
}

// newPipeline takes the pipeline's folder. What it remembers is read here, so that status tells what is safe before the first run; when it
// cannot be read the pipeline has failed, and the others have not.
func newPipeline(h *Host, cfg config.Pipeline) (*pipeline, error) {
	p := &pipeline{host: h, cfg: cfg, log: h.opts.Log.Named(cfg.Name), state: stateStopped, desired: checkpoint.Desired(cfg.Initial)}
	if cfg.Backend.Type == config.MemoryBackend {
		p.recalled = true
		return p, nil
	}
	dir, err := checkpoint.OpenDir(cfg.Backend.Path, checkpoint.Options{Now: h.opts.Now, Hook: h.opts.Hook})
	if err != nil {
		return nil, err
	}
	p.dir = dir
	if err := p.recall(); err != nil {
		p.state, p.err = stateFailed, err
	}
	return p, nil
}

// close waits for the last run and gives the folder back.
func (p *pipeline) close() error {
	p.shutdown()
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
	r := newRun(cancel)
	p.run, p.state, p.err = r, stateStarting, nil
	go p.drive(ctx, r)
}

// drive is one run from its beginning to its end.
func (p *pipeline) drive(ctx context.Context, r *run) {
	defer close(r.done)
	defer r.cancel()
	err := guarded("start", func() error { return p.asStandby(ctx, r) })
	if err == nil {
		err = guarded("start", func() error { return p.begin(ctx, r) })
	}
	err = p.outOfSpace(err)
	if err == nil {
		err = p.keepLooping(ctx, r)
	}
	r.phase("closing the circuit", nil)
	if r.circuit != nil {
		if failed := guarded("close circuit", r.circuit.Close); failed != nil {
			err = errors.Join(err, fmt.Errorf("close circuit: %w", failed))
		}
	}
	p.tell(r, outcome{err: brokeOff(p.cfg.Name, err)})
	p.ended(ctx, r, err)
}

// brokeOff is for whoever waits for an activation whose run has ended.
func brokeOff(name string, err error) error {
	return notRunning(name, fmt.Sprintf("its activation broke off and goes on at the next start (%v)", err))
}

// ended notes how a run ended. One that was cut off because it was asked to end has not failed, nor has one whose stop did not get all done.
func (p *pipeline) ended(ctx context.Context, r *run, err error) {
	stopped := err == nil || ctx.Err() != nil
	unfinished := false
	var status circuit.Status
	if r.loop != nil {
		status = r.loop.Status()
		p.saveSummary(status.Sync)
		unfinished = !stopped && status.State == circuit.StateStopped
	} else {
		p.lookAfterFailure(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.loop != nil {
		p.rest = rest{known: true, step: status.Step, newest: status.Checkpoint.Published}
	}
	switch {
	case stopped:
		p.state = stateStopped
		p.log.Info("pipeline stopped")
	case unfinished:
		p.state, p.err = stateStopped, err
		logFailure(p.log, "pipeline stopped, not all was done", err)
	default:
		p.state, p.err = stateFailed, err
		logFailure(p.log, "pipeline failed", err)
	}
	if r.thenFollow && p.work != nil {
		p.launch()
	}
}

// running gives the open circuit and its loop to the run, unless that was told to end meanwhile.
func (p *pipeline) running(ctx context.Context, r *run, loop *circuit.Loop) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.loop, p.state, p.follower, p.refused = loop, stateRunning, nil, ""
	p.log.Info("pipeline running", "incarnation", r.id, "from", r.from)
	for _, block := range p.cfg.Backend.Repositories() {
		for _, warning := range syncer.Warnings(syncer.Fencing(block.Fencing), nil) {
			p.log.Warn(warning, "target", block.Target)
		}
	}
	return nil
}

// shutdown ends the current run, if any, in order, and waits for it; none begins afterwards. The desired state stays: the next host takes
// it up.
func (p *pipeline) shutdown() {
	p.mu.Lock()
	p.work = nil
	r := p.run
	if p.underWay() {
		p.stopRun(r, true)
	}
	p.mu.Unlock()
	if r != nil {
		defer announce(p.log, "still stopping", func() string { return p.outsideLoop(r) })()
		<-r.done
	}
}

// outsideLoop is what a run is doing before or after its loop; "" within, for the loop speaks for itself.
func (p *pipeline) outsideLoop(r *run) string {
	p.mu.Lock()
	loop := r.loop
	p.mu.Unlock()
	if loop != nil && !over(loop.Status()) {
		return ""
	}
	return r.progress()
}

// over says whether a loop has ended.
func over(s circuit.Status) bool {
	return s.State == circuit.StateStopped || s.State == circuit.StateFailed
}

// underWay says whether a run has not ended; the caller holds mu.
func (p *pipeline) underWay() bool { return p.state != stateStopped && p.state != stateFailed }

// stopRun tells a run to end; the caller holds mu. A run that has not come to its loop has nothing to save.
func (p *pipeline) stopRun(r *run, checkpoint bool) {
	p.state = stateStopping
	if r.loop == nil {
		r.cancel()
		return
	}
	if err := r.loop.Stop(checkpoint && p.dir != nil); err != nil {
		p.log.Debug("stop", "error", err) // it is ending by itself: that is what was asked for
	}
}

// ready is nil when the pipeline is in its desired state.
func (p *pipeline) ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.state == stateFailed:
		return fmt.Errorf("pipeline %q has failed: %w", p.cfg.Name, p.err)
	case p.desired == checkpoint.Standby && p.state == stateStandby:
	case p.desired != checkpoint.Stopped && p.state != stateRunning:
		return fmt.Errorf("pipeline %q is %s", p.cfg.Name, p.state)
	}
	return nil
}
