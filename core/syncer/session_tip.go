package syncer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cairnsync/cairn/core/repository"
)

// An epoch that stands does not prove that the commits do: the store may have been put back to an older copy in which the epoch is the same, or
// somebody deleted commits by hand. A push would build on what is gone, and tell success for it. See docs/decisions/0017.

// tipStands makes sure that our epoch stands and, by one listing, that the line ends with the commit that it is known to end with; false when something
// lies above it.
func (s *session) tipStands(ctx context.Context) (bool, error) {
	if err := s.stillHighest(ctx); err != nil {
		return false, err
	}
	if s.last == 0 || s.advisory || s.unsound.has(s.last) || s.wrong.tipUnseen {
		return true, s.tipIsOurs(ctx)
	}
	found, err := s.commitsFrom(ctx, s.last)
	switch {
	case err != nil:
		return false, err
	case len(found) == 0:
		return false, s.putBack(ctx, s.last)
	case found[len(found)-1].number > s.last:
		return false, nil
	case s.tip.same(found[0]):
		return true, nil
	}
	if _, err := s.reads(ctx, s.last, s.lastSum); err != nil {
		return false, err
	}
	s.tip = found[0] // were it damaged: the next commit needs nothing of it
	return true, nil
}

// reads reads commit n, of which the sum of its bytes is known; false when what lies there is damaged. That it is gone, or another, is the error of putBack.
func (s *session) reads(ctx context.Context, n uint64, sum repository.Digest) (whole bool, err error) {
	data, err := s.get(ctx, repository.CommitKey(s.prefix, n), repository.MaxCommit)
	switch {
	case isNotFound(err):
		return false, s.putBack(ctx, n)
	case err != nil:
		return false, fmt.Errorf("look whether commit %d stands: %w", n, err)
	case repository.Sum(data) == sum:
		return true, nil
	}
	if _, err := s.codec.decode(n, data); err == nil {
		return false, s.putBack(ctx, n)
	}
	s.log.Warn("a commit of this host is damaged", "target", s.target, "commit", n)
	return false, nil
}

// tipIsOurs makes sure, where fencing is advisory, that the newest commit of the line is still the one that was made or found: another
// writer may have put its own in that place after ours had been read back. The next commit would stand on nothing.
func (s *session) tipIsOurs(ctx context.Context) error {
	if !s.advisory || s.unsound.has(s.last) {
		return nil
	}
	data, err := s.get(ctx, repository.CommitKey(s.prefix, s.last), repository.MaxCommit)
	switch {
	case err != nil && !isNotFound(err):
		return fmt.Errorf("look whether commit %d stands: %w", s.last, err)
	case err != nil || repository.Sum(data) != s.lastSum:
		return &VanishedError{Target: s.target, Prefix: s.prefix, Epoch: s.epoch, Commit: s.last}
	}
	return nil
}

// baseStands makes sure that the newest checkpoint commit is there. One that this session has just made is listed, with the one below it and the packs
// that were made for it: the store may have been put back while it was made. Any other is read; one that is damaged is broken from then on.
func (s *session) baseStands(ctx context.Context) error {
	if s.wrong.landingUnseen {
		return nil
	}
	n := s.base.Number
	if s.made {
		return s.landed(ctx, n)
	}
	whole, err := s.reads(ctx, n, s.base.sum)
	if err == nil && !whole {
		s.spoilt = s.base.sum
	}
	return err
}

// landed is baseStands for commit n, which this session has made. The packs come first: a store that is put back between the two listings to a state
// that has them and not the commit is noticed by the second.
func (s *session) landed(ctx context.Context, n uint64) error {
	if err := s.packsLanded(ctx, n); err != nil {
		return err
	}
	found, err := s.commitsFrom(ctx, n-1)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(found, func(c listedObject) bool { return c.number == n })
	switch {
	case at < 0:
		return s.putBack(ctx, n)
	case at > 0 && s.tip.number == n-1 && !s.tip.same(found[at-1]): // it may not be what this one was made on
		if _, err := s.reads(ctx, n-1, s.base.Parent); err != nil {
			return err
		}
	}
	if at == 0 && n > 1 && !s.unsound.has(n-1) { // our own retention may have taken the one below, once this one had come
		if err := s.readGC(ctx); err != nil {
			return err
		}
		if s.gc.Visible(n - 1) {
			return s.putBack(ctx, n-1)
		}
	}
	s.tip = found[at]
	if size := found[at].object.Size; size != s.base.size {
		if _, err := s.reads(ctx, n, s.base.sum); err != nil {
			return err // it is another's, where fencing is advisory, or gone
		}
		s.spoilt = s.base.sum
		return s.misstored(repository.CommitKey(s.prefix, n), fmt.Errorf("%d bytes are there, %d were written", size, s.base.size))
	}
	return nil
}

// packsLanded makes sure that the packs which were made for commit n are there, as long as they were written.
func (s *session) packsLanded(ctx context.Context, n uint64) error {
	missing, err := s.absent(ctx, slices.DeleteFunc(slices.Clone(s.base.Packs), func(id repository.PackID) bool { return id.Epoch != s.epoch || id.Number != n }))
	if err != nil {
		return err
	}
	for _, id := range slices.SortedFunc(maps.Keys(missing), repository.PackID.Compare) {
		if errors.Is(missing[id], errNotThere) {
			return s.putBack(ctx, n)
		}
		s.lacks = lack{commit: s.base.sum, packs: missing}
		err = s.misstored(repository.PackKey(s.prefix, id), missing[id])
	}
	return err
}

// misstored gives up the commit that was just made: the next job makes another.
func (s *session) misstored(key string, why error) error {
	s.made = false
	return &MisstoredError{Target: s.target, Key: key, Err: why}
}

// commitsFrom lists the commits from number n on.
func (s *session) commitsFrom(ctx context.Context, n uint64) ([]listedObject, error) {
	found, err := s.objectsFrom(ctx, repository.CommitPrefix(s.prefix), repository.CommitKey(s.prefix, max(n, 1)-1), repository.ParseCommitKey)
	if err != nil {
		return nil, fmt.Errorf("look whether commit %d stands: %w", n, err)
	}
	return found, nil
}

// putBack explains that commit n, or a pack of it, is gone: the repository is another one, is taken over or, where our epoch stands, is what it was
// before.
func (s *session) putBack(ctx context.Context, n uint64) error {
	if err := s.stillHighest(ctx); err != nil {
		return err
	}
	return &VanishedError{Target: s.target, Prefix: s.prefix, Epoch: s.epoch, Commit: n, PutBack: !s.advisory}
}
