package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/core/trigger"
)

// scratch says that what counts of this pipeline lies in a repository, and nothing that is only in its folder does.
func (p *pipeline) scratch() bool { return p.cfg.Backend.Type == config.ObjectBackend }

// committer publishes a checkpoint by committing it to the one repository of object storage: what is not committed was never published.
type committer struct {
	local  *checkpointer
	worker *syncer.Worker
	keeper *keeper // nil = nobody maintains after a commit
}

// Write puts the checkpoint into the folder and commits it. When that fails nothing of it stays in the folder; should the commit have landed
// unseen, the next one finds it and goes on from there.
func (c *committer) Write(ctx context.Context, s circuit.Snapshot) (trigger.Checkpoint, error) {
	c.local.p.reconsider(ctx, "") // what holds it may have been put right
	if now := c.worker.Status(); now.Condition == syncer.Fenced || now.Condition == syncer.Held {
		return trigger.Checkpoint{}, errors.New(now.Reason) // it would stand there uncommitted
	}
	before := c.local.known
	written, err := c.local.Write(ctx, s)
	if err != nil {
		return trigger.Checkpoint{}, err
	}
	release, err := c.local.p.pin(written.ID)
	if err != nil {
		return trigger.Checkpoint{}, err
	}
	err = c.worker.Push(ctx, syncer.Job{Checkpoint: written.ID, Trigger: syncer.Publication})
	release()
	if err == nil {
		c.keeper.pushed()
		return written, nil
	}
	c.local.known = before
	_, failed := c.local.p.dir.Checkpoints().Discard(before)
	return trigger.Checkpoint{}, fmt.Errorf("commit checkpoint %s: %w", written.ID, errors.Join(explained(err), failed))
}
