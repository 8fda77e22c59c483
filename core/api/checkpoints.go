package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/cairnsync/cairn/sdk/client"
)

type incarnationInput struct {
	PipelineName
	Incarnation string `query:"incarnation_uuid" format:"uuid" doc:"Refuse to answer for another run of the pipeline than this."`
}

func (r *routes) checkpoints() {
	huma.Register(r.api, r.operation(http.MethodPost, "/v0/pipelines/{name}/checkpoint", "createCheckpoint", "Ask for a local checkpoint of the state as it is now", http.StatusOK),
		func(ctx context.Context, in *PipelineName) (*body[client.CheckpointStarted], error) {
			p, err := r.pipeline(in.Name)
			if err != nil {
				return nil, err
			}
			started, err := p.Checkpoint(ctx)
			if err != nil {
				return nil, asError(err)
			}
			return &body[client.CheckpointStarted]{started}, nil
		})
	huma.Register(r.api, r.operation(http.MethodGet, "/v0/pipelines/{name}/checkpoint_status", "getCheckpointStatus", "How far the requested checkpoints are", http.StatusOK),
		func(_ context.Context, in *incarnationInput) (*body[client.CheckpointStatus], error) {
			p, err := r.incarnation(in)
			if err != nil {
				return nil, err
			}
			return &body[client.CheckpointStatus]{p.CheckpointStatus()}, nil
		})
	get(r, "/v0/pipelines/{name}/checkpoints", "listCheckpoints", "Local checkpoints, newest last", func(ctx context.Context, p Pipeline) ([]client.CheckpointView, error) {
		return p.Checkpoints(ctx)
	})
	huma.Register(r.api, r.operation(http.MethodGet, "/v0/pipelines/{name}/checkpoints/remote", "listRemoteCheckpoints", "Checkpoints on the targets, newest last; reads the targets", http.StatusOK),
		func(ctx context.Context, in *targetInput) (*body[[]client.CheckpointView], error) {
			p, err := r.pipeline(in.Name)
			if err != nil {
				return nil, err
			}
			views, err := p.RemoteCheckpoints(ctx, in.Target)
			if err != nil {
				return nil, asError(err)
			}
			return &body[[]client.CheckpointView]{views}, nil
		})
}

// incarnation finds the pipeline and refuses a stale incarnation: sequence numbers of one run mean nothing in another.
func (r *routes) incarnation(in *incarnationInput) (Pipeline, error) {
	p, err := r.pipeline(in.Name)
	if err != nil || in.Incarnation == "" {
		return p, err
	}
	requested, err := uuid.Parse(in.Incarnation)
	if err != nil {
		return nil, Errorf(http.StatusBadRequest, client.CodeBadRequest, "incarnation_uuid: %v", err)
	}
	if expected := p.Incarnation(); requested != expected {
		return nil, Errorf(http.StatusBadRequest, client.CodeIncarnationMismatch, "pipeline %q has been started anew: ask again without incarnation_uuid, or with %s", in.Name, expected).
			With("requested", requested).With("expected", expected)
	}
	return p, nil
}
