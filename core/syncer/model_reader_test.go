package syncer

import (
	"context"
	"errors"
	"strings"

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

// newestFor reads the newest commit as DESIGN section 7 tells readers to: the commit's body first, then gc.
func newestFor(ctx context.Context, t sdk.Target, codec commitCodec) (*repository.Commit, error) {
	numbers, err := numbersOf(ctx, t, repository.CommitPrefix(modelPrefix), repository.ParseCommitKey)
	if err != nil {
		return nil, err
	}
	for i := len(numbers) - 1; i >= 0; i-- {
		data, err := readObject(ctx, t, repository.CommitKey(modelPrefix, numbers[i]), repository.MaxCommit)
		if err != nil {
			return nil, err
		}
		c, err := codec.decode(numbers[i], data)
		if err != nil || c.Kind != repository.KindCheckpoint {
			if err != nil {
				return nil, err
			}
			continue
		}
		gc, err := highestGC(ctx, t)
		if err != nil {
			return nil, err
		}
		if !gc.Visible(c.Number) {
			return nil, errors.New("retired meanwhile")
		}
		return c, nil
	}
	return nil, nil
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
