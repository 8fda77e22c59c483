package api

import (
	"context"
	"net/http"

	"github.com/cairnsync/cairn/sdk/client"
)

type verifyInput struct {
	PipelineName
	Target string  `query:"target" doc:"Name of a target of the pipeline; left out: all of them."`
	Sample float64 `query:"sample" minimum:"0" maximum:"1" doc:"Fraction of the chunks to read and check, the newest commit among them; 0: none."`
	Deep   bool    `query:"deep" doc:"Read and check every chunk, in place of a sample."`
	Newest bool    `query:"newest" doc:"Only the newest commit, and keep no proof."`
}

type repairInput struct {
	PipelineName
	Target string `query:"target" required:"true" doc:"Name of the target."`
	Deep   bool   `query:"deep" doc:"Read and check every chunk of the newest commit first; otherwise presence and sizes decide."`
}

func (r *routes) remote() {
	verify := r.operation(http.MethodPost, "/v0/pipelines/{name}/remote/verify", "verifyRemote",
		"Verify what the targets hold; answers when it is done, and writes nothing there", http.StatusOK)
	act(r, verify, func(ctx context.Context, p Pipeline, in *verifyInput) (*body[[]client.VerifyView], error) {
		views, err := p.Verify(ctx, client.VerifyOptions{Target: in.Target, Sample: in.Sample, Deep: in.Deep, Newest: in.Newest})
		return &body[[]client.VerifyView]{views}, err
	})
	repair := r.operation(http.MethodPost, "/v0/pipelines/{name}/remote/repair", "repairRemote",
		"Where the newest commit of a target is broken, commit the newest local checkpoint anew; answers when it is done", http.StatusOK)
	act(r, repair, func(ctx context.Context, p Pipeline, in *repairInput) (*body[client.RepairView], error) {
		view, err := p.Repair(ctx, in.Target, in.Deep)
		return &body[client.RepairView]{view}, err
	})
}
