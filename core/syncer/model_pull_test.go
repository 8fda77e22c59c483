package syncer

import (
	"context"
	"slices"
	"time"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// pulled is a restore into memory: the reader's own code finds the commit, plans the reads, checks each chunk and looks again when a pack is
// gone; only the writing of files is left out.
type pulled struct {
	commit *repository.Commit
	files  map[string][]byte
}

// reader is a Reader each call of which is tried once.
func (w *world) reader(t sdk.Target) (*Reader, error) {
	r, err := NewReader(ReaderConfig{Target: "t", Prefix: modelPrefix, Store: Direct(t), RetryBudget: time.Nanosecond, Now: time.Now})
	if err != nil {
		return nil, err
	}
	r.decode = w.checker.codec.decode
	return r, nil
}

// pull restores the selected commit.
func (w *world) pull(ctx context.Context, t sdk.Target, sel Selector) (*pulled, error) {
	r, err := w.reader(t)
	if err != nil {
		return nil, err
	}
	got := &pulled{}
	err = r.onCommit(ctx, sel, func(c *repository.Commit) (err error) {
		got.commit = c
		got.files, err = w.stage.fetch(ctx, r, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

// fetch reads the files of a commit.
func (s *stage) fetch(ctx context.Context, r *Reader, c *repository.Commit) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, f := range c.Files {
		files[f.Path] = make([]byte, f.Size) // holes are zeros
	}
	for _, rng := range repository.PlanRestore(c, nil).Ranges {
		req := sdk.GetRequest{Key: repository.PackKey(r.prefix, rng.Pack), Offset: rng.Offset, Length: rng.Length}
		var stored []byte
		err := r.calls.do(ctx, "read "+req.Key, rng.Length, func(ctx context.Context) (err error) {
			stored, err = readRange(ctx, r.store, req, rng.Length)
			return err
		})
		if isNotFound(err) {
			return nil, &goneError{commit: c.Number, pack: rng.Pack, err: err}
		}
		if err != nil {
			return nil, err
		}
		for _, ch := range rng.Chunks {
			from := ch.Offset - rng.Offset
			raw, reason := s.dec.decode(ch, stored[from:from+ch.Stored])
			if reason != "" {
				return nil, r.corrupt("chunk %s: %s", ch.Digest, reason)
			}
			for _, p := range ch.Places {
				copy(files[c.Files[p.File].Path][p.Index*repository.ChunkSize:], raw)
			}
		}
	}
	return files, nil
}

// visitor is somebody beside the hosts who uses the store: one that reads, one that pins.
type visitor struct {
	*machine
	done chan struct{}
}

func (v *visitor) ended() bool {
	select {
	case <-v.done:
		return true
	default:
		return false
	}
}

func (v *visitor) start(task func()) {
	v.done = make(chan struct{})
	go func() {
		defer close(v.done)
		task()
	}()
}

// reads restores now and then as any other machine would: the newest commit, one of those it has listed, one as of a time.
func (w *world) reads(ctx context.Context, v *visitor) {
	g := gate{w: w, on: v.machine, actor: v.name}
	for round := range 6 {
		var before []mark
		var kind int
		if !w.turn(ctx, v.machine, v.name, "asks", func() { before, kind = w.checker.reported(), w.rng.IntN(4) }) {
			return
		}
		if round == 0 || kind < 2 {
			got, err := w.pull(ctx, g, Selector{})
			w.checker.pulled(w, v.name, got, err, before)
			continue
		}
		r, err := w.reader(g)
		if err != nil {
			w.checker.violation("%v", err)
			return
		}
		list, err := r.ListCommits(ctx)
		w.checker.listed(w, v.name, list, err, before)
		if err != nil || len(list) == 0 {
			continue
		}
		var one CommitInfo
		if !w.turn(ctx, v.machine, v.name, "chooses", func() { one = list[w.rng.IntN(len(list))] }) {
			return
		}
		sel := Selector{Number: one.Number}
		if kind == 3 {
			sel = Selector{AsOf: one.Checkpoint.Created}
		}
		got, err := w.pull(ctx, g, sel)
		w.checker.pulled(w, v.name, got, err, nil)
	}
}

// keepsTwo is what a standby has: the newest copy and the one before.
type keepsTwo []*pulled

func (k *keepsTwo) add(p *pulled) {
	if n := len(*k); n == 0 || (*k)[n-1].commit.Checkpoint.ID != p.commit.Checkpoint.ID {
		*k = append(*k, p)
	}
	*k = slices.Delete(*k, 0, max(0, len(*k)-2))
}

func (k keepsTwo) newest() *pulled {
	if len(k) == 0 {
		return nil
	}
	return k[len(k)-1]
}
