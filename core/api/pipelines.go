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

func (n *PipelineName) pipelineName() string { return n.Name }

// naming is an input that names a pipeline.
type naming[In any] interface {
	*In
	pipelineName() string
}

type empty struct{}

type body[T any] struct{ Body T }

// act registers a call on one pipeline.
func act[In, Out any, P naming[In]](r *routes, op huma.Operation, do func(context.Context, Pipeline, *In) (*Out, error)) {
	huma.Register(r.api, op, func(ctx context.Context, in *In) (*Out, error) {
		p, err := r.pipeline(P(in).pipelineName())
		if err != nil {
			return nil, err
		}
		out, err := do(ctx, p, in)
		if err != nil {
			return nil, asError(err)
		}
		return out, nil
	})
}

// get registers a call that reads one pipeline and takes no parameters.
func get[T any](r *routes, path, id, summary string, read func(context.Context, Pipeline) (T, error)) {
	act(r, r.operation(http.MethodGet, path, id, summary, http.StatusOK), func(ctx context.Context, p Pipeline, _ *PipelineName) (*body[T], error) {
		got, err := read(ctx, p)
		return &body[T]{got}, err
	})
}

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
	r.transition("standby", "Make a stopped or failed pipeline, or a fenced primary, follow its target", Pipeline.Standby)
	activate := r.verb("activate", "Make a standby the primary: claim every target, which fences the primary before, pull the newest commit, start from it")
	activate.DefaultStatus = http.StatusOK // it is done when it is answered
	act(r, activate, func(ctx context.Context, p Pipeline, in *activateInput) (*body[client.Activated], error) {
		done, err := p.Activate(ctx, client.ActivateOptions{AcceptLocal: !in.RequireLatest, Target: in.Target})
		return &body[client.Activated]{done}, err
	})
	act(r, r.verb("stop", "Checkpoint, push where push_on_shutdown, and stop"), func(ctx context.Context, p Pipeline, in *stopInput) (*empty, error) {
		return nil, p.Stop(ctx, in.Checkpoint)
	})
	adopt := r.verb("adopt", "Let pushes go to a held target, on top of the history it has")
	adopt.OperationID = "adoptTarget"
	act(r, adopt, func(ctx context.Context, p Pipeline, in *adoptInput) (*empty, error) {
		return nil, p.Adopt(ctx, in.Target)
	})
}

// verb is a call that asks a pipeline to change what it does.
func (r *routes) verb(verb, summary string) huma.Operation {
	return r.operation(http.MethodPost, "/v0/pipelines/{name}/"+verb, verb+"Pipeline", summary, http.StatusAccepted)
}

func (r *routes) transition(verb, summary string, do func(Pipeline, context.Context) error) {
	act(r, r.verb(verb, summary), func(ctx context.Context, p Pipeline, _ *PipelineName) (*empty, error) {
		return nil, do(p, ctx)
	})
}

type stopInput struct {
	PipelineName
	Checkpoint bool `query:"checkpoint" default:"true" doc:"false: neither checkpoint nor push first."`
}

type activateInput struct {
	PipelineName
	RequireLatest bool   `query:"require_latest" default:"true" doc:"false: when a target cannot be claimed or its newest commit cannot be pulled, start the local copy and tell what is lost."`
	Target        string `query:"target" doc:"Only this target has to answer, and only it is claimed; left out: all of them."`
}

type targetInput struct {
	PipelineName
	Target string `query:"target" doc:"Name of a target of the pipeline; left out: all of them."`
}

type adoptInput struct {
	PipelineName
	Target string `query:"target" required:"true" doc:"Name of the held target."`
}
