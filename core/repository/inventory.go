package repository

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Inventory is what a set of commits needs of a repository: each pack and each chunk once, however many commits share it. It is what a
// verification counts against. Its zero value is empty; it is not for concurrent use.
type Inventory struct {
	packs  map[PackID]*packNeed
	chunks int
}

// packNeed is what the commits need of one pack.
type packNeed struct {
	chunks  map[chunkAt]Use // nil when chunks are not kept
	end     int64           // of the last chunk that is needed
	written int64           // length of the pack, known from the commit that wrote it; 0 = that commit is not among them
	commits []uint64        // in the order they were added
}

// chunkAt is a chunk as commits name it. Two commits that say different things of one offset make two, and one of them will be found wrong.
type chunkAt struct {
	offset, stored int64
	digest         Digest
}

// Use is who needs a chunk.
type Use struct {
	Commit   uint64 // the newest that does
	File     string // a path of that commit
	length   int64
	encoding Encoding
}

// Add takes in what a commit needs; without chunks, only which packs and how long they must be.
func (v *Inventory) Add(c *Commit, chunks bool) {
	if v.packs == nil {
		v.packs = make(map[PackID]*packNeed)
	}
	needs := make([]*packNeed, len(c.Packs))
	for i, id := range c.Packs {
		need, ok := v.packs[id]
		if !ok {
			need = &packNeed{}
			v.packs[id] = need
		}
		need.commits = append(need.commits, c.Number)
		needs[i] = need
	}
	for _, f := range c.Files {
		for j, ch := range f.Chunks {
			if ch.Encoding == Hole {
				continue
			}
			need := needs[ch.Pack]
			need.end = max(need.end, ch.Offset+ch.Stored)
			if chunks {
				v.addChunk(need, ch, Use{Commit: c.Number, File: f.Path, length: f.ChunkLen(j), encoding: ch.Encoding})
			}
		}
	}
	for i, id := range c.Packs {
		if id.Number == c.Number && id.Epoch == c.Epoch { // every chunk of such a pack is one of this commit's
			needs[i].written = needs[i].end
		}
	}
}

func (v *Inventory) addChunk(need *packNeed, ch Chunk, use Use) {
	if need.chunks == nil {
		need.chunks = make(map[chunkAt]Use)
	}
	at := chunkAt{offset: ch.Offset, stored: ch.Stored, digest: ch.Digest}
	known, dup := need.chunks[at]
	if !dup {
		v.chunks++
	}
	if !dup || known.Commit < use.Commit {
		need.chunks[at] = use
	}
}

// Packs are the needed ones, ascending.
func (v *Inventory) Packs() []PackID { return slices.SortedFunc(maps.Keys(v.packs), PackID.Compare) }

// Needs says whether any of the commits names the pack.
func (v *Inventory) Needs(id PackID) bool { return v.packs[id] != nil }

// Chunks is how many distinct chunks are needed, of the commits that were added with theirs.
func (v *Inventory) Chunks() int { return v.chunks }

// NamedBy are the commits that name a pack, ascending.
func (v *Inventory) NamedBy(id PackID) []uint64 {
	need := v.packs[id]
	if need == nil {
		return nil
	}
	numbers := slices.Clone(need.commits)
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// CheckSize judges the listed size of a needed pack: an error says in what it is wrong. While the commit that wrote the pack is among them
// its length is known to the byte; afterwards only how much of it is still needed.
func (v *Inventory) CheckSize(id PackID, size int64) error {
	need := v.packs[id]
	switch {
	case need.written != 0 && size != need.written:
		return fmt.Errorf("%d bytes are there, %d were written", size, need.written)
	case size < need.end:
		return fmt.Errorf("%d bytes are there, the commits need the first %d", size, need.end)
	case size > MaxPack:
		return fmt.Errorf("%d bytes are there, no pack has more than %d", size, MaxPack)
	}
	return nil
}

// Use answers who needs a chunk that Reads has planned.
func (v *Inventory) Use(pack PackID, ch ChunkRead) Use {
	return v.packs[pack].chunks[chunkAt{ch.Offset, ch.Stored, ch.Digest}]
}

// needed is a chunk on its way into a plan.
type needed struct {
	rank uint64
	at   chunkAt
	pack PackID
	use  Use
}

// All plans the reads that check every needed chunk, each pack read once.
func (v *Inventory) All() []Range { return v.plan(v.needed(0), MaxPack) }

// Sample plans the reads that check a part of the needed chunks: the fraction of all of them, and the fraction of those that commit newest
// needs, each rounded up. The same seed picks the same chunks of the same repository.
func (v *Inventory) Sample(fraction float64, seed, newest uint64) []Range {
	all := v.needed(seed)
	slices.SortFunc(all, func(a, b needed) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), bytes.Compare(a.at.digest[:], b.at.digest[:]))
	})
	share := func(n int) int { return min(n, int(math.Ceil(fraction*float64(n)))) }
	picked := all[:share(len(all))]
	var of []needed
	for _, n := range all {
		if n.use.Commit == newest {
			of = append(of, n)
		}
	}
	have := 0
	for _, n := range picked {
		if n.use.Commit == newest {
			have++
		}
	}
	if want := share(len(of)); have < want { // both are in the order of their ranks: those picked are the first of these
		picked = append(slices.Clone(picked), of[have:want]...)
	}
	return v.plan(picked, MaxGap)
}

// needed lists the chunks, each with a number that the seed has drawn for it.
func (v *Inventory) needed(seed uint64) []needed {
	list := make([]needed, 0, v.chunks)
	salt := binary.BigEndian.AppendUint64(nil, seed)
	for id, need := range v.packs {
		for at, use := range need.chunks {
			drawn := Sum(append(salt, at.digest[:]...))
			list = append(list, needed{rank: binary.BigEndian.Uint64(drawn[:]), at: at, pack: id, use: use})
		}
	}
	return list
}

// plan merges chunks into reads; a gap of at most maxGap bytes is read through.
func (v *Inventory) plan(chunks []needed, maxGap int64) []Range {
	table := v.Packs()
	index := make(map[PackID]int, len(table))
	for i, id := range table {
		index[id] = i
	}
	reads := make([]*packRead, len(chunks))
	for i, n := range chunks {
		reads[i] = &packRead{pack: index[n.pack], ChunkRead: ChunkRead{
			Offset: n.at.offset, Stored: n.at.stored, Length: n.use.length, Encoding: n.use.encoding, Digest: n.at.digest,
		}}
	}
	return mergeReads(table, reads, maxGap).Ranges
}
