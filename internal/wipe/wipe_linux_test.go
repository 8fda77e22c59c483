package wipe_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cairnsync/cairn/internal/wipe"
)

// With few descriptors to be had a deep nest is removed all the same: the host needs them for other things.
func TestADeepNestTakesNoDescriptors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tree")
	nest(t, path, 100)
	var was syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
	few := syscall.Rlimit{Cur: 40, Max: was.Max}
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	defer func() { must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)) }()
	must(t, wipe.Tree(path, nil))
}
