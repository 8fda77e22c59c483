package api

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/sdk/client"
)

type oneTargetInput struct {
	PipelineName
	Target string `query:"target" doc:"Name of a target of the pipeline; may be left out where there is only one."`
}

type sweepInput struct {
	PipelineName
	Target    string `query:"target" doc:"Name of a target of the pipeline; may be left out where there is only one."`
	DryRun    bool   `query:"dry_run" doc:"Tell what would go, and change nothing."`
	MaxDelete int    `query:"max_delete" minimum:"0" doc:"In place of the configured max_delete, for this run; 0 or left out: as configured."`
}

type pinInput struct {
	PipelineName
	Target     string `query:"target" doc:"Name of a target of the pipeline; may be left out where there is only one."`
	Pin        string `query:"pin" required:"true" doc:"Name of the pin: [a-z0-9._-], at most 100 bytes."`
	Checkpoint string `query:"checkpoint" format:"uuid" doc:"Keep the newest commit of this checkpoint."`
	Commit     uint64 `query:"commit" doc:"Keep the commit of this number. Either this or checkpoint is given."`
	Note       string `query:"note" doc:"For people; at most 1024 bytes."`
}

type unpinInput struct {
	PipelineName
	Target string `query:"target" doc:"Name of a target of the pipeline; may be left out where there is only one."`
	Pin    string `query:"pin" required:"true" doc:"Name of the pin."`
}

// retention is what is done to what a target keeps.
func (r *routes) retention() {
	sweep := r.operation(http.MethodPost, "/v0/pipelines/{name}/remote/sweep", "sweepTarget", "Run retention and sweep on a target, or tell what they would do", http.StatusOK)
	act(r, sweep, func(ctx context.Context, p Pipeline, in *sweepInput) (*body[client.Sweep], error) {
		done, err := p.Sweep(ctx, client.SweepOptions{Target: in.Target, DryRun: in.DryRun, MaxDelete: in.MaxDelete})
		return &body[client.Sweep]{done}, err
	})
	pins := r.operation(http.MethodGet, "/v0/pipelines/{name}/remote/pins", "listPins", "Commits that are kept from retention, by the pins' names; reads the target", http.StatusOK)
	act(r, pins, func(ctx context.Context, p Pipeline, in *oneTargetInput) (*body[[]client.Pin], error) {
		all, err := p.Pins(ctx, in.Target)
		return &body[[]client.Pin]{all}, err
	})
	pin := r.operation(http.MethodPost, "/v0/pipelines/{name}/remote/pin", "pinCommit", "Keep a commit from retention; when it answers, it is kept", http.StatusOK)
	act(r, pin, func(ctx context.Context, p Pipeline, in *pinInput) (*body[client.Pin], error) {
		opts, err := in.options()
		if err != nil {
			return nil, err
		}
		made, err := p.Pin(ctx, in.Pin, opts)
		return &body[client.Pin]{made}, err
	})
	unpin := r.operation(http.MethodPost, "/v0/pipelines/{name}/remote/unpin", "unpinCommit", "Remove a pin", http.StatusNoContent)
	act(r, unpin, func(ctx context.Context, p Pipeline, in *unpinInput) (*empty, error) {
		return nil, p.Unpin(ctx, in.Target, in.Pin)
	})
}

func (in *pinInput) options() (client.PinOptions, error) {
	opts := client.PinOptions{Target: in.Target, Commit: in.Commit, Note: in.Note}
	if in.Checkpoint != "" {
		id, err := uuid.Parse(in.Checkpoint)
		if err != nil {
			return opts, Errorf(http.StatusBadRequest, client.CodeBadRequest, "checkpoint: %v", err)
		}
		opts.Checkpoint = id
	}
	if (opts.Commit == 0) == (opts.Checkpoint == uuid.Nil) {
		return opts, Errorf(http.StatusBadRequest, client.CodeBadRequest, "name a checkpoint or a commit to pin, one of the two")
	}
	return opts, nil
}
