package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/pluginhost"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/core/syncer"
)

// seen is what was seen on the way to a choice: of the live state, and of the targets where they were asked.
type seen struct {
	damaged bool
	readers map[string]*syncer.Reader
	commits map[string]*repository.Commit // by target: the one that was asked for
	owner   uuid.UUID                     // pipeline id of their repositories; Nil = there is none

	seed       *syncer.Reader     // nil = it was not asked
	seedCommit *repository.Commit // nil = it does not hold what was asked for
}

// commit is what a choice takes from a repository; nil = it takes nothing from one.
func (s seen) commit(choice syncer.Choice) *repository.Commit {
	switch choice.Kind {
	case syncer.FromTarget:
		return s.commits[choice.Target]
	case syncer.FromSeed:
		return s.seedCommit
	}
	return nil
}

// reader is of the repository that a choice takes from.
func (s seen) reader(choice syncer.Choice) *syncer.Reader {
	if choice.Kind == syncer.FromSeed {
		return s.seed
	}
	return s.readers[choice.Target]
}

// startFacts looks at what there is to start from. Targets are asked only when local state does not decide.
func (p *pipeline) startFacts(ctx context.Context, r *run, c circuit.Circuit) (syncer.StartFacts, seen, error) {
	r.phase("looking at the local state", nil)
	p.endRest()
	facts, err := p.localFacts(ctx, c)
	if err != nil {
		return facts, seen{}, err
	}
	found := seen{damaged: facts.Live.Damaged != nil, readers: map[string]*syncer.Reader{}, commits: map[string]*repository.Commit{}}
	if facts.AskTargets() {
		p.ask(ctx, r, &facts, &found)
	}
	if facts.AskSeed() {
		err = p.askSeed(ctx, r, &facts, &found)
	}
	return facts, found, err
}

func (p *pipeline) localFacts(ctx context.Context, c circuit.Circuit) (syncer.StartFacts, error) {
	facts := syncer.StartFacts{Run: p.commands(""), From: p.startFrom(), Honoured: p.known().Honoured, FailIfAbsent: p.cfg.Backend.Start.FailIfNoCheckpoint}
	if seed, ok := p.cfg.Backend.Seed(); ok {
		facts.SeedName = seed.Target
	}
	if p.scratch() { // whatever lies there
		return facts, nil
	}
	live, err := c.Inspect(ctx, p.stateDir())
	switch {
	case errors.Is(err, circuit.ErrDamaged):
		facts.Live = syncer.LiveFacts{Exists: true, Damaged: err}
	case err != nil:
		return facts, fmt.Errorf("inspect live state: %w", err)
	default:
		facts.Live = syncer.LiveFacts{Exists: live.Exists, Exact: live.Exact, Step: live.Step}
	}
	if facts.Live.Exists && facts.Live.Damaged == nil {
		if err := foreign(p.dir, p.known()); err != nil {
			return facts, err
		}
	}
	manifests, err := p.dir.Checkpoints().List(ctx)
	facts.LocalErr = err
	if n := len(manifests); n > 0 {
		facts.Local = &syncer.StatePoint{ID: manifests[n-1].ID, Step: manifests[n-1].Step}
	}
	return facts, nil
}

// startFrom is start_from_checkpoint.
func (p *pipeline) startFrom() syncer.StartFrom { return startFrom(p.cfg.Backend.Start.From) }

func startFrom(written string) syncer.StartFrom {
	switch written {
	case "":
		return syncer.StartFrom{}
	case "latest":
		return syncer.StartFrom{Latest: true}
	}
	return syncer.StartFrom{Checkpoint: uuid.MustParse(written)} // config has parsed it
}

// answer is what one target said.
type answer struct {
	state  syncer.TargetState
	format *repository.Format // nil = there is no repository
	commit *repository.Commit // nil = not what was asked for
}

