package host

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// The waits between two attempts to claim a target that was silent when its pipeline was activated.
const (
	firstLateClaim = time.Second
	lateClaimMost  = time.Minute
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
func (p *pipeline) claimLate(ctx context.Context, w *syncer.Worker) {
	for wait := firstLateClaim; w.Status().Epoch == 0; wait = min(2*wait, lateClaimMost) {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		_, err := w.Claim(ctx)
		if _, fenced := errors.AsType[*syncer.FencedError](err); fenced {
			return
		}
		if err != nil && ctx.Err() == nil {
			p.log.Warn("a target is still not claimed", "target", w.Status().Target, "error", err)
		}
	}
}

// warnUnclaimed says of a target that whoever wrote there before is not fenced yet.
func (l look) warnUnclaimed(view *client.TargetView, s syncer.Status) {
	if s.Epoch == 0 && slices.ContainsFunc(l.late, func(w *syncer.Worker) bool { return w.Status().Target == s.Target }) {
		view.Warnings = append(view.Warnings, "it has not been claimed since this host was activated, so whoever wrote there may go on until a push, or the next attempt to claim it, succeeds")
	}
}
