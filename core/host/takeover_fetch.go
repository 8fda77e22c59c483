package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/syncer"
)

// fetch makes the newest commit local, from a target, or from the seed where no target holds anything.
func (t *takeover) fetch(ctx context.Context) error {
	err := t.fetchNewest(ctx)
	if err != nil && ctx.Err() == nil && t.asked.AcceptLocal {
		t.missed = err
		t.warn("the newest commit could not be pulled: %v", err)
		return nil
	}
	return err
}

func (t *takeover) fetchNewest(ctx context.Context) error {
	if t.newest == nil {
		return t.fetchSeed(ctx)
	}
	takes, err := syncer.TakesNewest(t.facts())
	switch {
	case err != nil && t.asked.AcceptLocal:
		if !t.behind {
			t.warn("the newest commit of the claimed targets is not taken: %v", err)
		}
		t.missed, t.behind = err, true
		return nil
	case err != nil || !takes && t.chosen != nil:
		return err
	}
	return t.pullNewest(ctx)
}

// facts are of the first target that holds the newest commit, and of the copy that was here, also where that is damaged.
func (t *takeover) facts() syncer.TakeoverFacts {
	facts := syncer.TakeoverFacts{Have: t.had, Pinned: t.p.pinned(), Newest: t.newest}
	at := slices.IndexFunc(t.claims, func(c claim) bool { return c.newest == t.newest })
	facts.Target, facts.Prefix = t.claims[at].block.Target, t.claims[at].block.Prefix
	if t.had == nil {
		return facts
	}
	facts.Origin = t.origin(t.had.Target, t.had.Prefix)
	if pin, err := t.p.dir.Checkpoints().Pin(t.had.Checkpoint); err == nil {
		facts.Passed = onHistory(pin.Manifest(), t.newest)
		pin.Release()
	}
	return facts
}

// origin is the newest commit of one repository; nil = it was not claimed, or holds none.
func (t *takeover) origin(target, prefix string) *syncer.CommitInfo {
	for _, c := range t.claims {
		if c.err == nil && c.block.Target == target && c.block.Prefix == prefix {
			return c.claimed.Newest
		}
	}
	return nil
}

// pullNewest asks every claimed target that holds the newest checkpoint, until one gives it.
func (t *takeover) pullNewest(ctx context.Context) error {
	var failed []error
	for _, c := range t.claims {
		if c.newest == nil || c.newest.Checkpoint.ID != t.newest.Checkpoint.ID {
			continue
		}
		err := t.pull(ctx, c.reader, c.block.Target, c.block.Prefix, c.newest, false)
		if err == nil || ctx.Err() != nil {
			return err
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// fetchSeed is for a standby that was activated before anything of our own existed anywhere.
func (t *takeover) fetchSeed(ctx context.Context) error {
	seed, ok := t.p.cfg.Backend.Seed()
	silent := slices.ContainsFunc(t.claims, func(c claim) bool { return c.err != nil || c.claimed.Newest != nil })
	if !ok || silent || t.chosen != nil && !t.chosen.Seed {
		return nil
	}
	reader, err := t.p.seedReader(seed, t.p.host.opts.pace.remote)
	if err != nil {
		return err
	}
	info, err := findInfo(ctx, reader, t.p.seedSelector(seed))
	if err != nil || info == nil {
		return err
	}
	return t.pull(ctx, reader, seed.Target, seed.Prefix, info, true)
}

// pull makes one commit local, unless it is, and notes it.
func (t *takeover) pull(ctx context.Context, reader *syncer.Reader, target, prefix string, c *syncer.CommitInfo, seed bool) error {
	p := t.p
	var done, total atomic.Int64
	t.r.phase(fmt.Sprintf("pulling commit %d of target %q", c.Number, target), func() string {
		return fmt.Sprintf("%d of %d bytes", done.Load(), total.Load())
	})
	pulled, err := reader.Pull(ctx, syncer.PullRequest{
		From: syncer.Selector{Number: c.Number}, Local: p.dir.Checkpoints(), Spool: p.host.spool,
		Progress: func(now syncer.Progress) { done.Store(now.Done); total.Store(now.Total) },
	})
	t.report.PulledBytes += done.Load()
	if err != nil {
		return err
	}
	if !pulled.Already {
		t.r.verified = c.Checkpoint.ID // each chunk was checked as it came
	}
	t.chosen = &checkpoint.Followed{
		Target: target, Prefix: prefix, Number: c.Number, Checkpoint: c.Checkpoint.ID, Step: c.Checkpoint.Step, Created: c.Checkpoint.Created, Seed: seed,
	}
	return p.keepFollowed(*t.chosen, p.known().ID)
}
