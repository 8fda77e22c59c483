package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
)

// Checkpoint asks for a local checkpoint of the state as it is now and returns at once.
func (c *Client) Checkpoint(ctx context.Context, name string) (CheckpointStarted, error) {
	return call[CheckpointStarted](ctx, c, http.MethodPost, path(name, "/checkpoint"), nil)
}

// CheckpointStatus tells how far the requested checkpoints are. With an incarnation other than uuid.Nil the host refuses to answer for
// another run of the pipeline.
func (c *Client) CheckpointStatus(ctx context.Context, name string, incarnation uuid.UUID) (CheckpointStatus, error) {
	return call[CheckpointStatus](ctx, c, http.MethodGet, path(name, "/checkpoint_status"), incarnationQuery(incarnation))
}

// CheckpointAndWait asks for a checkpoint and returns when it is published. When the pipeline restarts meanwhile it asks again.
func (c *Client) CheckpointAndWait(ctx context.Context, name string) error {
	for {
		started, err := c.Checkpoint(ctx, name)
		if err != nil {
			return err
		}
		err = c.poll(ctx, fmt.Sprintf("checkpoint of pipeline %q", name), func() (bool, error) {
			status, err := c.CheckpointStatus(ctx, name, started.Incarnation)
			if err != nil {
				return false, err
			}
			return started.done(status)
		})
		if !is(err, CodeIncarnationMismatch) {
			return err
		}
	}
}

// done compares sequence numbers: a later success covers an earlier request, an older failure says nothing of it.
func (s CheckpointStarted) done(status CheckpointStatus) (bool, error) {
	if status.Success != nil && *status.Success >= s.Sequence {
		return true, nil
	}
	if failure := status.Failure; failure != nil && failure.Sequence >= s.Sequence {
		return false, fmt.Errorf("checkpoint: %s", failure.Error)
	}
	return false, nil
}

func incarnationQuery(incarnation uuid.UUID) url.Values {
	if incarnation == uuid.Nil {
		return nil
	}
	return url.Values{"incarnation_uuid": {incarnation.String()}}
}

// poll looks until the answer is yes or an error.
func (c *Client) poll(ctx context.Context, what string, look func() (bool, error)) error {
	every := time.NewTicker(max(c.PollEvery, time.Millisecond))
	defer every.Stop()
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		}
	}
}
