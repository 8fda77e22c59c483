package host

import (
	"context"

	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// Verify reads what the targets hold and tells what of it could not be restored: one row for each target, which says why where it could not be
// verified. progress is told the bytes done and to do of the target at hand, from any goroutine; nil = nobody is. No proof is kept.
func (o *Offline) Verify(ctx context.Context, opts client.VerifyOptions, progress func(done, total int64)) ([]client.VerifyView, error) {
	targets, err := o.open(ctx, opts.Target)
	if err != nil {
		return nil, err
	}
	defer targets.close(ctx)
	views := []client.VerifyView{}
	for _, t := range targets.open {
		if t.err != nil {
			views = append(views, verifyView(t.name, syncer.VerifyReport{}, t.err))
			continue
		}
		req := verifyRequest(opts)
		req.Spool, req.Progress = targets.spool, told(progress)
		rep, err := t.reader.Verify(ctx, req)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		views = append(views, verifyView(t.name, rep, err))
	}
	return views, nil
}

// told hands progress on in bytes.
func told(progress func(done, total int64)) func(syncer.Progress) {
	if progress == nil {
		return nil
	}
	return func(p syncer.Progress) { progress(p.Done, p.Total) }
}
