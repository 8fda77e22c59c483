package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cairnsync/cairn/sdk/client"
)

// PipelineName is the part of a path that names a pipeline; exported because the HTTP library cannot see into an unexported one.
type PipelineName struct {
	Name string `path:"name" doc:"Name of the pipeline."`
}

type empty struct{}

type body[T any] struct{ Body T }

func (r *routes) pipelines() {
	huma.Register(r.api, r.operation(http.MethodGet, "/v0/pipelines", "listPipelines", "All pipelines", http.StatusOK),
		func(_ context.Context, _ *empty) (*body[[]client.PipelineView], error) {
			views := []client.PipelineView{}
			for _, p := range r.host.Pipelines() {
				views = append(views, p.View())
			}
			return &body[[]client.PipelineView]{views}, nil
		})
	get(r, "/v0/pipelines/{name}", "getPipeline", "One pipeline", func(_ context.Context, p Pipeline) (client.PipelineView, error) { return p.View(), nil })
	get(r, "/v0/pipelines/{name}/stats", "getStats", "Numbers of a pipeline", func(_ context.Context, p Pipeline) (client.Stats, error) { return p.Stats(), nil })

	r.transition("start", "Start a stopped or failed pipeline", Pipeline.Start)
	r.transition("pause", "Pause: no steps, but checkpoints and pushes go on", Pipeline.Pause)
	r.transition("resume", "Resume a paused pipeline", Pipeline.Resume)
	r.transition("activate", "Make a standby the primary; in any other state an illegal transition", Pipeline.Activate)
	r.stop()
	r.adopt()
}

// get registers a call that reads one pipeline.
func get[T any](r *routes, path, id, summary string, read func(context.Context, Pipeline) (T, error)) {
	huma.Register(r.api, r.operation(http.MethodGet, path, id, summary, http.StatusOK),
		func(ctx context.Context, in *PipelineName) (*body[T], error) {
			p, err := r.pipeline(in.Name)
			if err != nil {
				return nil, err
			}
			got, err := read(ctx, p)
			if err != nil {
				return nil, asError(err)
			}
			return &body[T]{got}, nil
		})
}

func (r *routes) transition(verb, summary string, do func(Pipeline, context.Context) error) {
	huma.Register(r.api, r.operation(http.MethodPost, "/v0/pipelines/{name}/"+verb, verb+"Pipeline", summary, http.StatusAccepted),
		func(ctx context.Context, in *PipelineName) (*empty, error) {
			p, err := r.pipeline(in.Name)
			if err != nil {
				return nil, err
			}
			return nil, asError(do(p, ctx))
		})
}

type stopInput struct {
	PipelineName
	Checkpoint bool `query:"checkpoint" default:"true" doc:"false: neither checkpoint nor push first."`
}

func (r *routes) stop() {
	huma.Register(r.api, r.operation(http.MethodPost, "/v0/pipelines/{name}/stop", "stopPipeline", "Checkpoint, push where push_on_shutdown, and stop", http.StatusAccepted),
		func(ctx context.Context, in *stopInput) (*empty, error) {
			p, err := r.pipeline(in.Name)
			if err != nil {
				return nil, err
			}
			return nil, asError(p.Stop(ctx, in.Checkpoint))
		})
}

type targetInput struct {
	PipelineName
	Target string `query:"target" doc:"Name of a target of the pipeline; left out: all of them."`
}

type adoptInput struct {
	PipelineName
	Target string `query:"target" required:"true" doc:"Name of the held target."`
}

func (r *routes) adopt() {
	huma.Register(r.api, r.operation(http.MethodPost, "/v0/pipelines/{name}/adopt", "adoptTarget", "Let pushes go to a held target, on top of the history it has", http.StatusAccepted),
		func(ctx context.Context, in *adoptInput) (*empty, error) {
			p, err := r.pipeline(in.Name)
			if err != nil {
				return nil, err
			}
			return nil, asError(p.Adopt(ctx, in.Target))
		})
}
