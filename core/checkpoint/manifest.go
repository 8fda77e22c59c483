package checkpoint

import (
	"io/fs"
	"time"

	"github.com/google/uuid"
)

// ChunkSize is the unit of digests, in bytes: the 1 MiB chunk of repository format 1, so that a push needs no second hashing.
const ChunkSize = 1 << 20

// Manifest is checkpoint.json: what a checkpoint is and the digests of all its bytes. It is the only source of digests. Manifests
// are shared; whoever gets one does not modify it.
type Manifest struct {
	ID          uuid.UUID // version 7; also the name of the directory
	Step        uint64    // the last step the state includes
	Created     time.Time // wall clock, for people; nothing is ordered by it
	Incarnation uuid.UUID // the run of the host that wrote it
	Kind        string    // the circuit's kind
	Fingerprint [32]byte  // the circuit's fingerprint
	History     History
	Files       []File // ascending by the bytes of Path
}

// Size is the sum of the sizes of the files, in bytes.
func (m Manifest) Size() int64 {
	var total int64
	for i := range m.Files {
		total += m.Files[i].Size
	}
	return total
}

// File is one regular file of a checkpoint.
type File struct {
	Path   string      // relative, clean, separated by "/"; any bytes but NUL
	Size   int64       // bytes
	Mode   fs.FileMode // permission bits only
	Chunks [][32]byte  // SHA-256 of each ChunkSize piece, the last one shorter; none for an empty file
	Inode  Inode       // where the file lay when it was published: a hint for this machine, meaningless elsewhere
}

// Inode names a state of a file on this machine. A later file with an equal Inode and an equal size has the same content.
type Inode struct {
	Device, Number uint64
	ModifiedNs     int64 // mtime, nanoseconds since the epoch
}

// Meta is what the writer of a checkpoint knows about it.
type Meta struct {
	Step        uint64
	Created     time.Time
	Incarnation uuid.UUID
	Kind        string
	Fingerprint [32]byte
	History     History

	// Expect, when not nil, is what the files must be: paths, sizes and chunks. A pull sets it, and a byte that differs makes Publish
	// fail as corrupt. It need not be sorted; Mode and Inode are not compared.
	Expect []File
}
