package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// takeover is one attempt to carry out an activation, up to the point where the newest state lies here as a local checkpoint.
type takeover struct {
	p     *pipeline
	r     *run
	asked checkpoint.Activation
	seen  syncer.FollowStatus // of the following before; the zero value after a restart

	claims []claim
	newest *syncer.CommitInfo   // of all targets that were claimed; nil = none has any
	had    *checkpoint.Followed // what was here when it began; nil = nothing
	chosen *checkpoint.Followed // what starts; nil = nothing is here
	missed error                // why the newest commit was not pulled, where the operator accepts that; nil = nothing kept it
	behind bool                 // that is that it is older than the copy that was here
	report client.Activated
}

// claim is one target's part.
type claim struct {
	block   config.Sync
	worker  *syncer.Worker
	reader  *syncer.Reader
	claimed syncer.Claimed
	newest  *syncer.CommitInfo // what it holds of what is wanted
	err     error
}

func (t *takeover) run(ctx context.Context) error {
	t.had = t.p.known().Followed
	t.chosen = t.had
	if err := t.prepare(ctx); err != nil {
		return err
	}
	if err := t.claim(ctx); err != nil {
		return err
	}
	t.p.host.hook("activate.claimed")
	if err := t.fetch(ctx); err != nil {
		return err
	}
	t.p.host.hook("activate.pulled")
	if err := t.sound(ctx); err != nil {
		return err
	}
	if err := t.settle(ctx); err != nil {
		return err
	}
	t.tell()
	return nil
}

// prepare learns whose the repositories are, where this standby has not seen any yet, and makes the workers of the new primary.
func (t *takeover) prepare(ctx context.Context) error {
	p := t.p
	p.host.retryPlugins(p.cfg, "")
	for _, block := range p.cfg.Backend.Repositories() {
		if t.asked.Target == "" || t.asked.Target == block.Target {
			t.claims = append(t.claims, claim{block: block})
		}
	}
	owner, err := t.owner(ctx)
	if err != nil {
		return err
	}
	if err := p.keepIdentity(owner); err != nil {
		return err
	}
	if err := p.openWorkers(t.r.id); err != nil {
		return err
	}
	p.mu.Lock()
	workers := p.workers
	p.mu.Unlock()
	for i := range t.claims {
		c := &t.claims[i]
		at := slices.IndexFunc(workers, func(w *syncer.Worker) bool { return w.Status().Target == c.block.Target })
		c.worker = workers[at]
		if have := t.chosen; have != nil && !have.Seed && have.Target == c.block.Target && have.Prefix == c.block.Prefix {
			// So that a repository which is gone is not taken for one that never was. Nobody has looked just now: it is known to have been there when
			// it was pulled, which was after it was made.
			if err := c.worker.Seen(ctx, have.Number, have.Checkpoint, have.Step, have.Created); err != nil {
				return err
			}
		}
	}
	return nil
}

// owner learns whose the repositories are, where the record does not know it; Nil = there are none. An identity that is made up where a
// repository was merely not seen would keep this standby from it for ever, and an empty target that is claimed is a repository: so where it is not
// known, nothing is claimed unless there is something to start from, or the operator accepts an empty state.
func (t *takeover) owner(ctx context.Context) (uuid.UUID, error) {
	if id := t.p.known().ID; id != uuid.Nil {
		return id, nil
	}
	var silent []error
	for _, c := range t.claims {
		head, err := t.p.discover(ctx, c.block)
		switch {
		case err != nil:
			silent = append(silent, err)
		case head.Format != nil:
			return head.Format.PipelineID, nil
		}
	}
	switch {
	case len(silent) > 0 && (t.chosen == nil || !t.asked.AcceptLocal):
		return uuid.Nil, errors.Join(silent...)
	case t.chosen == nil && !t.asked.AcceptLocal:
		return uuid.Nil, errNothing
	}
	return uuid.Nil, nil
}

// discover asks one target what it holds. It has a time of its own: one that hangs does not keep the others from being asked.
func (p *pipeline) discover(ctx context.Context, block config.Sync) (syncer.Head, error) {
	ctx, cancel := context.WithTimeout(ctx, p.host.opts.pace.remote)
	defer cancel()
	reader, err := p.reader(block, p.host.opts.pace.remote)
	if err != nil {
		return syncer.Head{}, err
	}
	return reader.Discover(ctx)
}

// errNothing refuses an activation that would begin with an empty state unasked.
var errNothing = errors.New("there is no checkpoint here, nor on the targets: start the primary first or, to begin with an empty state, activate with --accept-local once every target answers")

// claim fences whoever wrote until now, on all targets at once, and finds the newest commit below the seals.
func (t *takeover) claim(ctx context.Context) error {
	var targets []string // the claims themselves change while status asks
	for i := range t.claims {
		targets = append(targets, t.claims[i].block.Target)
	}
	t.r.phase("claiming the targets", func() string {
		var down []string
		for _, target := range targets {
			if why := t.p.host.down(target); why != "" {
				down = append(down, why)
			}
		}
		return strings.Join(down, "; ")
	})
	var group sync.WaitGroup
	for i := range t.claims {
		group.Go(func() { t.claims[i].make(ctx, t.p) })
	}
	group.Wait()
	var failed []error
	for i := range t.claims {
		c := &t.claims[i]
		if c.err != nil {
			failed = append(failed, c.err)
		}
		if c.newest != nil && (t.newest == nil || c.newest.Checkpoint.Step > t.newest.Checkpoint.Step) {
			t.newest = c.newest
		}
	}
	if len(failed) > 0 && !t.asked.AcceptLocal {
		return errors.Join(failed...)
	}
	return nil
}

func (c *claim) make(ctx context.Context, p *pipeline) {
	ctx, cancel := context.WithTimeout(ctx, p.host.opts.pace.remote)
	defer cancel()
	if c.claimed, c.err = c.worker.Claim(ctx); c.err != nil {
		return
	}
	if c.reader, c.err = p.reader(c.block, p.host.opts.pace.remote); c.err != nil {
		return
	}
	c.newest = c.claimed.Newest
	if id := p.pinned(); id != uuid.Nil && c.newest != nil {
		c.newest, c.err = findInfo(ctx, c.reader, syncer.Selector{Checkpoint: id})
	}
}

// findInfo is nil for a commit that is proven not to be there.
func findInfo(ctx context.Context, reader *syncer.Reader, sel syncer.Selector) (*syncer.CommitInfo, error) {
	c, err := reader.Find(ctx, sel)
	switch {
	case errors.Is(err, syncer.ErrNoCommit):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &syncer.CommitInfo{Number: c.Number, Epoch: c.Epoch, Writer: c.Writer, Created: c.Created, Checkpoint: c.Checkpoint, Totals: c.Totals}, nil
}

// onHistory says whether the chosen state lies on or behind a commit's line.
func onHistory(ours checkpoint.Manifest, theirs *syncer.CommitInfo) bool {
	at := repository.Point{Step: ours.Step}
	for _, reign := range ours.History {
		at.History = append(at.History, repository.Reign(reign))
	}
	return repository.Relate(at, repository.Point{History: theirs.Checkpoint.History, Step: theirs.Checkpoint.Step}).OnHistory
}
