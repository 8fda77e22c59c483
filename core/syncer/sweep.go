package syncer

import (
	"context"
	"fmt"
	"math"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// maxSwept is how many packs one run deletes at most: a hundred calls, and 1.6 TB of full packs.
const maxSwept = 100 * sdk.MaxDelete

// sweep deletes the packs that no commit names and that none can come to name. The packs are listed first, then every commit that exists is read.
func (u *upkeepRun) sweep(ctx context.Context) error {
	u.memo.swept = u.memo.swept && u.req.DryRun
	if u.report.Policy == nil { // else retention has read it
		if err := u.readGC(ctx); err != nil {
			return err
		}
	}
	facts, foreign, err := u.sweepFacts(ctx)
	if err != nil {
		return err
	}
	plan := repository.PlanSweep(facts)
	u.report.Sweep = &SweepReport{
		Packs: plan.Packs, Bytes: plan.Bytes, Orphans: int64(len(plan.Condemned)), OrphanBytes: plan.CondemnedBytes,
		Undecided: plan.Spared, UndecidedBytes: plan.SparedBytes, Foreign: foreign, More: len(plan.Condemned) > maxSwept,
	}
	switch missing := u.report.Missing; {
	case u.req.DryRun:
		return nil
	case len(missing) > 0 && len(plan.Condemned) > 0 && !u.req.Thorough:
		u.trouble = append(u.trouble, fmt.Errorf("target %q: %d packs that no commit names were left alone, for %w", u.target, len(plan.Condemned), u.missing()))
		return nil
	}
	return u.deletePacks(ctx, plan.Condemned[:min(len(plan.Condemned), maxSwept)])
}

// sweepFacts are what the sweep goes by; the order in which they are read is part of the protocol.
func (u *upkeepRun) sweepFacts(ctx context.Context) (f repository.SweepFacts, foreign int64, err error) {
	f.Epoch, f.Last = u.epoch, u.last
	if u.wrong.sweepReadsFirst {
		return u.wrongSweepFacts(ctx, f)
	}
	if err := u.listPacks(ctx); err != nil {
		return f, 0, err
	}
	f.Packs, foreign = u.stored, u.foreign
	f.Named, err = u.named(ctx)
	if u.wrong.sweepUndecided {
		f.Last = math.MaxUint64
	}
	return f, foreign, err
}

// wrongSweepFacts reads the commits first, and goes by what had landed when the packs were listed. See mutants.
func (u *upkeepRun) wrongSweepFacts(ctx context.Context, f repository.SweepFacts) (_ repository.SweepFacts, foreign int64, err error) {
	if f.Named, err = u.named(ctx); err != nil {
		return f, 0, err
	}
	if f.Packs, foreign, err = u.packs(ctx); err != nil {
		return f, 0, err
	}
	numbers, err := u.numbers(ctx, repository.CommitPrefix(u.prefix), repository.ParseCommitKey)
	if err == nil && len(numbers) > 0 {
		f.Last = numbers[len(numbers)-1]
	}
	return f, foreign, err
}

// listPacks lists the packs, once a run.
func (u *upkeepRun) listPacks(ctx context.Context) (err error) {
	if !u.packsListed {
		u.stored, u.foreign, err = u.packs(ctx)
		u.packsListed = err == nil
	}
	return err
}

// packs lists the packs, and counts what lies between them.
func (u *upkeepRun) packs(ctx context.Context) (packs []repository.StoredPack, foreign int64, err error) {
	objects, _, err := u.objects(ctx, repository.PackPrefix(u.prefix), listPackSize)
	for _, obj := range objects {
		id, err := repository.ParsePackKey(u.prefix, obj.Key)
		if err != nil {
			foreign++
			continue
		}
		packs = append(packs, repository.StoredPack{ID: id, Size: obj.Size})
	}
	return packs, foreign, err
}

// named are the packs that commits name. A dry run takes the commits that it would have deleted for deleted.
func (u *upkeepRun) named(ctx context.Context) (map[repository.PackID]struct{}, error) {
	rows, err := u.commits(ctx)
	if err != nil {
		return nil, err
	}
	gone := map[uint64]bool{}
	if u.req.DryRun {
		for _, v := range u.report.Verdicts {
			gone[v.Number] = !v.Keep
		}
	}
	named := map[repository.PackID]struct{}{}
	for _, row := range rows {
		if gone[row.facts.Number] {
			continue
		}
		for _, id := range row.packs {
			named[id] = struct{}{}
		}
	}
	return named, nil
}

func (u *upkeepRun) deletePacks(ctx context.Context, condemned []repository.StoredPack) error {
	keys, size := make([]string, len(condemned)), map[string]int64{}
	for i, p := range condemned {
		keys[i] = repository.PackKey(u.prefix, p.ID)
		size[keys[i]] = p.Size
	}
	troubles := len(u.trouble)
	gone, err := u.deleteAll(ctx, "packs", keys)
	u.report.Sweep.Swept = int64(len(gone))
	for _, key := range gone {
		u.report.Sweep.SweptBytes += size[key]
	}
	left := len(u.trouble) > troubles || u.report.Sweep.More || u.report.Sweep.Undecided > 0
	u.memo.swept, u.memo.failures = err == nil && !left, u.failures
	return err
}
