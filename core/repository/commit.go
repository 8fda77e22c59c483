package repository

import (
	"crypto/sha256"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Kind says what a commit is.
type Kind string

// The kinds of commit.
const (
	KindCheckpoint Kind = "checkpoint" // a state that can be restored
	KindSeal       Kind = "seal"       // the first commit of an epoch: no commit of a lower epoch can follow it
)

// Commit is the commit point of a push, or the seal of an epoch. It is self-contained: with its packs it restores a checkpoint.
type Commit struct {
	Number     uint64
	Kind       Kind
	Epoch      uint64
	Writer     Writer
	Parent     Digest // SHA-256 of the stored bytes of commit Number-1; zero for commit 1
	Created    time.Time
	WrittenBy  string
	Checkpoint Checkpoint // zero in a seal
	Totals     Totals     // TotalsOf(commit)
	Packs      []PackID   // ascending, each named by at least one chunk; empty in a seal
	Files      []File     // ascending by path; empty in a seal
}

// Checkpoint is what a commit says about the state it holds.
type Checkpoint struct {
	ID          uuid.UUID // uuid v7, the same as on the local disk
	Step        uint64
	Created     time.Time
	Incarnation uuid.UUID // of the host run that took it
	Identity    Identity  // of the circuit
	History     History   // the last reign is the one that the checkpoint belongs to
}

// Identity says which circuit can use a state.
type Identity struct {
	Kind        string // 1 to 64 bytes
	Fingerprint Digest
}

// Totals are sums over a commit, for lists and progress.
type Totals struct {
	Files  int64 `json:"files"`
	Bytes  int64 `json:"bytes"`  // of the files, holes included
	Stored int64 `json:"stored"` // of the distinct chunks in packs, as stored: what a full restore reads
	New    int64 `json:"new"`    // that part of Stored which lies in packs of this commit's own number
}

// File is one regular file of a checkpoint.
type File struct {
	Path   string      // relative and clean, see CheckPath; any bytes but NUL
	Size   int64       // bytes
	Mode   fs.FileMode // permission bits only
	Chunks []Chunk     // ceil(Size / ChunkSize) of them
}

// ChunkLen is the length of the file's chunk i before encoding.
func (f File) ChunkLen(i int) int64 { return chunkLen(f.Size, i) }

func chunkLen(size int64, i int) int64 { return min(ChunkSize, size-int64(i)*ChunkSize) }

// Encoding says how a chunk is stored; each chunk says it for itself, so that what was written under one setting is read under any.
type Encoding string

// The encodings.
const (
	Raw  Encoding = "raw"  // the bytes themselves
	Zstd Encoding = "zstd" // one zstd frame, shorter than the bytes
	Hole Encoding = "hole" // zeros: nothing is stored
)

// NoPack is the pack index of a hole.
const NoPack = -1

// Chunk is where a piece of a file lies.
type Chunk struct {
	Pack     int   // index into Commit.Packs, NoPack for a hole
	Offset   int64 // in the pack; 0 for a hole
	Stored   int64 // bytes in the pack; 0 for a hole
	Encoding Encoding
	Digest   Digest // SHA-256 of the decoded bytes, holes included
}

// HoleDigest is the SHA-256 of n zeros, n at most ChunkSize.
func HoleDigest(n int64) Digest { return Sum(make([]byte, n)) }

// zeroPiece is how many zeros are hashed at a time: enough that the calls do not count.
const zeroPiece = 16 << 10

// zeroDigests fills in HoleDigest for each length of the map. It hashes the zeros once, however many lengths are asked for:
// a checkpoint of many small files has thousands. The zeros themselves are few: every push and every decoded commit asks.
func zeroDigests(of map[int64]Digest) {
	if len(of) == 0 {
		return
	}
	lengths := slices.Sorted(maps.Keys(of))
	zeros, h, done := make([]byte, min(zeroPiece, lengths[len(lengths)-1])), sha256.New(), int64(0)
	for _, n := range lengths {
		for done < n {
			piece := min(n-done, int64(len(zeros)))
			h.Write(zeros[:piece]) // a hash's Write never fails
			done += piece
		}
		of[n] = Digest(h.Sum(nil))
	}
}

// TotalsOf sums a commit.
func TotalsOf(c *Commit) Totals {
	t := Totals{Files: int64(len(c.Files))}
	type place struct {
		pack   int
		offset int64
	}
	seen := make(map[place]struct{})
	for _, f := range c.Files {
		t.Bytes += f.Size
		for _, ch := range f.Chunks {
			at := place{ch.Pack, ch.Offset}
			if _, dup := seen[at]; dup || ch.Encoding == Hole {
				continue
			}
			seen[at] = struct{}{}
			t.Stored += ch.Stored
			if id := c.Packs[ch.Pack]; id.Epoch == c.Epoch && id.Number == c.Number {
				t.New += ch.Stored
			}
		}
	}
	return t
}
