package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/api"
	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// Adopt lets pushes go to a held target.
func (p *pipeline) Adopt(ctx context.Context, target string) error {
	r, err := p.current()
	if err != nil {
		return err
	}
	w := p.worker(target)
	if w == nil {
		return p.unknownTarget(target)
	}
	ctx, cancel := context.WithTimeout(ctx, p.host.opts.pace.remote)
	defer cancel()
	if err := w.Adopt(ctx); err != nil {
		return targetError(explained(err))
	}
	r.loop.Wake()
	return nil
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
		why := "it is " + p.shownState()
		if p.state == stateStandby {
			why += ", which only follows; " + p.commands("").Activate() + " makes it the primary"
		}
		return nil, notRunning(p.cfg.Name, why)
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

// Sync asks for a push of the newest checkpoint. What held a target before may have been put right.
func (p *pipeline) Sync(ctx context.Context, target string) (client.SyncStarted, error) {
	r, err := p.current()
	if err != nil {
		return client.SyncStarted{}, err
	}
	p.host.retryPlugins(p.cfg, target)
	p.reconsider(ctx, target)
	asked, err := r.loop.RequestSync(target)
	if err != nil {
		return client.SyncStarted{}, p.loopError(err)
	}
	return client.SyncStarted{Checkpoint: asked.Checkpoint, Incarnation: r.id}, nil
}

// WaitCheckpoint waits until a published checkpoint covers the step.
func (p *pipeline) WaitCheckpoint(ctx context.Context, step uint64) error {
	if !p.scratch() {
		return p.wait(ctx, step, (*circuit.Loop).WaitCheckpoint)
	}
	if _, err := p.current(); err != nil {
		return err
	}
	p.mu.Lock()
	worker := p.workers[0]
	p.mu.Unlock()
	before := worker.Status()
	err := p.wait(ctx, step, (*circuit.Loop).WaitCheckpoint)
	if was := cmp.Or(before.Committed, before.Lost); err == nil && was != nil && was.Step >= step {
		err = lookAgain(ctx, worker, was.Checkpoint) // committed before anybody asked, as for a batch that is repeated: what is remembered does not answer
	}
	if err != nil {
		return err
	}
	return p.stillCommitted()
}

// lookAgain makes sure that what object storage has committed is on its target, or what was committed after it. Where that has lost it, the next look
// commits it anew.
func lookAgain(ctx context.Context, w *syncer.Worker, id uuid.UUID) error {
	err := w.Push(ctx, syncer.Job{Checkpoint: id, Trigger: syncer.Requested})
	if err == nil || errors.Is(err, syncer.ErrSuperseded) || errors.Is(err, checkpoint.ErrNone) {
		return nil
	}
	return targetError(explained(err))
}

// WaitCommit waits until every target holds a commit that covers the step.
func (p *pipeline) WaitCommit(ctx context.Context, step uint64) error {
	if p.scratch() {
		return p.WaitCheckpoint(ctx, step) // each is a commit
	}
	return p.wait(ctx, step, (*circuit.Loop).WaitCommit)
}

// stillCommitted says of object storage whether what was published is, as far as is known, still there.
func (p *pipeline) stillCommitted() error {
	p.mu.Lock()
	workers := p.workers
	p.mu.Unlock()
	for _, w := range workers {
		s := w.Status()
		if why := unreliable(s, p.commands(s.Target)); why != "" {
			return targetError(errors.New(why))
		}
	}
	return nil
}

func (p *pipeline) wait(ctx context.Context, step uint64, wait func(*circuit.Loop, context.Context, uint64) error) error {
	r, err := p.current()
	if err != nil {
		return err
	}
	err = wait(r.loop, ctx, step)
	if err != nil && ctx.Err() != nil {
		return p.heldUp(err, step)
	}
	return p.loopError(err)
}

// heldUp adds to the error of a wait that ran out what keeps the targets from getting on, as status tells it.
func (p *pipeline) heldUp(err error, step uint64) error {
	for _, t := range p.View().Targets {
		there := t.Committed != nil && t.Committed.Step >= step
		if why := t.InTheWay(); why != "" && !there && !strings.Contains(err.Error(), why) {
			err = fmt.Errorf("%w; %s", err, why)
		}
	}
	return err
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
