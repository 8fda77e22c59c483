package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/sdk/client"
)

// sound reads the copy that is about to start from end to end, unless it has just been pulled. One that is damaged is set aside; then it is
// pulled anew or, where the operator accepts that, the copy before it starts.
func (t *takeover) sound(ctx context.Context) error {
	for t.chosen != nil && t.r.verified != t.chosen.Checkpoint {
		t.r.phase(fmt.Sprintf("verifying checkpoint %s", t.chosen.Checkpoint), nil)
		damage := t.verify(ctx)
		switch {
		case damage == nil:
			t.r.verified = t.chosen.Checkpoint
			return nil
		case !errors.Is(damage, checkpoint.ErrCorrupt) && !errors.Is(damage, checkpoint.ErrNone):
			return damage
		}
		if err := t.replace(ctx, damage); err != nil {
			return err
		}
	}
	return nil
}

func (t *takeover) verify(ctx context.Context) error {
	pin, err := t.p.dir.Checkpoints().Pin(t.chosen.Checkpoint)
	if err != nil {
		return err
	}
	defer pin.Release()
	return checkpoint.Verify(ctx, pin.Dir(), pin.Manifest())
}

// replace finds another copy for a damaged one.
func (t *takeover) replace(ctx context.Context, damage error) error {
	t.p.log.Error("the local copy is damaged and is set aside", "checkpoint", t.chosen.Checkpoint, "error", damage)
	if !errors.Is(damage, checkpoint.ErrNone) {
		if err := t.p.dir.Checkpoints().SetAside(t.chosen.Checkpoint); err != nil {
			return errors.Join(damage, err)
		}
	}
	before := t.chosen
	t.chosen = nil
	if err := t.fetch(ctx); err != nil {
		return errors.Join(damage, err)
	}
	if t.chosen != nil {
		return nil
	}
	if !t.asked.AcceptLocal {
		return damage
	}
	t.report.Warnings = append(t.report.Warnings, fmt.Sprintf("the newest local copy was damaged and is set aside: %v", damage))
	return t.fallBack(ctx, before)
}

// fallBack takes the newest copy that is left, or the newest commit that was not taken for the sake of the damaged one.
func (t *takeover) fallBack(ctx context.Context, damaged *checkpoint.Followed) error {
	left, err := t.p.dir.Checkpoints().List(ctx)
	switch {
	case err != nil:
		return err
	case t.behind && (len(left) == 0 || left[len(left)-1].Step < t.newest.Checkpoint.Step):
		t.warn("no copy that is as new is left, so commit %d of step %d is taken after all", t.newest.Number, t.newest.Checkpoint.Step)
		return t.pullNewest(ctx)
	case len(left) == 0:
		return ctx.Err()
	}
	m := left[len(left)-1]
	t.chosen = &checkpoint.Followed{Target: damaged.Target, Prefix: damaged.Prefix, Checkpoint: m.ID, Step: m.Step, Created: m.Created, Seed: damaged.Seed}
	return t.p.keepFollowed(*t.chosen, t.p.known().ID)
}

// settle makes the chosen copy what the ordinary start takes, and lets the pushes of the new primary go on from it where the operator has
// accepted that newer commits are overruled.
func (t *takeover) settle(ctx context.Context) error {
	if t.chosen == nil {
		if t.asked.AcceptLocal && !t.uncertain() {
			return nil // proven: there is nothing, anywhere; an empty state starts
		}
		return t.nothing()
	}
	store := t.p.dir.Checkpoints()
	if _, err := store.CollectFor(t.chosen.Checkpoint, max(2, t.p.cfg.Checkpoint.Keep)); err != nil {
		return err
	}
	pin, err := store.Pin(t.chosen.Checkpoint)
	if err != nil {
		return err
	}
	defer pin.Release()
	for i := range t.claims {
		t.overrule(ctx, &t.claims[i], pin.Manifest())
	}
	return nil
}

