package repository

import (
	"cmp"
	"slices"
)

// The shape of a restore's reads. A request costs about as much as 6.5 MB of transfer on S3 (FACTS: 75 ms at 87 MB/s), so reading
// through a gap of 1 MiB is far cheaper than a second request.
const (
	MaxGap = 1 << 20 // bytes between two needed chunks that are read and thrown away rather than asked around
)

// Place is where a chunk belongs: chunk Index of file File.
type Place struct{ File, Index int }

// ChunkRead is one stored chunk and every place that waits for it.
type ChunkRead struct {
	Offset   int64 // from the beginning of the pack
	Stored   int64
	Length   int64 // decoded
	Encoding Encoding
	Digest   Digest
	Places   []Place // ascending; at least one in a restore, none in a verification
}

// Range is one read of a pack. Its chunks ascend by offset and lie inside it.
type Range struct {
	Pack           PackID
	Offset, Length int64
	Chunks         []ChunkRead
}

// RestorePlan is what must be read of a repository to have a commit's files.
type RestorePlan struct {
	Ranges []Range // by pack, then offset
	Bytes  int64   // sum of the lengths of Ranges
	Chunks int     // in all Ranges
}

// PlanRestore plans the reads for a commit. have answers which places are filled already; nil = none. Holes are never read. Each digest is
// read once, however many places need it.
func PlanRestore(c *Commit, have func(Place) bool) RestorePlan {
	needed := make(map[Digest]*packRead)
	var reads []*packRead
	for i, f := range c.Files {
		for j, ch := range f.Chunks {
			at := Place{File: i, Index: j}
			if ch.Encoding == Hole || have != nil && have(at) {
				continue
			}
			r, ok := needed[ch.Digest]
			if !ok {
				r = &packRead{pack: ch.Pack, ChunkRead: ChunkRead{
					Offset: ch.Offset, Stored: ch.Stored, Length: f.ChunkLen(j), Encoding: ch.Encoding, Digest: ch.Digest,
				}}
				needed[ch.Digest] = r
				reads = append(reads, r)
			}
			r.Places = append(r.Places, at)
		}
	}
	return mergeReads(c.Packs, reads, MaxGap)
}

type packRead struct {
	pack int
	ChunkRead
}

// mergeReads makes ranges of single reads; a gap of at most maxGap bytes is read through.
func mergeReads(packs []PackID, reads []*packRead, maxGap int64) RestorePlan {
	slices.SortFunc(reads, func(a, b *packRead) int { return cmp.Or(cmp.Compare(a.pack, b.pack), cmp.Compare(a.Offset, b.Offset)) })
	plan := RestorePlan{Chunks: len(reads)}
	last := -1 // pack of the last range
	for _, r := range reads {
		if n := len(plan.Ranges); n > 0 && r.pack == last {
			open := &plan.Ranges[n-1]
			if end := open.Offset + open.Length; r.Offset <= end+maxGap {
				open.Length = max(end, r.Offset+r.Stored) - open.Offset
				open.Chunks = append(open.Chunks, r.ChunkRead)
				continue
			}
		}
		last = r.pack
		plan.Ranges = append(plan.Ranges, Range{Pack: packs[r.pack], Offset: r.Offset, Length: r.Stored, Chunks: []ChunkRead{r.ChunkRead}})
	}
	for _, r := range plan.Ranges {
		plan.Bytes += r.Length
	}
	return plan
}
