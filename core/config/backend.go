package config

// BackendType is the label of a storage block.
type BackendType string

// The backends that are built.
const (
	FileBackend   BackendType = "file"   // checkpoints on local disk; may sync
	MemoryBackend BackendType = "memory" // nothing survives the process
)

// Backend is where a pipeline keeps its state.
type Backend struct {
	Type  BackendType
	Path  string // absolute folder; file only
	Start Start  // file only
	syncs []Sync
}

// Sync answers whether push_interval and the rest of a sync block apply to this backend, and if so with its sync blocks, in the order
// of the file. It is the one place that decides so: only file-style backends sync, everywhere else a sync block is a fault.
func (b Backend) Sync() ([]Sync, bool) {
	if b.Type != FileBackend {
		return nil, false
	}
	return b.syncs, true
}
