package main

import (
	"context"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

const (
	// tempMaxAge is when the temporary file of a Put is a dead one's: the host gives a Put a few minutes. Should a clock be so wrong that a
	// living one is removed, its Put fails and is tried again.
	tempMaxAge = 24 * time.Hour

	// sweepMax bounds the sweep: a share so slow or so full must not be busy with it for ever. What is left waits for the next process.
	sweepMax = 15 * time.Minute

	// sweepPortion is how many names of a directory are held at once.
	sweepPortion = 1024
)

// sweeper removes, once in the life of a target and beside its calls, the temporary files of Puts that were killed long ago. A listing removes
// those it meets, but nothing lists the packs to the end. It begins with the first call that goes well, so not while a disk is away.
type sweeper struct {
	ctx  context.Context // of the target
	once sync.Once
	work sync.WaitGroup

	mu     sync.Mutex
	cancel context.CancelFunc
}

func newSweeper(ctx context.Context) sweeper {
	ctx, cancel := context.WithCancel(ctx)
	return sweeper{ctx: ctx, cancel: cancel}
}

// begin starts the sweep if it has not been. Age is counted from this moment.
func (s *sweeper) begin(t *target) {
	s.once.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.ctx.Err() != nil {
			return
		}
		dead := t.now().Add(-tempMaxAge)
		s.work.Go(func() {
			ctx, cancel := context.WithTimeout(s.ctx, sweepMax)
			defer cancel()
			t.sweep(ctx, dead)
		})
	})
}

// end stops the sweep and waits for it.
func (s *sweeper) end() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.work.Wait()
}

// sweep removes temporary files older than dead. An error leaves them to the next time: they are only space.
func (t *target) sweep(ctx context.Context, dead time.Time) {
	root, err := t.open()
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }() // it was only looked through
	w := &sweep{ctx: ctx, root: root, dead: dead}
	w.walk(".")
	for _, dir := range w.cleared {
		_ = t.settle(root, dir)
	}
}

// sweep is one walk over all directories.
type sweep struct {
	ctx     context.Context
	root    *os.Root
	dead    time.Time
	cleared []string // directories that lost a file
}

// walk holds one directory open at a time, so it remembers those below.
func (w *sweep) walk(dir string) {
	var below []string
	removed := false
	w.names(dir, func(d fs.DirEntry) {
		name := path.Join(dir, d.Name())
		switch {
		case d.IsDir():
			if sdk.CheckKey(name) == nil {
				below = append(below, name)
			}
		case strings.HasPrefix(d.Name(), tempPrefix) && w.isDead(d):
			removed = w.root.Remove(name) == nil || removed
		}
	})
	for _, name := range below {
		if w.ctx.Err() != nil {
			return
		}
		w.walk(name)
	}
	if removed {
		w.cleared = append(w.cleared, dir)
	}
}

// names gives the entries of a directory, as far as they can be read.
func (w *sweep) names(dir string, each func(fs.DirEntry)) {
	f, err := w.root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	for w.ctx.Err() == nil {
		entries, err := f.ReadDir(sweepPortion)
		for _, d := range entries {
			each(d)
		}
		if err != nil || len(entries) == 0 {
			return
		}
	}
}

func (w *sweep) isDead(d fs.DirEntry) bool {
	info, err := d.Info()
	return err == nil && info.Mode().IsRegular() && info.ModTime().Before(w.dead)
}
