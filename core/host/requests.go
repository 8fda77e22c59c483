package host

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/api"
	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/sqlcircuit"
	"github.com/cairnsync/cairn/sdk/client"
)

// Start begins a new run of a stopped or failed pipeline.
func (p *pipeline) Start(context.Context) error {
	p.acting.Lock()
	defer p.acting.Unlock()
	if err := p.startable(); err != nil {
		return err
	}
	if err := p.want(checkpoint.Running); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.work == nil { // it has begun to end meanwhile; the next host takes the desired state up
		return notRunning(p.cfg.Name, "the host is ending")
	}
	p.launch()
	return nil
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
		p.stopRun(p.run, withCheckpoint)
	}
	return nil
}

// transition refuses what the state does not allow; the caller holds mu.
func (p *pipeline) transition(verb string) error {
	return api.Errorf(http.StatusBadRequest, client.CodeInvalidTransition, "cannot %s pipeline %q: it is %s", verb, p.cfg.Name, p.shownState()).
		With("state", p.shownState()).With("desired_state", string(p.desired))
}

// Adopt lets pushes go to a held target.
func (p *pipeline) Adopt(ctx context.Context, target string) error {
	r, err := p.current()
	if err != nil {
		return err
	}
	p.mu.Lock()
	workers := p.workers
	p.mu.Unlock()
	for _, w := range workers {
		if w.Status().Target != target {
			continue
		}
		if err := w.Adopt(ctx); err != nil {
			return targetError(err)
		}
		r.loop.Wake()
		return nil
	}
	return p.unknownTarget(target)
}

func (p *pipeline) unknownTarget(target string) error {
	return api.Errorf(http.StatusNotFound, client.CodeTargetNotFound, "pipeline %q has no sync block for target %q", p.cfg.Name, target).With("target", target)
}

// Incarnation is that of the current or the last run.
func (p *pipeline) Incarnation() uuid.UUID {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return uuid.Nil
	}
	return p.run.id
}

// current is the run whose loop takes requests.
func (p *pipeline) current() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != stateRunning {
		return nil, notRunning(p.cfg.Name, "it is "+p.shownState())
	}
	return p.run, nil
}

func notRunning(name, why string) *api.Error {
	return api.Errorf(http.StatusServiceUnavailable, client.CodeNotRunning, "pipeline %q does not take this now: %s", name, why).After(time.Second)
}

// Checkpoint asks for one.
func (p *pipeline) Checkpoint(context.Context) (client.CheckpointStarted, error) {
	r, err := p.current()
	if err != nil {
		return client.CheckpointStarted{}, err
	}
	asked, err := r.loop.RequestCheckpoint()
	if err != nil {
		return client.CheckpointStarted{}, p.loopError(err)
	}
	return client.CheckpointStarted{Sequence: asked.Sequence, Incarnation: r.id}, nil
}

// Sync asks for a push of the newest checkpoint.
func (p *pipeline) Sync(_ context.Context, target string) (client.SyncStarted, error) {
	r, err := p.current()
	if err != nil {
		return client.SyncStarted{}, err
	}
	asked, err := r.loop.RequestSync(target)
	if err != nil {
		return client.SyncStarted{}, p.loopError(err)
	}
	return client.SyncStarted{Checkpoint: asked.Checkpoint, Incarnation: r.id}, nil
}

// WaitCheckpoint waits until a published checkpoint covers the step.
func (p *pipeline) WaitCheckpoint(ctx context.Context, step uint64) error {
	return p.wait(ctx, step, (*circuit.Loop).WaitCheckpoint)
}

// WaitCommit waits until every target holds a commit that covers the step.
func (p *pipeline) WaitCommit(ctx context.Context, step uint64) error {
	return p.wait(ctx, step, (*circuit.Loop).WaitCommit)
}

func (p *pipeline) wait(ctx context.Context, step uint64, wait func(*circuit.Loop, context.Context, uint64) error) error {
	r, err := p.current()
	if err != nil {
		return err
	}
	return p.loopError(wait(r.loop, ctx, step))
}

