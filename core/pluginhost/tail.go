package pluginhost

import (
	"slices"
	"sync"
)

// A process's last output is kept for the crash report: a Go panic with its goroutines is 5 to 50 KiB, some hundred lines. Both bounds are
// needed: a line costs memory and time however short it is.
const (
	tailBytes = 64 << 10
	tailLines = 2000
)

// tail keeps the newest lines, at most tailBytes and tailLines of them.
type tail struct {
	mu    sync.Mutex
	lines []string
	size  int
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	t.size += len(line)
	drop := 0
	for ; t.size > tailBytes || len(t.lines)-drop > tailLines; drop++ {
		t.size -= len(t.lines[drop])
	}
	t.lines = slices.Delete(t.lines, 0, drop)
}

// last answers a copy of the newest n lines, oldest first.
func (t *tail) last(n int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.lines[max(0, len(t.lines)-n):])
}
