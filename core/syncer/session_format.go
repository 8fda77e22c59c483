package syncer

import (
	"context"
	"errors"
	"fmt"

	"github.com/cairnsync/cairn/core/repository"
)

// checkFormat reads FORMAT.json, if it exists. One of another pipeline, or of a format that is not known here, is an error.
func (s *session) checkFormat(ctx context.Context) error {
	data, err := s.get(ctx, repository.FormatKey(s.prefix), repository.MaxSmall)
	switch {
	case isNotFound(err):
		s.hasFormat = false
		return nil
	case err != nil:
		return err
	}
	f, err := repository.DecodeFormat(data)
	switch {
	case errors.Is(err, repository.ErrCorrupt):
		return fmt.Errorf("target %q: %w: put that object below %q back as it was, from an earlier version in the bucket or a copy of it", s.target, err, s.prefix)
	case err != nil:
		return fmt.Errorf("target %q: %w", s.target, err)
	}
	if f.PipelineID != s.format.PipelineID {
		return &OwnedError{
			Target: s.target, Prefix: s.prefix, Pipeline: s.format.PipelineID, Name: s.format.PipelineName,
			Owner: f.PipelineID, OwnerName: f.PipelineName,
		}
	}
	s.hasFormat = true
	return nil
}

// formatStands makes sure that FORMAT.json is there, and ours: commits without it are no repository to any reader, however whole they are. That it is
// gone together with our epoch is the error of stillHighest.
func (s *session) formatStands(ctx context.Context) error {
	if s.wrong.formatUnseen {
		return nil
	}
	if err := s.checkFormat(ctx); err != nil || s.hasFormat {
		return err
	}
	if err := s.stillHighest(ctx); err != nil {
		return err
	}
	return s.formatLost()
}

func (s *session) formatLost() error {
	return fmt.Errorf("target %q holds commits below %q but no FORMAT.json: %w: put that object back from an earlier version in the bucket or a copy of it, which makes all of them readable again; "+
		"or give the target another prefix, where the next push begins a new repository",
		s.target, s.prefix, repository.ErrCorrupt)
}
