package repository

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// MaxReigns bounds a history. A state gains a reign when it is restored, not when it is pushed.
const MaxReigns = 100_000

// check says what no commit of format 1 may be. It is asked before a commit is written and after it is read.
func (c *Commit) check() error {
	err := errors.Join(
		checkPositive("number", c.Number), checkPositive("epoch", c.Epoch), c.Writer.check(), checkTime("created", c.Created),
		checkText("written_by", c.WrittenBy, MaxWrittenBy),
	)
	if err != nil {
		return err
	}
	if c.Parent.IsZero() != (c.Number == 1) {
		return fmt.Errorf("parent %s of commit %d", c.Parent, c.Number)
	}
	switch c.Kind {
	case KindSeal:
		return c.checkSeal()
	case KindCheckpoint:
		return c.checkCheckpoint()
	default:
		return fmt.Errorf("kind %q", string(c.Kind))
	}
}

func (c *Commit) checkSeal() error {
	cp := c.Checkpoint
	empty := cp.ID == uuid.Nil && cp.Step == 0 && len(cp.History) == 0
	if !empty || len(c.Packs) != 0 || len(c.Files) != 0 || c.Totals != (Totals{}) {
		return errors.New("a seal that holds a checkpoint")
	}
	return nil
}

func (c *Commit) checkCheckpoint() error {
	cp := c.Checkpoint
	err := errors.Join(
		checkID("checkpoint id", cp.ID), checkTime("checkpoint created", cp.Created), checkID("checkpoint incarnation", cp.Incarnation),
		checkText("identity kind", cp.Identity.Kind, MaxIdentityKind), cp.History.check(), c.checkPacks(), checkFiles(c.Files),
	)
	if err != nil {
		return err
	}
	if err := c.checkChunks(); err != nil {
		return err
	}
	if want := TotalsOf(c); c.Totals != want {
		return fmt.Errorf("totals %+v, the files sum to %+v", c.Totals, want)
	}
	return nil
}

func (h History) check() error {
	if len(h) == 0 || len(h) > MaxReigns {
		return fmt.Errorf("history of %d reigns", len(h))
	}
	seen := make(map[uuid.UUID]struct{}, len(h))
	for i, r := range h {
		if _, dup := seen[r.Lineage]; dup || r.Lineage == uuid.Nil {
			return fmt.Errorf("history: lineage %s", r.Lineage)
		}
		seen[r.Lineage] = struct{}{}
		if last := i == len(h)-1; i > 0 && !last && r.UpTo < h[i-1].UpTo {
			return fmt.Errorf("history: lineage %s goes back to step %d", r.Lineage, r.UpTo)
		}
	}
	return nil
}

func (c *Commit) checkPacks() error {
	for i, id := range c.Packs {
		if i > 0 && id.Compare(c.Packs[i-1]) <= 0 {
			return fmt.Errorf("pack %s: out of order or given twice", id)
		}
		if id.Epoch == 0 || id.Epoch > c.Epoch || id.Number == 0 || id.Number > c.Number {
			return fmt.Errorf("pack %s: not of an earlier or this attempt", id)
		}
	}
	return nil
}

func (c *Commit) checkChunks() error {
	holes, err := c.holes()
	if err != nil {
		return err
	}
	used := make([]bool, len(c.Packs))
	for _, f := range c.Files {
		for i, ch := range f.Chunks {
			if err := c.checkChunk(ch, f.ChunkLen(i), holes); err != nil {
				return fmt.Errorf("path %q, chunk %d: %w", f.Path, i, err)
			}
			if ch.Encoding != Hole {
				used[ch.Pack] = true
			}
		}
	}
	for i, ok := range used {
		if !ok {
			return fmt.Errorf("pack %s: no chunk lies in it", c.Packs[i])
		}
	}
	return nil
}

// holes checks that each file has the chunks that its size asks for, and gives the digests of the holes among them by length.
func (c *Commit) holes() (map[int64]Digest, error) {
	lengths := make(map[int64]Digest)
	for _, f := range c.Files {
		if f.Size < 0 || int64(len(f.Chunks)) != chunkCount(f.Size) {
			return nil, fmt.Errorf("path %q: %d bytes in %d chunks", f.Path, f.Size, len(f.Chunks))
		}
		for i, ch := range f.Chunks {
			if ch.Encoding == Hole {
				lengths[f.ChunkLen(i)] = Digest{}
			}
		}
	}
	zeroDigests(lengths)
	return lengths, nil
}

func (c *Commit) checkChunk(ch Chunk, length int64, holes map[int64]Digest) error {
	if ch.Encoding == Hole {
		if ch.Pack != NoPack || ch.Offset != 0 || ch.Stored != 0 || ch.Digest != holes[length] {
			return errors.New("a hole that is not one")
		}
		return nil
	}
	if ch.Pack < 0 || ch.Pack >= len(c.Packs) {
		return fmt.Errorf("pack %d of %d", ch.Pack, len(c.Packs))
	}
	if ch.Offset < 0 || ch.Offset > MaxPack-ch.Stored {
		return fmt.Errorf("%d bytes at offset %d of a pack", ch.Stored, ch.Offset)
	}
	return checkStored(ch.Encoding, ch.Stored, length)
}
