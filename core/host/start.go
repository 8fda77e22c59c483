package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/core/trigger"
)

// begin takes a run up to its loop: it chooses the state, puts it in place, opens the circuit.
func (p *pipeline) begin(ctx context.Context, r *run) error {
	defer announce(p.log, "still starting", r.progress)()
	if err := p.recall(); err != nil {
		return err
	}
	c, err := p.host.opts.Circuit(p.cfg)
	if err != nil {
		return fmt.Errorf("build circuit: %w", err)
	}
	ready, err := p.prepare(ctx, r, c)
	if err != nil {
		return err
	}
	r.phase("opening the circuit", nil)
	if err := p.opening(r); err != nil {
		return err
	}
	var waker waker
	if err := c.Open(ctx, circuit.Env{Dir: p.stateDir(), Wake: waker.wake, Log: p.log.Named("circuit")}); err != nil {
		return fmt.Errorf("open circuit: %w", err)
	}
	p.opened(r, c, ready)
	if err := p.hasOpened(r); err != nil {
		return err
	}
	loop, err := circuit.New(p.loopConfig(r, ready.newest))
	if err != nil {
		return err
	}
	waker.loop.Store(loop)
	p.host.hook("start.opened")
	if err := p.running(ctx, r, loop); err != nil {
		return err
	}
	if r.activated != nil {
		p.tell(r, outcome{done: *r.activated})
	}
	return nil
}

// opened notes the open circuit, numbered so that its steps go on above the newest checkpoint.
func (p *pipeline) opened(r *run, c circuit.Circuit, ready prepared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.circuit, r.offset = c, 0
	facts := c.Facts()
	if !ready.exact {
		r.offset = offsetAbove(facts.Step, ready.newest)
	}
	if p.dir != nil {
		step := facts.Step + r.offset
		r.stands = checkpoint.Manifest{ID: ready.newest.ID, Step: step, History: upTo(p.record.History, step)}
	}
}

// waker hands a circuit's wake-ups on to the loop, which is made after the circuit is open. One that comes before is not missed: the loop
// looks before it ever waits.
type waker struct{ loop atomic.Pointer[circuit.Loop] }

func (w *waker) wake() {
	if loop := w.loop.Load(); loop != nil {
		loop.Wake()
	}
}

func (p *pipeline) loopConfig(r *run, newest trigger.Checkpoint) circuit.Config {
	p.mu.Lock()
	defer p.mu.Unlock()
	numbered := renumber(r.circuit, r.offset)
	cfg := circuit.Config{
		Circuit: numbered, Opened: numbered.Facts(), Policy: p.cfg.Policy(), Checkpointer: noCheckpoints{}, Now: p.host.opts.Now, Log: p.log,
		Incarnation: r.id, Restored: newest, Paused: p.desired == checkpoint.Paused, ShutdownTimeout: p.host.cfg.Host.ShutdownTimeout,
	}
	if p.dir == nil {
		return cfg
	}
	local := &checkpointer{p: p, incarnation: r.id, identity: r.circuit.Identity(), history: p.record.History, known: newest.ID}
	cfg.Pin, cfg.SaveSync = p.pin, p.saveSummary
	blocks, can := p.cfg.Backend.Sync()
	if !can {
		worker := p.workers[0]
		cfg.Checkpointer = &committer{local: local, worker: worker, keeper: r.keep(p.cfg.Backend.Repositories()[0], worker)}
		cfg.Obstacle = func() string { return obstacle(worker.Status()) }
		return cfg
	}
	cfg.Checkpointer = local
	var statuses []syncer.Status
	for i, w := range p.workers {
		cfg.Targets = append(cfg.Targets, circuit.Target{Pusher: pusher{blocks[i].Target, w, p.pin, p.commands(blocks[i].Target), r.keep(blocks[i], w)}, PushOnShutdown: blocks[i].PushOnShutdown})
		statuses = append(statuses, w.Status())
	}
	cfg.LastSync = lastSync(p.summary, blocks, statuses)
	return cfg
}

func (p *pipeline) pin(id uuid.UUID) (func(), error) {
	pinned, err := p.dir.Checkpoints().Pin(id)
	if err != nil {
		return nil, err
	}
	return pinned.Release, nil
}

// prepared is what stands when the circuit can be opened.
type prepared struct {
	newest trigger.Checkpoint // local one; the zero value when there is none
	exact  bool               // the circuit's step numbers go on where that left off
}

