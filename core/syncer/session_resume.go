package syncer

import (
	"context"
	"fmt"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
)

// holder reads whose the highest epoch is; nil = none was ever claimed. It takes one listing and one read.
func (s *session) holder(ctx context.Context) (*repository.Epoch, error) {
	numbers, err := s.numbers(ctx, repository.EpochPrefix(s.prefix), repository.ParseEpochKey)
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	highest := numbers[len(numbers)-1]
	data, err := s.get(ctx, repository.EpochKey(s.prefix, highest), repository.MaxSmall)
	if err != nil {
		return nil, fmt.Errorf("look who holds epoch %d: %w", highest, err)
	}
	e, err := repository.DecodeEpoch(highest, data)
	if err != nil {
		return nil, fmt.Errorf("target %q: %w", s.target, err)
	}
	return &e, nil
}

// glance looks, as the opening of a push would, whether our state may go on there; it writes nothing. While the highest epoch is of our storage path
// nobody has taken over, and that is all it asks: a listing and a read.
func (s *session) glance(ctx context.Context, m checkpoint.Manifest) error {
	s.cache, s.gc = map[uint64]known{}, repository.GC{}
	defer func() { s.cache = nil }()
	by, err := s.holder(ctx)
	switch {
	case err != nil:
		return s.lookRefused(ctx, err)
	case by != nil && by.Writer.ID == s.writer.ID, by == nil && s.was == nil:
		return nil
	}
	newest, err := s.survey(ctx)
	if err == nil {
		err = s.displaced(ctx, newest)
	}
	if err == nil {
		err = s.admits(newest, m)
	}
	return err
}

// resume brings the session to ready for maintenance where the highest epoch is of an earlier incarnation of ours, by claiming the next one: exactly
// that, so that whoever comes between is not fenced by it. ErrNoEpoch where it is another's, or there is nothing to maintain.
func (s *session) resume(ctx context.Context, m checkpoint.Manifest) error {
	s.cache, s.gc = map[uint64]known{}, repository.GC{}
	defer func() { s.cache = nil }()
	if s.phase == unclaimed {
		if err := s.resumable(ctx, m); err != nil {
			return err
		}
		if err := s.succeed(ctx); err != nil {
			return err
		}
	}
	if err := s.reign(ctx); err != nil {
		return err
	}
	return s.admits(s.base, m)
}

// resumable looks whether our state may go on there, and whether the store allows it.
func (s *session) resumable(ctx context.Context, m checkpoint.Manifest) error {
	newest, err := s.survey(ctx)
	if err != nil {
		return err
	}
	if newest == nil {
		return fmt.Errorf("target %q: %w, and it holds no checkpoint", s.target, ErrNoEpoch)
	}
	if err := s.displaced(ctx, newest); err != nil {
		return err
	}
	if err := s.admits(newest, m); err != nil {
		return err
	}
	s.base, s.confirmed, s.looked = newest, true, true
	return s.qualify(ctx)
}

// succeed claims the epoch behind our own last one, and no other.
func (s *session) succeed(ctx context.Context) error {
	by, err := s.holder(ctx)
	if err != nil {
		return err
	}
	if by == nil || by.Writer.ID != s.writer.ID {
		return fmt.Errorf("target %q: %w: its newest epoch is not of this storage path, so a push of something new decides: "+
			"nothing is retired, swept or pinned there before", s.target, ErrNoEpoch)
	}
	next := by.Number + 1
	if s.claiming != 0 {
		next = s.claiming // an earlier claim may have landed
	}
	mine, err := s.claimEpoch(ctx, next)
	if err != nil {
		return err
	}
	s.claiming = 0
	if !mine {
		return fmt.Errorf("target %q: %w: another writer has claimed epoch %d just now", s.target, ErrNoEpoch, next)
	}
	s.epoch, s.phase = next, claimed
	return nil
}
