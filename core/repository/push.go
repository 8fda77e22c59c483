package repository

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Source is one file of the checkpoint to push, with the digest of each ChunkSize piece: a row of its checkpoint.json.
type Source struct {
	Path   string
	Size   int64
	Mode   fs.FileMode
	Chunks [][32]byte
}

// NewChunk is a chunk that no pack of the parent holds. It must be read, checked against its digest, stored and given to Builder.Add.
type NewChunk struct {
	Digest Digest
	Length int64
	File   int // index into PushPlan.Files of the first file that has it
	Index  int // of the chunk in that file; it begins at Index*ChunkSize
}

// PushPlan is the set difference between a checkpoint and the parent commit.
type PushPlan struct {
	Files    []Source   // the checkpoint's files, ascending by path
	New      []NewChunk // each digest once, in the order of Files: reading them in this order reads each file forward
	NewBytes int64      // sum of the lengths of New
	Reused   int64      // chunks found in the parent
	Holes    int64      // chunks of zeros

	stored map[Digest]stored // where the parent has them
	holes  map[Digest]int64  // digests of zeros and their length
}

type stored struct {
	pack     PackID
	offset   int64
	length   int64
	encoding Encoding
}

// PlanPush says what of files is not in parent, which may be nil or a seal: then everything is new. It refuses files that no commit could name.
func PlanPush(parent *Commit, files []Source) (*PushPlan, error) {
	return PlanRepair(parent, files, func(PackID) bool { return false })
}

// PlanRepair is PlanPush for a parent of whose packs some are lost: what only those hold is new.
func PlanRepair(parent *Commit, files []Source, lost func(PackID) bool) (*PushPlan, error) {
	p := &PushPlan{
		Files:  slices.SortedFunc(slices.Values(files), func(a, b Source) int { return strings.Compare(a.Path, b.Path) }),
		stored: storedIn(parent, lost),
		holes:  make(map[Digest]int64),
	}
	rows := make([]File, len(p.Files))
	for i, f := range p.Files {
		rows[i] = File{Path: f.Path, Size: f.Size, Mode: f.Mode}
		if f.Size < 0 || int64(len(f.Chunks)) != chunkCount(f.Size) {
			return nil, fmt.Errorf("path %q: %d bytes in %d chunks, want %d", f.Path, f.Size, len(f.Chunks), chunkCount(f.Size))
		}
	}
	if err := checkFiles(rows); err != nil {
		return nil, err
	}
	p.difference()
	return p, nil
}

func chunkCount(size int64) int64 { return (size + ChunkSize - 1) / ChunkSize }

func (p *PushPlan) difference() {
	lengths := make(map[int64]Digest)
	for _, f := range p.Files {
		for j := range f.Chunks {
			lengths[chunkLen(f.Size, j)] = Digest{}
		}
	}
	zeroDigests(lengths)
	seen := make(map[Digest]struct{})
	for i, f := range p.Files {
		for j, sum := range f.Chunks {
			d, n := Digest(sum), chunkLen(f.Size, j)
			switch _, known := p.stored[d]; {
			case lengths[n] == d:
				p.holes[d] = n
				p.Holes++
			case known:
				p.Reused++
			default:
				if _, dup := seen[d]; dup {
					continue
				}
				seen[d] = struct{}{}
				p.New = append(p.New, NewChunk{Digest: d, Length: n, File: i, Index: j})
				p.NewBytes += n
			}
		}
	}
}

func storedIn(parent *Commit, lost func(PackID) bool) map[Digest]stored {
	if parent == nil {
		return nil
	}
	at := make(map[Digest]stored)
	for _, f := range parent.Files {
		for _, c := range f.Chunks {
			if _, dup := at[c.Digest]; dup || c.Encoding == Hole || lost(parent.Packs[c.Pack]) {
				continue
			}
			at[c.Digest] = stored{pack: parent.Packs[c.Pack], offset: c.Offset, length: c.Stored, encoding: c.Encoding}
		}
	}
	return at
}
