package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cairnsync/cairn/sdk/client"
)

// Health answers /healthz and /readyz.
type Health struct {
	Status string `json:"status" enum:"ok"`
}

func (r *routes) health() {
	huma.Register(r.api, r.operation(http.MethodGet, "/healthz", "healthz", "The process answers", http.StatusOK),
		func(_ context.Context, _ *empty) (*body[Health], error) { return &body[Health]{Health{"ok"}}, nil })
	ready := r.operation(http.MethodGet, "/readyz", "readyz", "Every pipeline is in its desired state", http.StatusOK)
	ready.Description = "503 names a pipeline that is not. What a running pipeline has trouble with (an input that has stopped, a target that does not " +
		"answer) changes nothing here, for the rest of it goes on: watch `inputs` and `targets` of the pipeline."
	huma.Register(r.api, ready,
		func(_ context.Context, _ *empty) (*body[Health], error) {
			if err := r.host.Ready(); err != nil {
				return nil, Errorf(http.StatusServiceUnavailable, client.CodeNotRunning, "%v", err)
			}
			return &body[Health]{Health{"ok"}}, nil
		})
}
