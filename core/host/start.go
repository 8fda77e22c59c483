package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

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
	c, err := p.host.opts.Circuit(p.cfg)
	if err != nil {
		return fmt.Errorf("build circuit: %w", err)
	}
	restored, err := p.prepare(ctx, r, c)
	if err != nil {
		return err
	}
	loop, err := circuit.New(p.loopConfig(r, c, restored))
	if err != nil {
		return err
	}
	if err := c.Open(ctx, circuit.Env{Dir: p.stateDir(), Wake: loop.Wake, Log: p.log.Named("circuit")}); err != nil {
		return fmt.Errorf("open circuit: %w", err)
	}
	p.host.hook("start.opened")
	return p.running(ctx, r, c, loop)
}

func (p *pipeline) loopConfig(r *run, c circuit.Circuit, restored trigger.Checkpoint) circuit.Config {
	p.mu.Lock()
	defer p.mu.Unlock()
	cfg := circuit.Config{
		Circuit: c, Policy: p.cfg.Policy(), Checkpointer: noCheckpoints{}, Now: p.host.opts.Now, Log: p.log, Incarnation: r.id,
		Restored: restored, Paused: p.desired == checkpoint.Paused, ShutdownTimeout: p.host.cfg.Host.ShutdownTimeout,
	}
	if p.dir == nil {
		return cfg
	}
	cfg.Checkpointer = checkpointer{p: p, incarnation: r.id, identity: c.Identity(), history: p.record.History}
	cfg.Pin = p.pin
	blocks, _ := p.cfg.Backend.Sync() // the file backend always can
	var statuses []syncer.Status
	for i, w := range p.workers {
		cfg.Targets = append(cfg.Targets, circuit.Target{Pusher: pusher{blocks[i].Target, w}, PushOnShutdown: blocks[i].PushOnShutdown})
		statuses = append(statuses, w.Status())
	}
	cfg.LastSync = lastSync(statuses)
	return cfg
}

func (p *pipeline) pin(id uuid.UUID) (func(), error) {
	pinned, err := p.dir.Checkpoints().Pin(id)
	if err != nil {
		return nil, err
	}
	return pinned.Release, nil
}

// prepare puts the state in place that the circuit is to open, and answers with the newest local checkpoint.
func (p *pipeline) prepare(ctx context.Context, r *run, c circuit.Circuit) (trigger.Checkpoint, error) {
	if p.dir == nil {
		return trigger.Checkpoint{}, p.emptyMemory()
	}
	if err := p.clearStaging(); err != nil {
		return trigger.Checkpoint{}, fmt.Errorf("clear staging: %w", err)
	}
	facts, seen, err := p.startFacts(ctx, c)
	if err != nil {
		return trigger.Checkpoint{}, err
	}
	choice, err := syncer.ChooseStart(facts)
	if err != nil {
		return trigger.Checkpoint{}, err
	}
	p.announce(r, choice)
	if err := p.take(ctx, c, choice, seen); err != nil {
		return trigger.Checkpoint{}, fmt.Errorf("start from %s: %w", choice.Kind, err)
	}
	p.mu.Lock()
	err = p.openWorkers(r.id)
	p.mu.Unlock()
	if err != nil {
		return trigger.Checkpoint{}, err
	}
	return p.newest(ctx)
}