// ask looks at all targets at once.
func (p *pipeline) ask(ctx context.Context, r *run, facts *syncer.StartFacts, found *seen) {
	blocks := p.cfg.Backend.Repositories()
	answers := make([]answer, len(blocks))
	var asked []config.Sync
	for i, block := range blocks {
		a := &answers[i]
		a.state.Name = block.Target
		a.state.Excluded = slices.Contains(p.host.opts.Exclude, block.Target)
		reader, err := p.reader(block, syncer.RetryBudget)
		if err != nil || a.state.Excluded {
			a.state.Err = err
			continue
		}
		found.readers[block.Target] = reader
		asked = append(asked, block)
	}
	r.phase("asking which checkpoints the targets hold", func() string { return p.host.troubles(asked, found.readers) })
	var group sync.WaitGroup
	for i, block := range blocks {
		if reader := found.readers[block.Target]; reader != nil {
			group.Go(func() { answers[i].ask(ctx, reader, facts.Selector()) })
		}
	}
	group.Wait()
	for _, a := range answers {
		facts.Targets = append(facts.Targets, a.state)
		found.commits[a.state.Name] = a.commit
		if a.format != nil && found.owner == uuid.Nil {
			found.owner = a.format.PipelineID
		}
	}
}

// ask fills in what a target holds of what is wanted.
func (a *answer) ask(ctx context.Context, reader *syncer.Reader, wanted syncer.Selector) {
	head, err := reader.Discover(ctx)
	a.format, a.commit = head.Format, head.Commit
	a.state.Holds = head.Commit != nil
	if a.commit != nil && wanted != (syncer.Selector{}) {
		a.commit, err = reader.Find(ctx, wanted)
	}
	if err != nil && !errors.Is(err, syncer.ErrNoCommit) {
		a.state.Err = err
		return
	}
	if a.commit != nil {
		a.state.Commit = &syncer.StatePoint{ID: a.commit.Checkpoint.ID, Step: a.commit.Checkpoint.Step}
		a.state.Number = a.commit.Number
	}
}

// troubles tells why targets have not answered, as far as that is known.
func (h *Host) troubles(blocks []config.Sync, readers map[string]*syncer.Reader) string {
	var all []string
	for _, block := range blocks {
		if why := h.trouble(block.Target, readers[block.Target]); why != "" {
			all = append(all, why)
		}
	}
	return strings.Join(all, "; ")
}

// trouble tells why a target does not answer: its process, or the store behind it. "" = nothing is known to be wrong.
func (h *Host) trouble(target string, reader *syncer.Reader) string {
	if why := h.down(target); why != "" {
		return why
	}
	why, next := reader.Trouble()
	if why != "" {
		why += fmt.Sprintf("; asked again at %s", next.UTC().Format(time.TimeOnly))
	}
	return why
}

// down tells why a target has no process that serves it. "" = it has one, or its first is just starting.
func (h *Host) down(target string) string {
	s := h.targets[target].plugin.Status()
	switch {
	case s.State == pluginhost.StateReady || s.State == pluginhost.StateStarting:
		return ""
	case s.LastExit.Reason == "":
		return fmt.Sprintf("target %q: plugin %s is %s", target, s.Plugin, s.State)
	}
	return fmt.Sprintf("target %q: plugin %s is %s: %s", target, s.Plugin, s.State, s.LastExit.Reason)
}

// reader reads the repository of a sync block, which must be this pipeline's once that has an identity. budget is how long one call is
// repeated.
func (p *pipeline) reader(block config.Sync, budget time.Duration) (*syncer.Reader, error) {
	t := p.host.targets[block.Target]
	return syncer.NewReader(syncer.ReaderConfig{
		Target: block.Target, Prefix: block.Prefix, Store: p.host.store(t), Pipeline: p.known().ID, PipelineName: p.cfg.Name, Origin: origin(p.host.cfg),
		Slots: t.slots, RetryBudget: budget, Now: p.host.opts.Now, Log: p.log.Named("syncer"),
	})
}
