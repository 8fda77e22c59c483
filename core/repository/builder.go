package repository

import (
	"fmt"
	"slices"
)

// Builder assigns the new chunks of one push attempt to packs, in the order in which they are added, and then writes the commit's
// tables. Stored lengths are known only after compression, so the caller adds each chunk when it has it. Not for concurrent use.
type Builder struct {
	plan    *PushPlan
	epoch   uint64
	number  uint64
	lengths map[Digest]int64
	placed  map[Digest]placement
	packs   []packState
}

type packState struct {
	size   int64
	sealed bool
	id     PackID
}

type placement struct {
	pack     int
	offset   int64
	length   int64
	encoding Encoding
}

// NewBuilder begins the packs of one attempt: those of the given epoch that aims at the given commit number. An attempt that finds its
// number taken begins again with a new Builder.
func NewBuilder(plan *PushPlan, epoch, number uint64) *Builder {
	b := &Builder{
		plan: plan, epoch: epoch, number: number,
		lengths: make(map[Digest]int64, len(plan.New)),
		placed:  make(map[Digest]placement, len(plan.New)),
	}
	for _, c := range plan.New {
		b.lengths[c.Digest] = c.Length
	}
	return b
}

// Add places a new chunk of the given stored length and says where: the index of a pack, counted from 0 in the order they are begun, and
// the offset in it. A pack index above the last one's means that the pack before is full: the caller closes and seals it.
func (b *Builder) Add(digest Digest, encoding Encoding, storedLen int64) (pack int, offset int64, err error) {
	length, planned := b.lengths[digest]
	if !planned {
		return 0, 0, fmt.Errorf("chunk %s: not planned as new", digest)
	}
	if _, dup := b.placed[digest]; dup {
		return 0, 0, fmt.Errorf("chunk %s: added twice", digest)
	}
	if err := checkStored(encoding, storedLen, length); err != nil {
		return 0, 0, fmt.Errorf("chunk %s: %w", digest, err)
	}
	last := len(b.packs) - 1
	if last < 0 || b.packs[last].sealed || b.packs[last].size+storedLen > MaxPack {
		b.packs = append(b.packs, packState{})
		last++
	}
	offset = b.packs[last].size
	b.packs[last].size += storedLen
	b.placed[digest] = placement{pack: last, offset: offset, length: storedLen, encoding: encoding}
	return last, offset, nil
}

// Packs is the number of packs begun.
func (b *Builder) Packs() int { return len(b.packs) }

// PackSize is the length of a pack so far.
func (b *Builder) PackSize(pack int) int64 { return b.packs[pack].size }

// Seal gives a finished pack its name from the SHA-256 of its bytes; nothing is added to it any more.
func (b *Builder) Seal(pack int, sum Digest) (PackID, error) {
	if pack < 0 || pack >= len(b.packs) || b.packs[pack].sealed {
		return PackID{}, fmt.Errorf("seal pack %d of %d: not open", pack, len(b.packs))
	}
	id := PackID{Epoch: b.epoch, Number: b.number, SHA256: sum}
	b.packs[pack].sealed, b.packs[pack].id = true, id
	return id, nil
}

// Tables gives the commit's Packs and Files: the parent's packs that are still used and the new ones, in one ascending table. The same plan
// and the same packs give the same tables. Every planned chunk must have been added and every pack sealed.
func (b *Builder) Tables() ([]PackID, []File, error) {
	if len(b.placed) != len(b.plan.New) {
		return nil, nil, fmt.Errorf("%d of %d new chunks added", len(b.placed), len(b.plan.New))
	}
	for i, p := range b.packs {
		if !p.sealed {
			return nil, nil, fmt.Errorf("pack %d of %d is not sealed", i, len(b.packs))
		}
	}
	packs, index := b.packTable()
	files := make([]File, len(b.plan.Files))
	for i, f := range b.plan.Files {
		files[i] = File{Path: f.Path, Size: f.Size, Mode: f.Mode, Chunks: make([]Chunk, len(f.Chunks))}
		for j, sum := range f.Chunks {
			files[i].Chunks[j] = b.chunk(Digest(sum), index)
		}
	}
	return packs, files, nil
}

func (b *Builder) chunk(d Digest, index map[PackID]int) Chunk {
	if _, hole := b.plan.holes[d]; hole {
		return Chunk{Pack: NoPack, Encoding: Hole, Digest: d}
	}
	at := b.where(d)
	return Chunk{Pack: index[at.pack], Offset: at.offset, Stored: at.length, Encoding: at.encoding, Digest: d}
}

func (b *Builder) where(d Digest) stored {
	if p, ok := b.placed[d]; ok {
		return stored{pack: b.packs[p.pack].id, offset: p.offset, length: p.length, encoding: p.encoding}
	}
	return b.plan.stored[d]
}

// packTable lists the packs that the files use.
func (b *Builder) packTable() ([]PackID, map[PackID]int) {
	index := make(map[PackID]int)
	for _, f := range b.plan.Files {
		for _, sum := range f.Chunks {
			if _, hole := b.plan.holes[sum]; !hole {
				index[b.where(sum).pack] = 0
			}
		}
	}
	packs := make([]PackID, 0, len(index))
	for id := range index {
		packs = append(packs, id)
	}
	slices.SortFunc(packs, PackID.Compare)
	for i, id := range packs {
		index[id] = i
	}
	return packs, index
}

// checkStored holds for every chunk in a pack: raw is as long as the chunk, zstd is shorter.
func checkStored(encoding Encoding, storedLen, length int64) error {
	switch encoding {
	case Raw:
		if storedLen != length {
			return fmt.Errorf("raw of %d bytes stored as %d", length, storedLen)
		}
	case Zstd:
		if storedLen <= 0 || storedLen >= length {
			return fmt.Errorf("zstd of %d bytes stored as %d: only what gets shorter is compressed", length, storedLen)
		}
	default:
		return fmt.Errorf("encoding %q in a pack", string(encoding))
	}
	return nil
}
