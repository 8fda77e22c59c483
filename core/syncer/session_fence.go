package syncer

import (
	"context"
	"fmt"

	"github.com/cairnsync/cairn/core/repository"
)

// hold looks whether the epoch is still ours after the seal was created.
func (s *session) hold(ctx context.Context) error {
	if err := s.stillHighest(ctx); err != nil {
		return err
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

// stillHighest proves that no epoch above ours exists. Anything but a proven absence is an error: what cannot be known is not ours.
func (s *session) stillHighest(ctx context.Context) error {
	data, err := s.get(ctx, repository.EpochKey(s.prefix, s.epoch+1), repository.MaxSmall)
	switch {
	case isNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("look whether epoch %d is still the highest: %w", s.epoch, err)
	}
	return s.fenced(s.epoch+1, data)
}

// fenced ends the session. data is the epoch object of the one that took over; when it cannot be read the number alone is told.
func (s *session) fenced(epoch uint64, data []byte) error {
	by, err := repository.DecodeEpoch(epoch, data)
	if err != nil {
		by = repository.Epoch{Number: epoch}
	}
	s.fence = &FencedError{Target: s.target, Epoch: s.epoch, By: by}
	return s.fence
}

// fencedBy ends the session because of a commit of a higher epoch.
func (s *session) fencedBy(ctx context.Context, c known) error {
	data, err := s.get(ctx, repository.EpochKey(s.prefix, c.Epoch), repository.MaxSmall)
	if err != nil {
		data = nil // the commit alone is proof; who it was stays unknown
	}
	return s.fenced(c.Epoch, data)
}

// mine says whether a commit was made by this session.
func (s *session) mine(c known) bool { return c.Writer == s.writer && c.Epoch == s.epoch }
