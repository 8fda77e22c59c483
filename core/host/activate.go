package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/cairnsync/cairn/core/api"
	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/sdk/client"
)

// An activation goes: it is noted; the epoch of every target is claimed and the line sealed, which fences the primary before; the newest
// commit below the seals is pulled; the ordinary start takes it. What was asked for stands in the record until a state of the new lineage is
// about to stand, so a crash anywhere is gone on with by the next start, and it ends in one of two states: the primary, or the standby again
// with the reason told.

// outcome is what whoever asked for an activation is told.
type outcome struct {
	done client.Activated
	err  error
}

// Activate makes a standby the primary. It answers when that runs, or when the activation has failed and the pipeline follows again; when
// ctx ends before, the activation goes on.
func (p *pipeline) Activate(ctx context.Context, opts client.ActivateOptions) (client.Activated, error) {
	told, err := p.askToActivate(opts)
	if err != nil {
		return client.Activated{}, err
	}
	select {
	case o := <-told:
		return o.done, o.err
	case <-ctx.Done():
		return client.Activated{}, ctx.Err()
	}
}

// askToActivate notes the wish, durably and before anything is done about it, and ends the following.
func (p *pipeline) askToActivate(opts client.ActivateOptions) (<-chan outcome, error) {
	p.acting.Lock()
	defer p.acting.Unlock()
	if err := p.canActivate(opts.Target); err != nil {
		return nil, err
	}
	err := p.changeRecord(func(record *checkpoint.Pipeline) {
		record.Desired = checkpoint.Running
		record.Activation = &checkpoint.Activation{AcceptLocal: opts.AcceptLocal, Target: opts.Target, Asked: p.host.opts.Now().UTC()}
	})
	if err != nil {
		return nil, fmt.Errorf("note the activation of pipeline %q: %w", p.cfg.Name, err)
	}
	p.host.hook("activate.desired")
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != stateStandby { // it has ended meanwhile; its next start goes on
		return nil, notRunning(p.cfg.Name, "it is "+p.shownState()+"; the activation is noted and goes on when it starts")
	}
	told := make(chan outcome, 1)
	p.run.told, p.state = told, stateStarting
	p.run.endFollow()
	return told, nil
}

func (p *pipeline) canActivate(target string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != stateStandby {
		return p.transition("activate")
	}
	known := slices.ContainsFunc(p.cfg.Backend.Repositories(), func(b config.Sync) bool { return b.Target == target })
	if target != "" && !known {
		return p.unknownTarget(target)
	}
	return nil
}

// tell answers whoever waits for the activation, if anybody does; later calls do nothing.
func (p *pipeline) tell(r *run, o outcome) {
	p.mu.Lock()
	told := r.told
	r.told = nil
	p.mu.Unlock()
	if told != nil {
		told <- o
	}
}

// activate does what was asked for. It is done when the start can go on from local state; neither done nor an error: the pipeline is a standby
// again.
func (p *pipeline) activate(ctx context.Context, r *run, asked checkpoint.Activation) (done bool, err error) {
	p.mu.Lock()
	p.state = stateStarting
	t := &takeover{p: p, r: r, asked: asked}
	if p.follower != nil {
		t.seen = p.follower.Status()
	}
	p.mu.Unlock()
	p.log.Info("activating", "accept_local", asked.AcceptLocal, "target", asked.Target)
	switch failure := t.run(ctx); {
	case failure == nil:
		p.mu.Lock()
		r.activated, r.late = &t.report, p.unclaimed()
		p.mu.Unlock()
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err() // the next start goes on
	default:
		return false, p.refuse(r, t, failure)
	}
}

// refuse makes the pipeline a standby again, unless an operator has decided otherwise meanwhile.
func (p *pipeline) refuse(r *run, t *takeover, failure error) error {
	answer := t.refusal(failure)
	err := p.changeRecord(func(record *checkpoint.Pipeline) {
		if record.Activation != nil {
			record.Desired, record.Activation = checkpoint.Standby, nil
		}
	})
	p.host.hook("activate.refused")
	if err != nil {
		return errors.Join(answer, fmt.Errorf("note that the activation has failed: %w", err))
	}
	p.mu.Lock()
	p.refused = answer.Message
	p.mu.Unlock()
	p.log.Error("activation failed, the pipeline is a standby still", "error", answer.Message)
	p.tell(r, outcome{err: answer})
	return nil
}

// refusal is the answer to whoever asked: why, what is fenced already, and what the local copy lacks.
func (t *takeover) refusal(failure error) *api.Error {
	text := fmt.Sprintf("activation of pipeline %q failed, it is a standby still: %v", t.p.cfg.Name, failure)
	claimed := []string{}
	for _, c := range t.claims {
		if c.claimed.Epoch != 0 {
			claimed = append(claimed, c.block.Target)
			text += fmt.Sprintf("; epoch %d of target %q is claimed, so the primary before is fenced there already", c.claimed.Epoch, c.block.Target)
		}
	}
	loss := t.loss()
	text += "; " + loss.Text + "; activate again to go on from here, or with --accept-local to start what is here"
	answer := api.Errorf(http.StatusConflict, client.CodeActivation, "%s", text).With("claimed", claimed).With("local_copy", t.chosen != nil)
	if loss.Seconds != nil {
		answer = answer.With("behind_steps", loss.Steps).With("behind_commits", loss.Commits).With("behind_seconds", *loss.Seconds)
	}
	return answer
}
