package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/sdk/client"
)

type incarnationInput struct {
	PipelineName
	Incarnation string `query:"incarnation_uuid" format:"uuid" doc:"Refuse to answer for another run of the pipeline than this."`
}

func (r *routes) checkpoints() {
	create := r.operation(http.MethodPost, "/v0/pipelines/{name}/checkpoint", "createCheckpoint", "Ask for a local checkpoint of the state as it is now", http.StatusOK)
	act(r, create, func(ctx context.Context, p Pipeline, _ *PipelineName) (*body[client.CheckpointStarted], error) {
		started, err := p.Checkpoint(ctx)
		return &body[client.CheckpointStarted]{started}, err
	})
	status := r.operation(http.MethodGet, "/v0/pipelines/{name}/checkpoint_status", "getCheckpointStatus", "How far the requested checkpoints are", http.StatusOK)
	act(r, status, func(_ context.Context, p Pipeline, in *incarnationInput) (*body[client.CheckpointStatus], error) {
		return &body[client.CheckpointStatus]{p.CheckpointStatus()}, in.check(p)
	})
	get(r, "/v0/pipelines/{name}/checkpoints", "listCheckpoints", "Local checkpoints, newest last", func(ctx context.Context, p Pipeline) ([]client.CheckpointView, error) {
		return p.Checkpoints(ctx)
	})
	remote := r.operation(http.MethodGet, "/v0/pipelines/{name}/checkpoints/remote", "listRemoteCheckpoints", "Checkpoints on the targets, newest last; reads the targets", http.StatusOK)
	act(r, remote, func(ctx context.Context, p Pipeline, in *targetInput) (*body[[]client.CheckpointView], error) {
		views, err := p.RemoteCheckpoints(ctx, in.Target)
		return &body[[]client.CheckpointView]{views}, err
	})
}

// check refuses a stale incarnation: sequence numbers of one run mean nothing in another.
func (in *incarnationInput) check(p Pipeline) error {
	if in.Incarnation == "" {
		return nil
	}
	requested, err := uuid.Parse(in.Incarnation)
	if err != nil {
		return Errorf(http.StatusBadRequest, client.CodeBadRequest, "incarnation_uuid: %v", err)
	}
	if expected := p.Incarnation(); requested != expected {
		return Errorf(http.StatusBadRequest, client.CodeIncarnationMismatch, "pipeline %q has been started anew: ask again without incarnation_uuid, or with %s", in.Name, expected).
			With("requested", requested).With("expected", expected)
	}
	return nil
}
