package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/core/trigger"
	"github.com/cairnsync/cairn/sdk"
)

// pusher lets the loop speak to a syncer's worker.
type pusher struct {
	name   string
	worker *syncer.Worker
	pin    func(uuid.UUID) (release func(), err error)
	run    syncer.Commands
	keeper *keeper // nil = nobody maintains after a push
}

// Name is the target's.
func (p pusher) Name() string { return p.name }

// Push runs one job. It pins first of all: the worker writes to disk before it does.
func (p pusher) Push(ctx context.Context, job circuit.PushJob) error {
	if release, err := p.pin(job.Checkpoint); err == nil {
		defer release()
	} // otherwise the worker meets the same error, and keeps a record of it
	if err := p.worker.Push(ctx, syncer.Job{Checkpoint: job.Checkpoint, Trigger: syncer.Trigger(job.Trigger)}); err != nil {
		return explained(err)
	}
	p.keeper.pushed()
	return nil
}

// explained adds what the store's side says can be done about an error: the loop's status shows its text and nothing else.
func explained(err error) error {
	if e, ok := errors.AsType[*sdk.Error](err); ok && e.Hint != "" && !strings.Contains(err.Error(), e.Hint) {
		return fmt.Errorf("%w; %s", err, e.Hint)
	}
	return err
}

// State is what the target is known to hold.
func (p pusher) State() circuit.PushState {
	s := p.worker.Status()
	state := circuit.PushState{
		PeriodicAt: s.PeriodicAt, FailedAt: s.FailedAt, Failures: s.Failures,
		Fenced: s.Condition == syncer.Fenced, Held: s.Condition == syncer.Held, Refused: s.Condition == syncer.Refused, Reason: s.Reason,
	}
	if why := unreliable(s, p.run); why != "" {
		state.Gone, state.Reason = true, why
	}
	if s.Committed != nil {
		state.Committed = s.Committed.Checkpoint
	}
	return state
}

// obstacle is why nothing will be committed on a target until somebody acts; "" = nothing is known to be in the way.
func obstacle(s syncer.Status) string {
	switch s.Condition {
	case syncer.Fenced, syncer.Held, syncer.Refused:
		return s.Reason
	}
	return ""
}

// unreliable says why what was committed on a target cannot be relied on: it is gone, or known to be broken; "" = nothing speaks against it.
func unreliable(s syncer.Status, run syncer.Commands) string {
	switch {
	case s.Committed == nil && s.Lost != nil && obstacle(s) != "":
		return s.Reason
	case s.Committed == nil && s.Lost != nil:
		return fmt.Sprintf("target %q: commit %d, which was there, was seen to be gone", s.Target, s.Lost.Number)
	case s.Committed != nil && s.Damage != nil && slices.Contains(s.Damage.Commits, s.Committed.Number):
		return fmt.Sprintf("target %q: commit %d, the newest there, is known to be broken: %s names what is wrong and the remedy, %s makes the newest state whole",
			s.Target, s.Committed.Number, run.Verify(), run.Repair())
	}
	return ""
}

// checkpointer writes a circuit's snapshots into the pipeline's store. The loop makes one call at a time.
type checkpointer struct {
	p           *pipeline
	incarnation uuid.UUID
	identity    circuit.Identity
	history     checkpoint.History
	known       uuid.UUID // the newest that the loop knows of while Write runs; it may begin a push of it at any moment
}

// Write publishes one checkpoint and removes those that are no longer kept. A removal that fails is logged: the new checkpoint stands.
func (c *checkpointer) Write(ctx context.Context, s circuit.Snapshot) (trigger.Checkpoint, error) {
	store := c.p.dir.Checkpoints()
	draft, err := store.Begin()
	if err != nil {
		return trigger.Checkpoint{}, err
	}
	defer func() { _ = draft.Close() }() // of a failed attempt; what it leaves is swept at the next start
	if err := s.Write(ctx, draft.Dir()); err != nil {
		return trigger.Checkpoint{}, fmt.Errorf("write checkpoint %s: %w", draft.ID(), checkpoint.Explain(c.p.cfg.Backend.Path, err))
	}
	now := c.p.host.opts.Now()
	manifest, err := draft.Publish(ctx, checkpoint.Meta{
		Step: s.Step(), Created: now, Incarnation: c.incarnation,
		Kind: c.identity.Kind, Fingerprint: c.identity.Fingerprint, History: upTo(c.history, s.Step()),
	})
	if err != nil {
		return trigger.Checkpoint{}, fmt.Errorf("publish checkpoint %s: %w", draft.ID(), err)
	}
	if _, err := store.Collect(c.p.cfg.Checkpoint.Keep, c.known); err != nil {
		c.p.log.Error("old checkpoints not removed", "error", err)
	}
	c.known = manifest.ID
	return trigger.Checkpoint{ID: manifest.ID, Step: manifest.Step, At: now}, nil
}

// upTo is a history whose current reign has come to a step.
func upTo(h checkpoint.History, step uint64) checkpoint.History {
	next := append(checkpoint.History{}, h...)
	next[len(next)-1].UpTo = step
	return next
}
