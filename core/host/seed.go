package host

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/syncer"
)

// askSeed looks at the seed, where every target is proven to hold nothing.
func (p *pipeline) askSeed(ctx context.Context, r *run, facts *syncer.StartFacts, found *seen) error {
	seed, _ := p.cfg.Backend.Seed() // AskSeed has said that there is one
	reader, err := p.seedReader(seed, syncer.RetryBudget)
	if err != nil {
		return err
	}
	found.seed = reader
	r.phase(fmt.Sprintf("asking the seed %q", seed.Target), func() string { return p.host.trouble(seed.Target, reader) })
	a := answer{state: syncer.TargetState{Name: seed.Target}}
	a.ask(ctx, reader, p.seedSelector(seed))
	facts.Seed, found.seedCommit = &a.state, a.commit
	return nil
}

// seedReader reads the seed, whose repository it may be. Nothing here can write to it: only workers write, and no worker is made for a seed.
func (p *pipeline) seedReader(seed config.Seed, budget time.Duration) (*syncer.Reader, error) {
	t := p.host.targets[seed.Target]
	return syncer.NewReader(syncer.ReaderConfig{
		Target: seed.Target, Prefix: seed.Prefix, Store: p.host.store(t), PipelineName: p.cfg.Name, Origin: origin(p.host.cfg),
		Slots: t.slots, RetryBudget: budget, Now: p.host.opts.Now, Log: p.log.Named("syncer"),
	})
}

// seedSelector is what to take from the seed: what its block says, else what the pipeline starts from.
func (p *pipeline) seedSelector(seed config.Seed) syncer.Selector {
	if id := startFrom(seed.From).Checkpoint; id != uuid.Nil {
		return syncer.Selector{Checkpoint: id}
	}
	if seed.From == "latest" {
		return syncer.Selector{}
	}
	return syncer.Selector{Checkpoint: p.pinned()}
}