func (p *pipeline) announce(r *run, choice syncer.Choice) {
	for _, why := range choice.Why {
		p.log.Info("start", "because", why)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r.from = choice.Why[len(choice.Why)-1]
	if choice.Kind == syncer.KeepLive {
		r.from = choice.Why[0]
	}
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

// seen is what was seen on the way to a choice: of the live state, and of the targets where they were asked.
type seen struct {
	damaged bool
	readers map[string]*syncer.Reader
	owner   uuid.UUID   // pipeline id of their repositories; Nil = there is none
	ids     []uuid.UUID // newest checkpoints there
}

// startFacts looks at what there is to start from. Targets are asked only when local state does not decide.
func (p *pipeline) startFacts(ctx context.Context, c circuit.Circuit) (syncer.StartFacts, seen, error) {
	facts := syncer.StartFacts{Honoured: p.record.Honoured, FailIfAbsent: p.cfg.Backend.Start.FailIfNoCheckpoint}
	switch from := p.cfg.Backend.Start.From; from {
	case "":
	case "latest":
		facts.From.Latest = true
	default:
		facts.From.Checkpoint = uuid.MustParse(from) // config has parsed it
	}
	live, err := c.Inspect(ctx, p.stateDir())
	switch {
	case errors.Is(err, circuit.ErrDamaged):
		facts.Live = syncer.LiveFacts{Exists: true, Damaged: err}
	case err != nil:
		return facts, seen{}, fmt.Errorf("inspect live state: %w", err)
	default:
		facts.Live = syncer.LiveFacts{Exists: live.Exists, Exact: live.Exact, Step: live.Step}
	}
	manifests, err := p.dir.Checkpoints().List(ctx)
	facts.LocalErr = err
	if n := len(manifests); n > 0 {
		facts.Local = &syncer.StatePoint{ID: manifests[n-1].ID, Step: manifests[n-1].Step}
	}
	found := seen{damaged: facts.Live.Damaged != nil}
	if facts.AskTargets() {
		p.ask(ctx, &facts, &found)
	}
	return facts, found, nil
}

// ask looks at all targets at once.
func (p *pipeline) ask(ctx context.Context, facts *syncer.StartFacts, found *seen) {
	blocks, _ := p.cfg.Backend.Sync() // the file backend always can
	facts.Targets = make([]syncer.TargetState, len(blocks))
	formats := make([]*repository.Format, len(blocks))
	found.readers = map[string]*syncer.Reader{}
	var group sync.WaitGroup
	for i, block := range blocks {
		state := &facts.Targets[i]
		state.Name = block.Target
		state.Excluded = slices.Contains(p.host.opts.Exclude, block.Target)
		reader, err := p.host.reader(block)
		if err != nil || state.Excluded {
			state.Err = err
			continue
		}
		found.readers[block.Target] = reader
		group.Go(func() { formats[i] = lookAt(ctx, reader, facts.Selector(), state) })
	}
	group.Wait()
	for i, format := range formats {
		if format != nil && found.owner == uuid.Nil {
			found.owner = format.PipelineID
		}
		if commit := facts.Targets[i].Commit; commit != nil {
			found.ids = append(found.ids, commit.ID)
		}
	}
}

// lookAt fills in what a target holds of what is wanted, and answers with its repository's format.
func lookAt(ctx context.Context, reader *syncer.Reader, wanted syncer.Selector, state *syncer.TargetState) *repository.Format {
	head, err := reader.Discover(ctx)
	if err != nil {
		state.Err = err
		return nil
	}
	commit := head.Commit
	if commit != nil && wanted != (syncer.Selector{}) {
		commit, err = reader.Find(ctx, wanted)
		if err != nil && !errors.Is(err, syncer.ErrNoCommit) {
			state.Err = err
		}
	}
	if commit != nil && err == nil {
		state.Commit = &syncer.StatePoint{ID: commit.Checkpoint.ID, Step: commit.Checkpoint.Step}
		state.Number = commit.Number
	}
	return head.Format
}

func (h *Host) reader(block config.Sync) (*syncer.Reader, error) {
	t := h.targets[block.Target]
	return syncer.NewReader(syncer.ReaderConfig{
		Target: block.Target, Prefix: block.Prefix, Store: h.store(t), Slots: t.slots, Now: h.opts.Now, Log: h.opts.Log.Named("syncer"),
	})
}

func (p *pipeline) workerConfig(block config.Sync, incarnation uuid.UUID) syncer.Config {
	t := p.host.targets[block.Target]
	return syncer.Config{
		Target: block.Target, Prefix: block.Prefix, Store: p.host.store(t),
		Pipeline: p.record.ID, PipelineName: p.cfg.Name, Writer: repository.Writer{ID: p.record.Writer, Incarnation: incarnation},
		Host: p.host.hostname, WrittenBy: p.host.opts.Version,
		Local: p.dir.Checkpoints(), Spool: p.host.spool, StateFile: p.dir.SyncFile(block.Target), Slots: t.slots,
		Now: p.host.opts.Now, Log: p.log.Named("syncer"),
	}
}
