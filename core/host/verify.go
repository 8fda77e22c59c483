package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/api"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// verifyRequest is what the options ask of the syncer. Each sample is another one, so that many small ones come to see all.
func verifyRequest(o client.VerifyOptions) syncer.VerifyRequest {
	req := syncer.VerifyRequest{Level: syncer.VerifyMetadata}
	switch {
	case o.Deep:
		req.Level = syncer.VerifyDeep
	case o.Sample > 0:
		req.Level, req.Fraction, req.Seed = syncer.VerifySample, o.Sample, rand.Uint64()
	}
	if o.Newest {
		req.From = &syncer.Selector{}
	}
	return req
}

// Verify looks at one target after the other. One that cannot be verified says why in its own row.
func (p *pipeline) Verify(ctx context.Context, o client.VerifyOptions) ([]client.VerifyView, error) {
	if !(o.Sample >= 0 && o.Sample <= 1) { // not a number is neither, and would be taken for none
		return nil, api.Errorf(http.StatusBadRequest, client.CodeBadRequest, "verify: sample %v: write the part of the chunks to read, from 0 to 1", o.Sample)
	}
	blocks, err := p.repositories(o.Target)
	if err != nil {
		return nil, err
	}
	views := []client.VerifyView{}
	for _, block := range blocks {
		rep, err := p.verify(ctx, block, verifyRequest(o))
		if ctx.Err() != nil {
			return nil, fmt.Errorf("verify target %q: %w", block.Target, ctx.Err())
		}
		views = append(views, verifyView(block.Target, rep, err))
	}
	return views, nil
}

// repositories are the sync blocks of one target, or with "" of all.
func (p *pipeline) repositories(target string) ([]config.Sync, error) {
	var found []config.Sync
	all := p.cfg.Backend.Repositories()
	for _, block := range all {
		if target == "" || target == block.Target {
			found = append(found, block)
		}
	}
	switch {
	case len(all) == 0:
		return nil, api.Errorf(http.StatusBadRequest, client.CodeNoSync, "pipeline %q has no sync block", p.cfg.Name)
	case len(found) == 0:
		return nil, p.unknownTarget(target)
	}
	return found, nil
}

// verify goes through the target's worker, which keeps the proof; before the first state there is none.
func (p *pipeline) verify(ctx context.Context, block config.Sync, req syncer.VerifyRequest) (syncer.VerifyReport, error) {
	if why := p.host.down(block.Target); why != "" {
		return syncer.VerifyReport{}, errors.New(why)
	}
	req.Progress = func(now syncer.Progress) { p.readSo(block.Target, now) }
	defer p.readAll(block.Target)
	if w := p.worker(block.Target); w != nil {
		p.reconsider(ctx, block.Target)
		return w.Verify(ctx, req)
	}
	reader, err := p.reader(block, p.host.opts.pace.remote)
	if err != nil {
		return syncer.VerifyReport{}, err
	}
	req.Spool = p.host.spool
	return reader.Verify(ctx, req)
}

// readSo shows how far a verification is; of two at once, the one that told last.
func (p *pipeline) readSo(target string, now syncer.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reading == nil {
		p.reading = map[string]syncer.Progress{}
	}
	p.reading[target] = now
}

func (p *pipeline) readAll(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.reading, target)
}

// worker is that of a target; nil = the pipeline has not come to a state yet.
func (p *pipeline) worker(target string) *syncer.Worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		if w.Status().Target == target {
			return w
		}
	}
	return nil
}

// Repair makes the newest state whole on a target again.
func (p *pipeline) Repair(ctx context.Context, target string, deep bool) (client.RepairView, error) {
	if _, err := p.repositories(target); err != nil {
		return client.RepairView{}, err
	}
	w, err := p.maintainable(target)
	if err != nil {
		return client.RepairView{}, err
	}
	r, err := p.current()
	if err != nil {
		return client.RepairView{}, err
	}
	newest, err := p.newest(ctx)
	if err != nil {
		return client.RepairView{}, err
	}
	if newest.ID != uuid.Nil { // it must not be collected before the worker comes to it
		release, err := p.pin(newest.ID)
		if err != nil {
			return client.RepairView{}, err
		}
		defer release()
	}
	rep, err := w.Repair(ctx, syncer.RepairRequest{Checkpoint: newest.ID, Deep: deep})
	r.loop.Wake()
	switch {
	case errors.Is(err, syncer.ErrNothingLocal):
		return client.RepairView{}, api.Errorf(http.StatusBadRequest, client.CodeNothingToSync, "%v", err)
	case err != nil:
		return client.RepairView{}, maintainError(err)
	}
	view := client.RepairView{Target: target, Found: verifyView(target, rep.Found, nil), Bytes: rep.Bytes, Broken: numbers(rep.Broken)}
	if c := rep.Commit; c != nil {
		view.Repaired, view.Number = point(c.Checkpoint, c.Step, c.At), c.Number
	}
	return view, nil
}

func verifyView(target string, rep syncer.VerifyReport, err error) client.VerifyView {
	if err != nil {
		return client.VerifyView{Target: target, Error: explained(err).Error(), Problems: []client.ProblemView{}, Broken: []uint64{}}
	}
	view := client.VerifyView{
		Target: target, Level: string(rep.Level), Sample: rep.Fraction, Seed: rep.Seed, Commits: rep.Commits, Packs: rep.Packs, Chunks: rep.Chunks,
		Bytes: rep.Bytes, Requests: rep.Requests, Orphans: rep.Orphans, OrphanBytes: rep.OrphanBytes,
		Started: rep.Started.UTC(), Finished: rep.Finished.UTC(), Problems: []client.ProblemView{}, MoreProblems: rep.More,
		Broken: numbers(rep.Broken), Known: damageView(rep.Known), Proof: proofView(rep.Proof),
	}
	for _, p := range rep.Problems {
		view.Problems = append(view.Problems, client.ProblemView{
			Kind: string(p.Kind), Object: p.Object, Commits: numbers(p.Commits), File: p.File, What: p.What, Remedy: p.Remedy,
		})
	}
	return view
}

// numbers is never null in JSON.
func numbers(n []uint64) []uint64 { return append([]uint64{}, n...) }

func proofView(p *syncer.Proof) *client.ProofView {
	if p == nil {
		return nil
	}
	return &client.ProofView{At: p.At.UTC(), Level: string(p.Level), Sample: p.Fraction, Commit: p.Commit, UUID: p.Checkpoint, Commits: p.Commits}
}

func damageView(d *syncer.Damage) *client.DamageView {
	if d == nil {
		return nil
	}
	return &client.DamageView{At: d.At.UTC(), Level: string(d.Level), Sample: d.Fraction, Commits: numbers(d.Commits)}
}
