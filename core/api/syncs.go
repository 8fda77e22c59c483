package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cairnsync/cairn/sdk/client"
)

func (r *routes) syncs() {
	huma.Register(r.api, r.operation(http.MethodPost, "/v0/pipelines/{name}/checkpoint/sync", "syncCheckpoint", "Ask for a push of the newest local checkpoint", http.StatusAccepted),
		func(ctx context.Context, in *targetInput) (*body[client.SyncStarted], error) {
			p, err := r.pipeline(in.Name)
			if err != nil {
				return nil, err
			}
			started, err := p.Sync(ctx, in.Target)
			if err != nil {
				return nil, asError(err)
			}
			return &body[client.SyncStarted]{started}, nil
		})
	huma.Register(r.api, r.operation(http.MethodGet, "/v0/pipelines/{name}/checkpoint/sync_status", "getSyncStatus", "What is safe elsewhere", http.StatusOK),
		func(_ context.Context, in *incarnationInput) (*body[client.SyncStatus], error) {
			p, err := r.incarnation(in)
			if err != nil {
				return nil, err
			}
			return &body[client.SyncStatus]{p.SyncStatus()}, nil
		})
}
