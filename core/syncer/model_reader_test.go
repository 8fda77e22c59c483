package syncer

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// reader restores the newest commit now and then, as any other machine would.
type reader struct {
	name string
	done chan struct{}
}

func (r *reader) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *reader) run(ctx context.Context, w *world) {
	defer close(r.done)
	for range 4 {
		var before []string
		if !w.turn(ctx, r.name, "asks", func() { before = w.checker.reported() }) {
			return
		}
		c, err := newestFor(ctx, gate{w: w, actor: r.name}, w.checker.codec)
		switch {
		case w.wiped: // what it finds in ruins, and what was reported before, are no longer its matter
		case errors.Is(err, repository.ErrCorrupt):
			w.checker.violation("a reader finds corruption: %v", err)
		case err != nil: // it asks again
		case c != nil:
			w.checker.read(w, c, before)
		case len(before) > 0:
			w.checker.violation("a reader finds no commit, though success was reported before it asked")
		}
	}
}

// newestFor asks a Reader, each call of which is tried once.
func newestFor(ctx context.Context, t sdk.Target, codec commitCodec) (*repository.Commit, error) {
	r, err := NewReader(ReaderConfig{Target: "t", Prefix: modelPrefix, Store: Direct(t), RetryBudget: time.Nanosecond, Now: time.Now})
	if err != nil {
		return nil, err
	}
	r.decode = codec.decode
	head, err := r.Discover(ctx)
	return head.Commit, err
}

func (c *checker) reported() (marks []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for mark := range c.acked {
		marks = append(marks, mark)
	}
	return marks
}

// read: what a reader gets contains all that was reported before it asked.
func (c *checker) read(w *world, commit *repository.Commit, before []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var state string
	for _, f := range commit.Files {
		content, err := c.restore(w.mem, commit, f)
		if err != nil {
			return // a pack is gone: the commit was retired meanwhile, which checkLine watches
		}
		if f.Path == "marks" {
			state = " " + string(content) + " "
		}
	}
	for _, mark := range before {
		if !strings.Contains(state, " "+mark+" ") {
			c.violated("a reader gets commit %d, which lacks %s, reported before it asked", commit.Number, mark)
			return
		}
	}
}
