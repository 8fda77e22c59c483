package repository

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// Format is FORMAT.json: which repository this is and how it must be read. It is created once and never replaced.
type Format struct {
	RepositoryID uuid.UUID
	PipelineID   uuid.UUID
	PipelineName string // at the time of creation; a pipeline may be renamed
	Created      time.Time
	WrittenBy    string // the version that wrote it, as "cairn 0.1.0"; at most 64 bytes
}

// Writer is one run of one host: commits of the same Writer are attempts of one process.
type Writer struct {
	ID          uuid.UUID `json:"id"`          // the pipeline's storage path that writes, the same after a restart
	Incarnation uuid.UUID `json:"incarnation"` // one run of the host
}

// Epoch is one writer's reign over a repository. Creating it is the claim.
type Epoch struct {
	Number    uint64
	Writer    Writer
	Host      string // the machine's name, for the person who asks who holds the repository; at most 255 bytes
	Started   time.Time
	WrittenBy string
}

// GC says which commits are gone: those at or below UpTo that are not in Kept. The object with the highest number holds.
type GC struct {
	Number    uint64
	Epoch     uint64
	Writer    Writer
	UpTo      uint64
	Kept      []uint64 // ascending, each at or below UpTo
	Created   time.Time
	WrittenBy string
}

// Visible says whether commit n is still there for readers. The zero GC hides nothing.
func (g GC) Visible(n uint64) bool {
	if n > g.UpTo {
		return true
	}
	_, kept := slices.BinarySearch(g.Kept, n)
	return kept
}
