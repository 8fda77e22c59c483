package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// lack are the packs that a commit names and that were not there, or not what was written, when it was looked at.
type lack struct {
	commit repository.Digest           // of its stored bytes
	packs  map[repository.PackID]error // why, each
}

// inspect looks whether the packs of base are there, once for each base that the session opens on: a commit may stand in a repository whose packs
// were deleted, or which was wiped and made anew while its create was on the way. What is missing is pushed again from local data.
func (s *session) inspect(ctx context.Context) error {
	if s.base == nil || s.lacks.commit == s.base.sum || s.wrong.packsUnseen {
		return nil
	}
	missing, err := s.absent(ctx, s.base.Packs)
	if err != nil {
		return err
	}
	s.lacks = lack{commit: s.base.sum, packs: missing}
	if len(missing) > 0 {
		s.log.Warn("packs of the newest commit are missing, or not what was written: what they held is pushed again", "target", s.target, "commit", s.base.Number, "packs", len(missing))
	}
	return nil
}

// absent says which of these packs of base are not there, by one listing from the lowest on, and of those that are there and cannot be what was written
// why: a listing tells that by the size.
func (s *session) absent(ctx context.Context, packs []repository.PackID) (map[repository.PackID]error, error) {
	if len(packs) == 0 {
		return nil, nil
	}
	var needs repository.Inventory
	needs.Add(s.base.Commit, false)
	folder, lowest := repository.PackPrefix(s.prefix), slices.MinFunc(packs, repository.PackID.Compare)
	before := repository.PackKey(s.prefix, repository.PackID{Epoch: lowest.Epoch, Number: lowest.Number})
	var missing map[repository.PackID]error
	err := s.calls.do(ctx, "list "+folder, listSize, func(ctx context.Context) error {
		missing = make(map[repository.PackID]error, len(packs))
		for _, id := range packs {
			missing[id] = errNotThere
		}
		for obj, err := range listed(ctx, s.store, sdk.ListRequest{Prefix: folder, StartAfter: before}, maxListed) {
			if err != nil {
				return err
			}
			id, err := repository.ParsePackKey(s.prefix, obj.Key)
			if _, wanted := missing[id]; err != nil || !wanted {
				continue
			}
			if err := needs.CheckSize(id, obj.Size); err != nil {
				missing[id] = err
				continue
			}
			delete(missing, id)
		}
		return nil
	})
	return missing, err
}

var errNotThere = errors.New("it is not there")

// lost says of a pack whether a push must not rely on it.
func (s *session) lost(id repository.PackID) bool {
	_, missing := s.lacks.packs[id]
	return missing || s.unsound.lost(id) || s.damage.spoils(id)
}

// broken says of a commit whether it cannot be restored, as far as is known.
func (s *session) broken(c *known) bool {
	return s.unsound.has(c.Number) || c.sum == s.spoilt || s.lacks.commit == c.sum && len(s.lacks.packs) > 0 || s.damage.breaks(c.Number) || slices.ContainsFunc(c.Packs, s.damage.spoils)
}

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
	lost := &HeadLostError{Target: s.target, Prefix: s.prefix, GC: s.gc.Number, UpTo: s.gc.UpTo, Run: s.commands}
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
	Reading        bool   // a reader has found it, who wanted the newest
	Run            Commands
}

func (e *HeadLostError) Error() string {
	left := "no checkpoint is there"
	if e.Newest != 0 {
		left = fmt.Sprintf("the newest checkpoint that is there is commit %d", e.Newest)
	}
	if e.Reading {
		return fmt.Sprintf("target %q: the newest commits below %q are lost: gc %d retired commits up to %d and kept a checkpoint above them, commit %d or a later one, "+
			"and %s, which is older: it is not taken for the newest state: put the objects below %q back as they were, from an earlier version in the bucket or a copy of it; or, "+
			"if what is lost is given up, restore commit %d by its number (%s, or its checkpoint as start_from_checkpoint)",
			e.Target, e.Prefix, e.GC, e.UpTo, e.UpTo+1, left, repository.CommitPrefix(e.Prefix), e.Newest, e.Run.RestoreNumber(e.Newest))
	}
	return fmt.Sprintf("target %q: the newest commits below %q are lost: gc %d retired commits up to %d and kept a checkpoint above them, commit %d or a later one, "+
		"and %s: a push would take numbers that readers take for retired, so nothing more is written here: put the objects below %q back as they were, from an "+
		"earlier version in the bucket or a copy of it; or give the target another prefix, where the next push begins a new repository (commits that gc kept "+
		"here can still be restored by number)",
		e.Target, e.Prefix, e.GC, e.UpTo, e.UpTo+1, left, repository.CommitPrefix(e.Prefix))
}

// Unwrap gives repository.ErrCorrupt.
func (e *HeadLostError) Unwrap() error { return repository.ErrCorrupt }
