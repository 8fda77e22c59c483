package config

// BackendType is the label of a storage block.
type BackendType string

// The backends that are built.
const (
	FileBackend   BackendType = "file"   // checkpoints on local disk; may sync
	MemoryBackend BackendType = "memory" // nothing survives the process
	ObjectBackend BackendType = "object" // checkpoints in a target's repository; the local folder is scratch
)

// Backend is where a pipeline keeps its state.
type Backend struct {
	Type  BackendType
	Path  string // absolute folder; not of memory
	Start Start  // of object: the newest commit
	repos []Sync // the repositories that its checkpoints go to: of file its sync blocks, of object the one
	seed  *Seed
}

// Sync answers whether push_interval and the rest of a sync block apply to this backend, and if so with its sync blocks, in the order
// of the file. It is the one place that decides so: only file-style backends sync, everywhere else a sync block is a fault.
func (b Backend) Sync() ([]Sync, bool) {
	if b.Type != FileBackend {
		return nil, false
	}
	return b.repos, true
}

// Repositories are those that the backend's checkpoints go to, on a schedule or not, in the order of the file. A repository of object storage has no
// interval: each checkpoint is committed there before it counts.
func (b Backend) Repositories() []Sync { return b.repos }

// Seed is where to begin when there is nothing of the pipeline's own; false when no such place is configured.
func (b Backend) Seed() (Seed, bool) {
	if b.seed == nil {
		return Seed{}, false
	}
	return *b.seed, true
}

// Follows is the sync block that a standby pulls from; false when none has a pull_interval.
func (b Backend) Follows() (Sync, bool) {
	blocks, _ := b.Sync() // no blocks where the backend cannot sync
	for _, block := range blocks {
		if block.PullInterval > 0 {
			return block, true
		}
	}
	return Sync{}, false
}