// prepare puts the state in place that the circuit is to open.
func (p *pipeline) prepare(ctx context.Context, r *run, c circuit.Circuit) (prepared, error) {
	if p.dir == nil {
		return prepared{exact: true}, p.emptyMemory()
	}
	if err := p.clearStaging(); err != nil {
		return prepared{}, fmt.Errorf("clear staging: %w", err)
	}
	facts, seen, err := p.startFacts(ctx, r, c)
	if err != nil {
		return prepared{}, err
	}
	choice, err := syncer.ChooseStart(facts)
	if err != nil {
		return prepared{}, err
	}
	p.chose(r, choice)
	p.log.Info("state chosen", "from", choice.Kind, "because", strings.Join(choice.Why, "; "))
	if err := p.take(ctx, r, c, choice, seen); err != nil {
		return prepared{}, fmt.Errorf("start from %s: %w", choice.Kind, err)
	}
	if p.scratch() {
		if _, err := p.dir.Checkpoints().Discard(choice.Checkpoint); err != nil {
			return prepared{}, err
		}
	}
	if r.activated == nil { // else they hold the epochs that were claimed
		if err := p.openWorkers(r.id); err != nil {
			return prepared{}, err
		}
	}
	if err := p.tellSeen(ctx, choice, seen); err != nil {
		return prepared{}, err
	}
	newest, err := p.newest(ctx)
	if err != nil {
		return prepared{}, err
	}
	live, err := c.Inspect(ctx, p.stateDir())
	if err != nil {
		return prepared{}, fmt.Errorf("inspect the state to open: %w", err)
	}
	return prepared{newest: newest, exact: live.Exact || !live.Exists}, nil
}

// chose notes what the run starts from, for people.
func (p *pipeline) chose(r *run, choice syncer.Choice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.from = choice.Why[len(choice.Why)-1]
	if choice.Kind == syncer.KeepLive {
		r.from = choice.Why[0]
	}
}

// tellSeen hands on to the workers what their targets were just seen to hold of the history that starts.
func (p *pipeline) tellSeen(ctx context.Context, choice syncer.Choice, found seen) error {
	p.mu.Lock()
	workers, history := p.workers, p.record.History
	p.mu.Unlock()
	ours := repository.Point{History: historyOf(history), Step: choice.Step}
	for _, w := range workers {
		commit := found.commits[w.Status().Target]
		if commit == nil || !repository.Relate(ours, pointOf(commit)).OnHistory {
			continue
		}
		if err := w.Seen(ctx, commit.Number, commit.Checkpoint.ID, commit.Checkpoint.Step, p.host.opts.Now()); err != nil {
			return err
		}
	}
	return nil
}

// newest is the newest local checkpoint, as the trigger knows it. One that cannot be read is not known; ChooseStart has said so.
func (p *pipeline) newest(ctx context.Context) (trigger.Checkpoint, error) {
	manifests, err := p.dir.Checkpoints().List(ctx)
	if len(manifests) == 0 {
		return trigger.Checkpoint{}, ignoreCorrupt(err)
	}
	m := manifests[len(manifests)-1]
	return trigger.Checkpoint{ID: m.ID, Step: m.Step, At: m.Created}, ignoreCorrupt(err)
}

func ignoreCorrupt(err error) error {
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return nil
	}
	return err
}

func (p *pipeline) workerConfig(block config.Sync, record checkpoint.Pipeline, incarnation uuid.UUID) syncer.Config {
	t := p.host.targets[block.Target]
	return syncer.Config{
		Target: block.Target, Prefix: block.Prefix, Store: p.host.store(t),
		Pipeline: record.ID, PipelineName: p.cfg.Name, Origin: origin(p.host.cfg), Follows: p.follows(), Writer: repository.Writer{ID: record.Writer, Incarnation: incarnation},
		Host: p.host.hostname, WrittenBy: p.host.opts.Version,
		Local: p.dir.Checkpoints(), Spool: p.host.spool, StateFile: p.dir.SyncFile(block.Target),
		Fencing: syncer.Fencing(block.Fencing), Slots: t.slots, Retention: policy(block.Retention), AskBudget: p.host.opts.pace.remote,
		Now: p.host.opts.Now, Log: p.log.Named("syncer"),
	}
}
