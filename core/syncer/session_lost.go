package syncer

import (
	"context"
	"fmt"

	"github.com/cairnsync/cairn/core/repository"
)

// readGC reads the highest gc object; the zero GC where there is none. One that was read before is not read again: it never changes.
func (s *session) readGC(ctx context.Context) error {
	for range looks {
		numbers, err := s.numbers(ctx, repository.GCPrefix(s.prefix), repository.ParseGCKey)
		if err != nil {
			return err
		}
		if len(numbers) == 0 {
			s.gc = repository.GC{}
			return nil
		}
		k := numbers[len(numbers)-1]
		if k == s.gc.Number {
			return nil
		}
		data, err := s.get(ctx, repository.GCKey(s.prefix, k), repository.MaxSmall)
		if isNotFound(err) {
			continue // a higher one has come
		}
		if err != nil {
			return err
		}
		if s.gc, err = repository.DecodeGC(k, data); err != nil {
			return fmt.Errorf("target %q: %w", s.target, err)
		}
		return nil
	}
	return fmt.Errorf("target %q: the highest gc object was replaced %d times while it was read", s.target, looks)
}

// aboveGC says whether newest, the newest checkpoint commit of the line, can be that. Retention never hides the newest checkpoint, so one
// stands above all that gc speaks of: a line that ends below has lost its newest commits. A writer who went on there would take numbers
// that gc hides, and report commits that no reader sees.
//
// It holds of a gc object that was read before the commits were listed: should another writer's retention hide what was newest then, it has listed
// a newer one. A gc object that comes after that listing, of a writer whose epoch is over, needs no look: what it was planned by has a checkpoint
// above it too, which lies below our seal.
func (s *session) aboveGC(newest *known) error {
	if s.gc.Number == 0 || newest != nil && newest.Number > s.gc.UpTo {
		return nil
	}
	lost := &HeadLostError{Target: s.target, Prefix: s.prefix, GC: s.gc.Number, UpTo: s.gc.UpTo}
	if newest != nil {
		lost.Newest = newest.Number
	}
	return lost
}

// HeadLostError says that the newest commits of a repository are lost while older ones, or a gc object alone, are still there. It is a
// repository.ErrCorrupt. Nothing was written, or nothing but an epoch; the target is refused until they are put back.
type HeadLostError struct {
	Target, Prefix string
	GC             uint64 // the gc object that proves it
	UpTo           uint64 // it retired commits up to this one, and kept a newer checkpoint
	Newest         uint64 // the newest checkpoint commit that is there; 0 = none
}

func (e *HeadLostError) Error() string {
	left := "no checkpoint is there"
	if e.Newest != 0 {
		left = fmt.Sprintf("the newest checkpoint that is there is commit %d", e.Newest)
	}
	return fmt.Sprintf("target %q: the newest commits below %q are lost: gc %d retired commits up to %d and kept a checkpoint above them, commit %d or a later one, "+
		"and %s: a push would take numbers that readers take for retired, so nothing more is written here: put the objects below %q back as they were, from an "+
		"earlier version in the bucket or a copy of it; or give the target another prefix, where the next push begins a new repository (commits that gc kept "+
		"here can still be restored by number)",
		e.Target, e.Prefix, e.GC, e.UpTo, e.UpTo+1, left, repository.CommitPrefix(e.Prefix))
}

// Unwrap gives repository.ErrCorrupt.
func (e *HeadLostError) Unwrap() error { return repository.ErrCorrupt }
