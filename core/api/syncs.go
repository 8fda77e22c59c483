package api

import (
	"context"
	"net/http"

	"github.com/cairnsync/cairn/sdk/client"
)

func (r *routes) syncs() {
	sync := r.operation(http.MethodPost, "/v0/pipelines/{name}/checkpoint/sync", "syncCheckpoint", "Ask for a push of the newest local checkpoint", http.StatusAccepted)
	act(r, sync, func(ctx context.Context, p Pipeline, in *targetInput) (*body[client.SyncStarted], error) {
		started, err := p.Sync(ctx, in.Target)
		return &body[client.SyncStarted]{started}, err
	})
	status := r.operation(http.MethodGet, "/v0/pipelines/{name}/checkpoint/sync_status", "getSyncStatus", "What is safe elsewhere", http.StatusOK)
	act(r, status, func(_ context.Context, p Pipeline, in *incarnationInput) (*body[client.SyncStatus], error) {
		return &body[client.SyncStatus]{p.SyncStatus()}, in.check(p)
	})
}
