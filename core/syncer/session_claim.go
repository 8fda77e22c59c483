package syncer

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// claimRounds bounds how many claims of others may come between ours: each round somebody else has succeeded.
const claimRounds = 64

// claim makes the next epoch ours by creating it. Nothing that was read before counts afterwards.
func (s *session) claim(ctx context.Context) error {
	if err := s.createFormat(ctx); err != nil {
		return err
	}
	epochs, err := s.numbers(ctx, repository.EpochPrefix(s.prefix), repository.ParseEpochKey)
	if err != nil {
		return err
	}
	next := uint64(1)
	if len(epochs) > 0 {
		next = epochs[len(epochs)-1] + 1
	}
	if s.claiming != 0 {
		next = min(next, s.claiming) // an earlier claim may have landed: its number is asked for first
	}
	for range claimRounds {
		mine, err := s.claimEpoch(ctx, next)
		if err != nil {
			return err
		}
		if mine {
			s.epoch, s.claiming = next, 0
			s.phase = claimed
			return nil
		}
		next++
	}
	return fmt.Errorf("target %q: claim epoch: %d others came first: too many writers", s.target, claimRounds)
}

// claimEpoch creates epoch e and says whether it is ours.
func (s *session) claimEpoch(ctx context.Context, e uint64) (bool, error) {
	body, err := repository.EncodeEpoch(repository.Epoch{
		Number: e, Writer: s.writer, Host: s.host, Started: s.now(), WrittenBy: s.writtenBy,
	})
	if err != nil {
		return false, err
	}
	s.claiming = e
	err = s.create(ctx, repository.EpochKey(s.prefix, e), sdk.ClassMeta, sdk.BytesBody(body))
	switch {
	case err == nil:
		return true, nil
	case !errors.Is(err, sdk.Exists):
		return false, fmt.Errorf("claim epoch %d: %w", e, err)
	}
	data, err := s.get(ctx, repository.EpochKey(s.prefix, e), repository.MaxSmall)
	if err != nil {
		return false, fmt.Errorf("claim epoch %d: read who has it: %w", e, err)
	}
	found, err := repository.DecodeEpoch(e, data)
	if err != nil {
		return false, fmt.Errorf("target %q: %w", s.target, err)
	}
	// An epoch that a session of ours held and lost has commits behind it. It is met when a listing has hidden it.
	return found.Writer == s.writer && e > s.over, nil
}

// createFormat makes FORMAT.json where it is missing. README.txt beside it is a courtesy: its failure is of no consequence.
func (s *session) createFormat(ctx context.Context) error {
	if s.hasFormat {
		return nil
	}
	if s.format.RepositoryID == uuid.Nil {
		id, err := uuid.NewRandom()
		if err != nil {
			return fmt.Errorf("name the repository: %w", err)
		}
		s.format.RepositoryID, s.format.Created = id, s.now()
	}
	f := s.format
	body, err := repository.EncodeFormat(f)
	if err != nil {
		return err
	}
	err = s.create(ctx, repository.FormatKey(s.prefix), sdk.ClassMeta, sdk.BytesBody(body))
	switch {
	case errors.Is(err, sdk.Exists):
		return s.checkFormat(ctx)
	case err != nil:
		return fmt.Errorf("create the repository: %w", err)
	}
	s.hasFormat = true
	_, _ = s.store.Put(ctx, sdk.PutRequest{Key: repository.ReadmeKey(s.prefix), Body: sdk.BytesBody(repository.ReadmeText(f))}) // a courtesy, see above
	return nil
}

// seal closes the line of commits: after the claim it lists them, and creates a seal behind the head. From then on no commit of a lower
// epoch can be created above it, for their writers know only the next number.
func (s *session) seal(ctx context.Context) error {
	if err := s.head(ctx); err != nil {
		return err
	}
	if s.wrong.noSeal {
		s.phase = lined
		return nil
	}
	for s.phase == claimed {
		if err := s.sealAt(ctx, s.last+1); err != nil {
			return err
		}
	}
	return nil
}

// head lists the commits and reads the newest. It asks once more what gc says, and before the seal: a seal that took the number of a commit which
// was lost would stand in the way of putting that back.
func (s *session) head(ctx context.Context) error {
	if err := s.readGC(ctx); err != nil {
		return err
	}
	if !s.wrong.listBeforeClaim {
		numbers, err := s.numbers(ctx, repository.CommitPrefix(s.prefix), repository.ParseCommitKey)
		if err != nil {
			return err
		}
		s.listed = numbers
	}
	newest, err := s.newestCheckpoint(ctx)
	if err != nil {
		return s.vanished(ctx, err)
	}
	if err := s.aboveGC(newest); err != nil {
		return err
	}
	s.last, s.lastSum = 0, repository.Digest{}
	if len(s.listed) == 0 {
		return nil
	}
	c, err := s.read(ctx, s.listed[len(s.listed)-1])
	if err != nil {
		return s.vanished(ctx, err)
	}
	return s.pass(ctx, c)
}

// sealAt tries to create our seal at n; when n is taken it reads why and, behind a commit of an older reign, moves on.
func (s *session) sealAt(ctx context.Context, n uint64) error {
	if s.sealTime.IsZero() || s.wrong.otherSeal {
		s.sealTime = s.now()
	}
	body, err := s.codec.encode(&repository.Commit{
		Number: n, Kind: repository.KindSeal, Epoch: s.epoch, Writer: s.writer, Parent: s.lastSum, Created: s.sealTime, WrittenBy: s.writtenBy,
	})
	if err != nil {
		return err
	}
	err = s.create(ctx, repository.CommitKey(s.prefix, n), sdk.ClassMeta, sdk.BytesBody(body))
	switch {
	case err == nil:
		s.last, s.lastSum, s.phase = n, repository.Sum(body), sealed
		return nil
	case !errors.Is(err, sdk.Exists):
		return fmt.Errorf("seal at commit %d: %w", n, err) // the next job lists again and finds the seal, if it landed
	}
	c, err := s.read(ctx, n)
	if err != nil {
		return s.vanished(ctx, err)
	}
	s.listed = append(s.listed, n)
	return s.pass(ctx, c)
}

// pass takes commit c as the newest of the line: our own seal, one of an older reign to seal behind, or one of a newer reign, which ends ours.
func (s *session) pass(ctx context.Context, c known) error {
	switch {
	case c.Epoch > s.epoch:
		return s.takenOver(ctx, c.Epoch)
	case s.mine(c) && c.Kind == repository.KindSeal:
		s.phase = sealed
	case c.Epoch == s.epoch:
		return fmt.Errorf("target %q: commit %d has our epoch %d and is not our seal: %w", s.target, c.Number, s.epoch, repository.ErrCorrupt)
	}
	s.last, s.lastSum = c.Number, c.sum
	return nil
}
