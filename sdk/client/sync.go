package client

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/uuid"
)

// SyncCheckpoint asks for a push of the newest local checkpoint to every target and answers with its id. With wait it returns when that
// checkpoint, or a newer one, is committed on every target that is not fenced, or with the push's error. When the pipeline restarts meanwhile it asks
// again, and answers with the id it then got.
func (c *Client) SyncCheckpoint(ctx context.Context, name string, wait bool) (uuid.UUID, error) {
	for {
		before, err := c.Syncs(ctx, name)
		if err != nil {
			return uuid.Nil, err
		}
		started, err := call[SyncStarted](ctx, c, http.MethodPost, path(name, "/checkpoint/sync"), nil)
		if err != nil || !wait {
			return started.Checkpoint, err
		}
		err = c.poll(ctx, fmt.Sprintf("sync of checkpoint %s of pipeline %q", started.Checkpoint, name), func() (bool, error) {
			status, err := c.syncStatus(ctx, name, started.Incarnation)
			if err != nil {
				return false, err
			}
			return synced(started.Checkpoint, before, status)
		})
		if !is(err, CodeIncarnationMismatch) {
			return started.Checkpoint, err
		}
	}
}

// Syncs is what is safe elsewhere.
func (c *Client) Syncs(ctx context.Context, name string) (SyncStatus, error) {
	return c.syncStatus(ctx, name, uuid.Nil)
}

func (c *Client) syncStatus(ctx context.Context, name string, incarnation uuid.UUID) (SyncStatus, error) {
	return call[SyncStatus](ctx, c, http.MethodGet, path(name, "/checkpoint/sync_status"), incarnationQuery(incarnation))
}

// synced tells whether a checkpoint is safe, judging by the status now and the one before it was asked for. While the request waits or
// runs nothing is told: that the checkpoint was committed once says nothing of a target that has gone since. Then its failure counts, unless
// it stood there before; then a commit of it or of a newer one, for ids are uuid v7 that rise with every checkpoint of a pipeline.
func synced(id uuid.UUID, before, now SyncStatus) (bool, error) {
	if pending(id, now) {
		return false, nil
	}
	if failure := now.Failure; failure != nil && bytes.Compare(failure.UUID[:], id[:]) >= 0 && !same(before.Failure, failure) {
		return false, fmt.Errorf("sync of checkpoint %s: %s", failure.UUID, failure.Error)
	}
	newest, ok := newestSynced(now)
	return ok && bytes.Compare(newest[:], id[:]) >= 0, nil
}

func same(a, b *SyncFailure) bool {
	return a != nil && a.UUID == b.UUID && a.FailedAt.Equal(b.FailedAt)
}

// pending tells whether a sync of the checkpoint still waits or runs somewhere; a failure that is told meanwhile may be another's.
func pending(id uuid.UUID, now SyncStatus) bool {
	return slices.ContainsFunc(now.Targets, func(t TargetSync) bool { return equal(t.Running, id) || slices.Contains(t.Queued, id) })
}

// Outcome is what became of the sync of one checkpoint.
type Outcome string

// The outcomes.
const (
	Success Outcome = "success" // committed on every target, by a requested or a periodic sync
	Failure Outcome = "failure" // the last requested sync of it failed
	Unknown Outcome = "unknown" // neither: still to come, or of an earlier time than the status tells of
)

// SyncStatus tells what became of the sync of one checkpoint; the error text goes with Failure.
func (c *Client) SyncStatus(ctx context.Context, name string, id uuid.UUID) (Outcome, string, error) {
	status, err := c.Syncs(ctx, name)
	if err != nil {
		return Unknown, "", err
	}
	switch {
	case equal(status.Success, id) || equal(status.Periodic, id):
		return Success, "", nil
	case status.Failure != nil && status.Failure.UUID == id:
		return Failure, status.Failure.Error, nil
	}
	return Unknown, "", nil
}

func equal(got *uuid.UUID, want uuid.UUID) bool { return got != nil && *got == want }

// LastSuccessfulCheckpointSync is the newest checkpoint that is committed on every target, whoever asked for it; ErrNoneSynced when
// there is none.
func (c *Client) LastSuccessfulCheckpointSync(ctx context.Context, name string) (uuid.UUID, error) {
	status, err := c.Syncs(ctx, name)
	if err != nil {
		return uuid.Nil, err
	}
	newest, ok := newestSynced(status)
	if !ok {
		return uuid.Nil, ErrNoneSynced
	}
	return newest, nil
}

func newestSynced(status SyncStatus) (uuid.UUID, bool) {
	switch {
	case status.Success == nil && status.Periodic == nil:
		return uuid.Nil, false
	case status.Success == nil:
		return *status.Periodic, true
	case status.Periodic == nil || bytes.Compare(status.Success[:], status.Periodic[:]) >= 0:
		return *status.Success, true
	}
	return *status.Periodic, true
}
