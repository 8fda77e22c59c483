package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// finding is a pack that is not as the commits say.
type finding struct {
	kind ProblemKind
	pack repository.PackID
	file string
	what string
}

// readPacks checks the packs that the commits name, and reads as much of them as the level says. What is found wrong counts only if a commit
// that needs it still stands afterwards: retention and sweep may be at work.
func (v *verification) readPacks(ctx context.Context) error {
	findings, err := v.listPacks(ctx)
	if err != nil {
		return err
	}
	v.rep.Packs = len(v.inventory.Packs())
	damaged, err := v.readChunks(ctx, findings)
	if err != nil {
		return err
	}
	if findings = append(findings, damaged...); len(findings) == 0 {
		return nil
	}
	gc, err := v.reader.readGC(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(findings, func(a, b finding) int { return a.pack.Compare(b.pack) })
	for _, f := range findings {
		v.judge(f, visible(v.inventory.NamedBy(f.pack), gc))
	}
	return nil
}

func (v *verification) judge(f finding, broken []uint64) {
	if len(broken) == 0 {
		return
	}
	v.rep.bad[f.pack] = struct{}{}
	v.found(Problem{
		Kind: f.kind, Object: repository.PackKey(v.reader.prefix, f.pack), Commits: broken, File: f.file, What: f.what,
		Remedy: v.reader.commands.remedyPack(),
	})
}

// listPacks lists what is there and says what is missing or has another size.
func (v *verification) listPacks(ctx context.Context) ([]finding, error) {
	r := v.reader
	folder := repository.PackPrefix(r.prefix)
	var found []finding
	var seen map[repository.PackID]struct{}
	err := r.calls.do(ctx, "list "+folder, listSize, func(ctx context.Context) error {
		found, seen = nil, map[repository.PackID]struct{}{}
		v.rep.Orphans, v.rep.OrphanBytes = 0, 0
		for obj, err := range listed(ctx, r.store, sdk.ListRequest{Prefix: folder}, maxListed) {
			if err != nil {
				return err
			}
			id, err := repository.ParsePackKey(r.prefix, obj.Key)
			switch {
			case err != nil: // no pack of ours
			case v.inventory.Needs(id):
				seen[id] = struct{}{}
				if err := v.inventory.CheckSize(id, obj.Size); err != nil {
					found = append(found, finding{kind: DamagedPack, pack: id, what: err.Error()})
				}
			case v.req.From == nil && !v.unread && v.decided(id):
				v.rep.Orphans++
				v.rep.OrphanBytes += obj.Size
			}
		}
		return nil
	})
	for _, id := range v.inventory.Packs() {
		if _, there := seen[id]; !there && err == nil {
			found = append(found, finding{kind: MissingPack, pack: id, what: "it is not there"})
		}
	}
	return found, err
}

// decided says that the attempt which wrote a pack is over: no commit that is still to come can name it first.
func (v *verification) decided(id repository.PackID) bool {
	return id.Epoch < v.epoch || id.Epoch == v.epoch && id.Number <= v.head
}

// readChunks reads the chunks that the level asks for, but of packs that are missing or known to be damaged.
func (v *verification) readChunks(ctx context.Context, skip []finding) ([]finding, error) {
	ranges := v.planned()
	lost := make(map[repository.PackID]struct{}, len(skip))
	for _, f := range skip {
		lost[f.pack] = struct{}{}
	}
	ranges = slices.DeleteFunc(ranges, func(r repository.Range) bool { _, gone := lost[r.Pack]; return gone })
	m := &meter{report: v.req.Progress, now: Progress{Commit: v.head}}
	for _, rng := range ranges {
		m.now.Total += rng.Length
	}
	m.add(0)
	var mu sync.Mutex
	var found []finding
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range min(fetchesInFlight, len(ranges)) {
		group.Go(func() error {
			dec, err := newChunkDecoder()
			if err != nil {
				return err
			}
			defer dec.close()
			for i := next.Add(1) - 1; i < int64(len(ranges)); i = next.Add(1) - 1 {
				bad, err := v.checkRange(ctx, ranges[i], dec)
				if err != nil {
					return err
				}
				mu.Lock()
				found = append(found, bad...)
				v.rep.Chunks += len(ranges[i].Chunks)
				v.rep.Bytes += ranges[i].Length
				mu.Unlock()
				m.add(ranges[i].Length)
			}
			return nil
		})
	}
	return found, group.Wait()
}

func (v *verification) planned() []repository.Range {
	switch {
	case v.req.Level == VerifyMetadata || v.rep.Newest == nil:
		return nil
	case v.req.Level == VerifySample:
		return v.inventory.Sample(v.req.Fraction, v.req.Seed, v.rep.Newest.Number)
	}
	return v.inventory.All()
}

// checkRange reads one range and checks its chunks; the first that stays damaged is the finding.
func (v *verification) checkRange(ctx context.Context, rng repository.Range, dec *chunkDecoder) ([]finding, error) {
	fetch := rangeFetch{reader: v.reader, spool: v.req.Spool}
	bad, err := fetch.chunks(ctx, rng, dec, func(repository.ChunkRead, []byte) error { return nil })
	switch {
	case isNotFound(err):
		return []finding{{kind: MissingPack, pack: rng.Pack, what: "it is listed, and cannot be read: " + err.Error()}}, nil
	case sdk.CodeOf(err) == sdk.Corrupt && ctx.Err() == nil && !errors.Is(err, context.Canceled):
		return []finding{{kind: DamagedPack, pack: rng.Pack, what: err.Error()}}, nil
	case err != nil || bad == nil:
		return nil, err
	}
	use := v.inventory.Use(rng.Pack, bad.chunk)
	return []finding{{
		kind: DamagedPack, pack: rng.Pack, file: use.File,
		what: fmt.Sprintf("the chunk of %d bytes at offset %d is damaged: %s", bad.chunk.Stored, bad.chunk.Offset, bad.reason),
	}}, nil
}
