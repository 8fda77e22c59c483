package host

import (
	"context"
	"errors"
	"slices"

	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// unclaimed are the targets that did not answer when an activation claimed the others, or did not have to. Whoever wrote there is not fenced before
// they are claimed.
func (p *pipeline) unclaimed() (late []*syncer.Worker) {
	for _, w := range p.workers {
		if w.Status().Epoch == 0 {
			late = append(late, w)
		}
	}
	return late
}

// claimLate claims such a target as soon as it answers, for a pipeline with nothing new to push would leave the primary before at work there. It ends
// with ctx, when a push has claimed, or when another writer did.
func (p *pipeline) claimLate(ctx context.Context, r *run, w *syncer.Worker) {
	p.host.opts.pace.again(ctx, func() (done bool) {
		if w.Status().Epoch != 0 {
			return true
		}
		err := p.claimOnce(ctx, w)
		_, fenced := errors.AsType[*syncer.FencedError](err)
		r.loop.Wake() // a target that was held is ready now, or the other way round: a push may be due there
		if err != nil && !fenced && ctx.Err() == nil {
			p.log.Warn("a target is still not claimed", "target", w.Status().Target, "error", err)
		}
		return fenced || w.Status().Epoch != 0
	})
}

// claimOnce has an end: while it waits for its store, neither a push nor an operator gets at the target.
func (p *pipeline) claimOnce(ctx context.Context, w *syncer.Worker) error {
	ctx, cancel := context.WithTimeout(ctx, p.host.opts.pace.remote)
	defer cancel()
	_, err := w.Claim(ctx)
	return err
}

// warnUnclaimed says of a target that whoever wrote there before is not fenced yet.
func (l look) warnUnclaimed(view *client.TargetView, s syncer.Status) {
	if s.Epoch == 0 && slices.ContainsFunc(l.late, func(w *syncer.Worker) bool { return w.Status().Target == s.Target }) {
		view.Warnings = append(view.Warnings, "it has not been claimed since this host was activated, so whoever wrote there may go on until a push, or the next attempt to claim it, succeeds")
	}
}
