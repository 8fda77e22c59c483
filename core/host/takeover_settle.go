package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/syncer"
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

// fallBack takes the newest copy that is left.
func (t *takeover) fallBack(ctx context.Context, damaged *checkpoint.Followed) error {
	left, err := t.p.dir.Checkpoints().List(ctx)
	if err != nil || len(left) == 0 {
		return errors.Join(err, ctx.Err())
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
		return errNothing
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
		t.warn("target %q was not claimed (%v): whoever wrote there may go on until this host's first push claims it; should it hold more than what starts here, it is held until it is adopted", name, c.err)
	case newest == nil || onHistory(ours, newest):
	case !t.asked.AcceptLocal || t.p.pinned() == ours.ID:
		t.warn("commit %d of target %q (step %d) is not in the state that starts: pushes there are held until `cairn pipeline adopt`", newest.Number, name, newest.Checkpoint.Step)
	default:
		ctx, cancel := context.WithTimeout(ctx, remoteBudget)
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
			told.Fenced = fmt.Sprintf("host %q (incarnation %s), since %s", by.Host, by.Writer.Incarnation, by.Started.UTC().Format(time.RFC3339))
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

// loss says what the local copy lacks of what was committed. What the primary had and never committed is known to nobody but itself.
func (t *takeover) loss() client.Loss {
	newest, sure := t.newest, true
	for _, c := range t.claims {
		sure = sure && c.err == nil && c.claimed.Epoch != 0
	}
	if newest == nil && !sure {
		newest = t.seen.Seen
	}
	lag := syncer.LagOf(t.chosen, newest)
	seconds := lag.Age.Seconds()
	loss := client.Loss{Steps: &lag.Steps, Commits: &lag.Commits, Seconds: &seconds, Certain: sure}
	switch {
	case newest == nil && !sure:
		return client.Loss{Text: "what the targets hold beyond the local copy is not known, for not all of them answered"}
	case lag == (syncer.Lag{}) && sure:
		loss.Text = "nothing that was committed is missing from the local copy"
	case lag == (syncer.Lag{}):
		loss.Text = fmt.Sprintf("nothing that was seen committed is missing from the local copy; what came after %s is not known", t.lookedAt())
	default:
		loss.Text = fmt.Sprintf("the local copy lacks %d steps in %d commits, %s of work; how many records that is cannot be told from here", lag.Steps, lag.Commits, lag.Age)
		if !sure {
			loss.Text += fmt.Sprintf(", and what came after %s", t.lookedAt())
		}
	}
	return loss
}

func (t *takeover) lookedAt() string {
	if t.seen.Looked.IsZero() {
		return "the last look"
	}
	return t.seen.Looked.UTC().Format(time.RFC3339)
}