// loopError gives the loop's refusals their place in the API.
func (p *pipeline) loopError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, circuit.ErrStopped):
		return notRunning(p.cfg.Name, err.Error())
	case errors.Is(err, circuit.ErrNothingToSync):
		return api.Errorf(http.StatusBadRequest, client.CodeNothingToSync, "pipeline %q: %v", p.cfg.Name, err)
	case errors.Is(err, circuit.ErrNoTarget):
		return api.Errorf(http.StatusBadRequest, client.CodeNoSync, "pipeline %q: %v", p.cfg.Name, err)
	case errors.Is(err, circuit.ErrUnknownTarget):
		return api.Errorf(http.StatusNotFound, client.CodeTargetNotFound, "%v", err)
	}
	return err
}

func targetError(err error) error {
	return api.Errorf(http.StatusBadGateway, client.CodeTarget, "%v", err)
}

// Ingest hands a batch to the circuit.
func (p *pipeline) Ingest(ctx context.Context, input string, b circuit.Batch) (circuit.IngestResult, error) {
	r, in, err := p.ingester(input)
	if err != nil {
		return circuit.IngestResult{}, err
	}
	p.mu.Lock()
	paused := p.desired == checkpoint.Paused
	p.mu.Unlock()
	if paused {
		return circuit.IngestResult{}, notRunning(p.cfg.Name, "it is paused")
	}
	result, err := in.Ingest(ctx, input, b)
	result.Step += r.offset
	return result, p.dataError(err)
}

// Position asks the circuit where a source resumes.
func (p *pipeline) Position(ctx context.Context, input, source string) (uint64, error) {
	_, in, err := p.ingester(input)
	if err != nil {
		return 0, err
	}
	seq, err := in.Position(ctx, input, source)
	return seq, p.dataError(err)
}

func (p *pipeline) ingester(input string) (*run, circuit.Ingester, error) {
	r, err := p.current()
	if err != nil {
		return nil, nil, err
	}
	in, ok := r.circuit.(circuit.Ingester)
	if !ok {
		return nil, nil, api.Errorf(http.StatusNotFound, client.CodeInputNotFound, "pipeline %q takes no records over HTTP, so it has no input %q", p.cfg.Name, input)
	}
	return r, in, nil
}

// Query asks the circuit's live state.
func (p *pipeline) Query(ctx context.Context, text string) (api.Rows, error) {
	r, err := p.current()
	if err != nil {
		return nil, err
	}
	q, ok := r.circuit.(circuit.Querier)
	if !ok {
		return nil, api.Errorf(http.StatusBadRequest, client.CodeBadQuery, "the circuit of pipeline %q answers no queries", p.cfg.Name)
	}
	rows, err := q.Query(ctx, text)
	return rows, p.dataError(err)
}

// dataError gives the circuit's refusals their place in the API.
func (p *pipeline) dataError(err error) error {
	answers := []struct {
		is     error
		status int
		code   string
		again  time.Duration
	}{
		{sqlcircuit.ErrUnknownInput, http.StatusNotFound, client.CodeInputNotFound, 0},
		{sqlcircuit.ErrTooLarge, http.StatusRequestEntityTooLarge, client.CodeTooLarge, 0},
		{sqlcircuit.ErrFull, http.StatusTooManyRequests, client.CodeFull, time.Second},
		{sqlcircuit.ErrBadFormat, http.StatusBadRequest, client.CodeBadRequest, 0},
		{sqlcircuit.ErrBadQuery, http.StatusBadRequest, client.CodeBadQuery, 0},
		{sqlcircuit.ErrQueryTime, http.StatusGatewayTimeout, client.CodeBadQuery, 0},
		{sqlcircuit.ErrNotRunning, http.StatusServiceUnavailable, client.CodeNotRunning, time.Second},
		{sqlcircuit.ErrInputStopped, http.StatusServiceUnavailable, client.CodeNotRunning, time.Second},
	}
	for _, a := range answers {
		if errors.Is(err, a.is) {
			return api.Errorf(a.status, a.code, "pipeline %q: %v", p.cfg.Name, err).After(a.again)
		}
	}
	return err
}
