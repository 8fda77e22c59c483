package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/sdk/client"
)

// maxBatch is the largest body of a batch; what is larger is answered 413 before it is read whole.
const maxBatch = 8 << 20

// maxWait bounds how long a call may hold its connection for ?wait=.
const maxWait = 5 * time.Minute

type ingressInput struct {
	PipelineName
	Input   string `path:"input" doc:"Name of an http input."`
	Source  string `query:"source" maxLength:"256" doc:"Names the sender. With seq, a repeated batch counts once; without, it counts each time it arrives."`
	Seq     uint64 `query:"seq" doc:"Number of the batch, rising per source, from 1."`
	Wait    string `query:"wait" enum:"checkpoint,commit" doc:"Answer only when a checkpoint, or a commit on every target, covers the batch, also one that was applied before. What is known to be gone or broken covers nothing."`
	Timeout string `query:"timeout" default:"30s" doc:"How long to wait; then the answer is 202 with the step and the reason."`
	RawBody []byte `contentType:"application/x-ndjson"`

	mediaType string // as the client sent it
}

// Resolve is called when the body has been read.
func (in *ingressInput) Resolve(ctx huma.Context) []error {
	in.mediaType = ctx.Header("Content-Type")
	return nil
}

type ingressOutput struct {
	Status int
	Body   client.Ingested
}

type positionInput struct {
	PipelineName
	Input  string `path:"input"`
	Source string `query:"source" required:"true" maxLength:"256"`
}

func (r *routes) data() {
	post := r.operation(http.MethodPost, "/v0/pipelines/{name}/ingress/{input}", "ingest", "Apply a batch of records, whole or not at all", http.StatusOK)
	post.MaxBodyBytes = maxBatch
	post.BodyReadTimeout = time.Minute
	post.Responses["202"] = &huma.Response{
		Description: "The batch is applied; what was to be waited for has not come within timeout, or cannot come until somebody acts: wait_error says why.",
		Content:     map[string]*huma.MediaType{"application/json": {Schema: r.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[client.Ingested](), true, "Ingested")}},
	}
	r.comesBack(post, http.StatusTooManyRequests, "The input is full: send the batch again after Retry-After.")
	r.comesBack(post, http.StatusServiceUnavailable, "The pipeline takes no records now, or a disk is full: send the batch again after Retry-After.")
	act(r, post, ingest)
	types := r.api.OpenAPI().Paths[post.Path].Post.RequestBody.Content
	types["text/csv"] = types["application/x-ndjson"] // which of them an input takes is in the configuration
	position := r.operation(http.MethodGet, "/v0/pipelines/{name}/ingress/{input}", "getPosition", "Where a source resumes", http.StatusOK)
	act(r, position, func(ctx context.Context, p Pipeline, in *positionInput) (*body[client.Position], error) {
		seq, err := p.Position(ctx, in.Input, in.Source)
		return &body[client.Position]{client.Position{Source: in.Source, Seq: seq}}, err
	})
	r.query()
}

func ingest(ctx context.Context, p Pipeline, in *ingressInput) (*ingressOutput, error) {
	if (in.Source == "") != (in.Seq == 0) {
		return nil, Errorf(http.StatusBadRequest, client.CodeBadRequest, "source and seq go together, and seq begins at 1: give both or neither")
	}
	timeout, err := time.ParseDuration(in.Timeout)
	if err != nil || timeout <= 0 || timeout > maxWait {
		return nil, Errorf(http.StatusBadRequest, client.CodeBadRequest, "timeout %q: give a duration of at most %s, such as 30s", in.Timeout, maxWait)
	}
	if err := canWait(p, in.Wait); err != nil {
		return nil, err
	}
	got, err := p.Ingest(ctx, in.Input, circuit.Batch{Source: in.Source, Seq: in.Seq, Type: in.mediaType, Body: bytes.NewReader(in.RawBody)})
	if err != nil {
		return nil, err
	}
	out := &ingressOutput{Status: http.StatusOK, Body: client.Ingested{
		Step: got.Step, Applied: got.Applied, Rejected: got.Rejected, FirstRefusal: got.FirstRefusal, Duplicate: got.Duplicate, Note: got.Note,
	}}
	if in.Wait == "" {
		return out, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not within %s", timeout))
	defer cancel()
	if err := waiter(p, in.Wait)(ctx, got.Step); err != nil {
		out.Status, out.Body.WaitError = http.StatusAccepted, err.Error() // the batch is applied; only the wait has run out or was cut off
		return out, nil
	}
	out.Body.Waited = in.Wait
	return out, nil
}

// canWait refuses a wait that cannot end well, before the batch is applied.
func canWait(p Pipeline, wait string) error {
	if wait == "" {
		return nil
	}
	storage := p.View().Storage
	if storage.Type == "memory" || wait == "commit" && len(storage.Sync) == 0 {
		return Errorf(http.StatusBadRequest, client.CodeNoSync, "wait=%s: pipeline %q has storage %q and %d sync blocks, so no %s can ever cover the batch; leave it out",
			wait, p.Name(), storage.Type, len(storage.Sync), wait)
	}
	return nil
}

func waiter(p Pipeline, what string) func(context.Context, uint64) error {
	if what == "commit" {
		return p.WaitCommit
	}
	return p.WaitCheckpoint
}
