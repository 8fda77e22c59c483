package syncer

import (
	"context"
	"fmt"

	"github.com/cairnsync/cairn/core/repository"
)

// hold looks whether the epoch is still ours after the seal was created, and whether FORMAT.json stands beside it: a store that was wiped
// after we had seen that file and before the claim holds our epoch and no repository.
func (s *session) hold(ctx context.Context) error {
	if err := s.stillHighest(ctx); err != nil {
		return err
	}
	if err := s.checkFormat(ctx); err != nil {
		return err
	}
	if !s.hasFormat && !s.wrong.ownEpochUnseen {
		return s.vanishedFrom(nil)
	}
	s.phase = lined
	return nil
}

// vanished explains a listed commit that is not there any more: after a takeover it was retired, and this session is over; otherwise the
// next job lists again.
func (s *session) vanished(ctx context.Context, err error) error {
	if !isNotFound(err) {
		return err
	}
	if held := s.stillHighest(ctx); held != nil {
		return held
	}
	return fmt.Errorf("a listed commit is gone and nobody has taken over: %w", err)
}

// stillHighest proves, by one listing, that our epoch is there and none above it. Anything but that proof is an error: what cannot be known
// is not ours. A higher epoch ends the session; a missing one means that the repository is no longer the one that we write.
func (s *session) stillHighest(ctx context.Context) error {
	found, err := s.epochsFrom(ctx, s.epoch)
	if err != nil {
		return fmt.Errorf("look whether epoch %d is still the highest: %w", s.epoch, err)
	}
	if n := len(found); n > 0 && found[n-1].number > s.epoch {
		return s.takenOver(ctx, found[n-1].number)
	}
	if s.wrong.ownEpochUnseen {
		return nil
	}
	if len(found) == 0 {
		return s.vanishedFrom(nil)
	}
	return s.recognise(ctx, found[0])
}

// epochsFrom lists the epochs from e on.
func (s *session) epochsFrom(ctx context.Context, e uint64) ([]listedObject, error) {
	return s.objectsFrom(ctx, repository.EpochPrefix(s.prefix), repository.EpochKey(s.prefix, e-1), repository.ParseEpochKey)
}

// recognise makes sure that the epoch of our number is ours: a repository that was wiped and made anew counts from 1 again. It is read when
// its listing differs from the one that was read before, so once a reign.
func (s *session) recognise(ctx context.Context, e listedObject) error {
	if s.ours.Size == e.object.Size && s.ours.Modified.Equal(e.object.Modified) && s.ours.Key != "" {
		return nil
	}
	data, err := s.get(ctx, repository.EpochKey(s.prefix, s.epoch), repository.MaxSmall)
	switch {
	case isNotFound(err):
		return s.vanishedFrom(nil)
	case err != nil:
		return fmt.Errorf("look whether epoch %d is ours: %w", s.epoch, err)
	}
	found, err := repository.DecodeEpoch(s.epoch, data)
	switch {
	case err != nil:
		return fmt.Errorf("target %q: %w", s.target, err)
	case found.Writer != s.writer:
		return s.vanishedFrom(&found)
	}
	s.ours = e.object
	return nil
}

// vanishedFrom is the error for a repository that is no longer the one whose epoch we hold; by holds that epoch there now, nil = nobody.
func (s *session) vanishedFrom(by *repository.Epoch) error {
	return &VanishedError{Target: s.target, Prefix: s.prefix, Epoch: s.epoch, By: by}
}

// fenced ends the session. data is the epoch object of the one that took over; when it cannot be read the number alone is told.
func (s *session) fenced(epoch uint64, data []byte) error {
	by, err := repository.DecodeEpoch(epoch, data)
	if err != nil {
		by = repository.Epoch{Number: epoch}
	}
	s.fence = &FencedError{Target: s.target, Epoch: s.epoch, By: by, Run: s.commands}
	return s.fence
}

// takenOver ends the session because there is a higher epoch, of which an object or a commit was seen.
func (s *session) takenOver(ctx context.Context, epoch uint64) error {
	data, err := s.get(ctx, repository.EpochKey(s.prefix, epoch), repository.MaxSmall)
	if err != nil {
		data = nil // the number alone is proof; who it was stays unknown
	}
	return s.fenced(epoch, data)
}

// mine says whether a commit was made by this session.
func (s *session) mine(c known) bool { return c.Writer == s.writer && c.Epoch == s.epoch }
