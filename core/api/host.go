package api

import (
	"context"
	"iter"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/sdk/client"
)

// Host is what the API needs of the process. All methods are called concurrently. An error that is an *Error is answered as it is, any
// other as 500.
type Host interface {
	// Pipelines are all configured pipelines in the order of the configuration.
	Pipelines() []Pipeline
	// Ready is nil when every pipeline is in the state that is desired of it.
	Ready() error
}

// Pipeline is one pipeline. Methods that change something return when the request is accepted, not when it is done.
type Pipeline interface {
	Name() string
	View() client.PipelineView
	Stats() client.Stats

	Start(ctx context.Context) error
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
	// Activate makes a standby the primary; it answers when that runs, or when it has failed.
	Activate(ctx context.Context, opts client.ActivateOptions) (client.Activated, error)
	Standby(ctx context.Context) error
	Stop(ctx context.Context, checkpoint bool) error
	Adopt(ctx context.Context, target string) error

	// Incarnation is the running one, or the last that ran; Nil before the first.
	Incarnation() uuid.UUID

	Checkpoint(ctx context.Context) (client.CheckpointStarted, error)
	CheckpointStatus() client.CheckpointStatus
	Checkpoints(ctx context.Context) ([]client.CheckpointView, error)
	// RemoteCheckpoints reads the targets; "" = all of them.
	RemoteCheckpoints(ctx context.Context, target string) ([]client.CheckpointView, error)

	// Verify reads what the targets hold and returns when that is done.
	Verify(ctx context.Context, o client.VerifyOptions) ([]client.VerifyView, error)
	// Repair makes the newest state whole on one target and returns when that is done.
	Repair(ctx context.Context, target string, deep bool) (client.RepairView, error)

	// Sync asks for a push of the newest checkpoint; "" = to every target.
	Sync(ctx context.Context, target string) (client.SyncStarted, error)
	SyncStatus() client.SyncStatus

	// Sweep, Pins, Pin and Unpin mean one target; "" = the only one. They answer when all is done.
	Sweep(ctx context.Context, opts client.SweepOptions) (client.Sweep, error)
	Pins(ctx context.Context, target string) ([]client.Pin, error)
	Pin(ctx context.Context, name string, opts client.PinOptions) (client.Pin, error)
	Unpin(ctx context.Context, target, name string) error

	circuit.Ingester
	circuit.Querier
	// WaitCheckpoint and WaitCommit return when a checkpoint, or a commit on every target, covers the step.
	WaitCheckpoint(ctx context.Context, step uint64) error
	WaitCommit(ctx context.Context, step uint64) error
}

// Rows is a query's answer.
type Rows = iter.Seq2[[]circuit.Column, error]
