package host

import (
	"context"
	"net/http"

	"github.com/cairnsync/cairn/core/api"
	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/sdk/client"
)

// Start begins a new run of a stopped or failed pipeline.
func (p *pipeline) Start(context.Context) error {
	p.acting.Lock()
	defer p.acting.Unlock()
	if err := p.startable(); err != nil {
		return err
	}
	if err := p.want(p.role()); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.work == nil { // it has begun to end meanwhile; the next host takes the desired state up
		return notRunning(p.cfg.Name, "the host is ending")
	}
	p.host.retryPlugins(p.cfg, "")
	p.launch()
	return nil
}

// role is the state that a start leads to: a standby stays one until it is activated, also when it was stopped.
func (p *pipeline) role() checkpoint.Desired {
	if record := p.known(); record.Standby && record.Activation == nil {
		return checkpoint.Standby
	}
	return checkpoint.Running
}

func (p *pipeline) startable() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.underWay():
		return p.transition("start")
	case p.work == nil:
		return notRunning(p.cfg.Name, "the host is starting or ending")
	}
	return nil
}

// Pause holds back steps.
func (p *pipeline) Pause(context.Context) error { return p.pause("pause", checkpoint.Paused) }

// Resume ends a pause.
func (p *pipeline) Resume(context.Context) error { return p.pause("resume", checkpoint.Running) }

func (p *pipeline) pause(verb string, desired checkpoint.Desired) error {
	p.acting.Lock()
	defer p.acting.Unlock()
	if err := p.setPaused(verb, desired == checkpoint.Paused); err != nil {
		return err
	}
	return p.want(desired)
}

func (p *pipeline) setPaused(verb string, paused bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != stateRunning || !paused && p.desired != checkpoint.Paused {
		return p.transition(verb)
	}
	set := p.run.loop.Resume
	if paused {
		set = p.run.loop.Pause
	}
	if set() != nil { // the loop is ending by itself
		return p.transition(verb)
	}
	return nil
}

// Stop ends the current run, with a last checkpoint if asked. Its effect does not depend on whether the wish can be kept.
func (p *pipeline) Stop(_ context.Context, withCheckpoint bool) error {
	p.acting.Lock()
	defer p.acting.Unlock()
	if err := p.beginStop(withCheckpoint); err != nil {
		return err
	}
	return p.want(checkpoint.Stopped)
}

func (p *pipeline) beginStop(withCheckpoint bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.state {
	case stateStopped:
		return p.transition("stop")
	case stateFailed:
		p.state, p.err = stateStopped, nil
	default:
		p.run.thenFollow = false
		p.stopRun(p.run, withCheckpoint)
	}
	return nil
}

// transition refuses what the state does not allow; the caller holds mu.
func (p *pipeline) transition(verb string) error {
	return api.Errorf(http.StatusBadRequest, client.CodeInvalidTransition, "cannot %s pipeline %q: it is %s", verb, p.cfg.Name, p.shownState()).
		With("state", p.shownState()).With("desired_state", string(p.desired))
}