// nothing says why there is nothing to start from.
func (t *takeover) nothing() error {
	var silent []error
	holds := false
	for _, c := range t.claims {
		holds = holds || c.claimed.Newest != nil
		if c.err != nil {
			silent = append(silent, c.err)
		}
	}
	switch id := t.p.pinned(); {
	case t.missed != nil:
		return fmt.Errorf("there is no checkpoint here, and the newest commit could not be pulled: %w", t.missed)
	case len(silent) > 0:
		return fmt.Errorf("there is no checkpoint here, and a target that may hold one was not claimed: %w", errors.Join(silent...))
	case id != uuid.Nil && holds:
		return fmt.Errorf("there is no checkpoint here, and checkpoint %s, which start_from_checkpoint asks for, is on none of the targets, though they hold others: "+
			"set it to \"latest\" to start from the newest", id)
	}
	return errNothing
}

// uncertain says whether some target has not proven that it holds nothing.
func (t *takeover) uncertain() bool {
	if t.newest != nil {
		return true
	}
	for _, c := range t.claims {
		if c.err != nil || c.claimed.Newest != nil {
			return true
		}
	}
	return false
}

// overrule adopts a target whose newest commit is not in the state that starts. Without the operator's word, or without having seen it, it
// stays held.
func (t *takeover) overrule(ctx context.Context, c *claim, ours checkpoint.Manifest) {
	name := c.block.Target
	newest := c.claimed.Newest
	switch {
	case c.err != nil:
		t.warn("target %q was not claimed (%v): whoever wrote there may go on until it is claimed, which is tried again until it succeeds; should it hold more than what starts here, it is held until it is adopted", name, c.err)
	case newest == nil || onHistory(ours, newest):
	case !t.asked.AcceptLocal || t.p.pinned() == ours.ID:
		t.warn("commit %d of target %q (step %d) is not in the state that starts: pushes there are held until %s", newest.Number, name, newest.Checkpoint.Step, t.p.commands(name).Adopt())
	default:
		ctx, cancel := context.WithTimeout(ctx, t.p.host.opts.pace.remote)
		defer cancel()
		if err := c.worker.Adopt(ctx); err != nil {
			t.warn("target %q is held until it is adopted: %v", name, err)
			return
		}
		t.warn("commit %d of target %q (step %d) is overruled: the next push goes on top of it; until retention takes it, it can be restored from there by its number", newest.Number, name, newest.Checkpoint.Step)
	}
}

func (t *takeover) warn(format string, args ...any) {
	t.report.Warnings = append(t.report.Warnings, fmt.Sprintf(format, args...))
}

// tell completes the report.
func (t *takeover) tell() {
	t.report.Incarnation = t.r.id
	for _, c := range t.claims {
		told := client.Claim{Target: c.block.Target, Epoch: c.claimed.Epoch}
		if c.err != nil {
			told.Error = c.err.Error()
		}
		if by := c.claimed.Before; by != nil {
			told.Fenced = fmt.Sprintf("host %q (incarnation %s), which had claimed it at %s", by.Host, by.Writer.Incarnation, by.Started.UTC().Format(time.RFC3339))
		}
		t.report.Claims = append(t.report.Claims, told)
	}
	if t.chosen != nil {
		t.report.From, t.report.Target, t.report.Number = point(t.chosen.Checkpoint, t.chosen.Step, t.chosen.Created), t.chosen.Target, t.chosen.Number
	}
	t.report.Loss = t.loss()
	if t.report.Warnings == nil {
		t.report.Warnings = []string{}
	}
	t.p.log.Info("activated", "step", t.chosenStep(), "pulled_bytes", t.report.PulledBytes, "loss", t.report.Loss.Text)
	for _, warning := range t.report.Warnings {
		t.p.log.Warn(warning)
	}
}

func (t *takeover) chosenStep() uint64 {
	if t.chosen == nil {
		return 0
	}
	return t.chosen.Step
}
