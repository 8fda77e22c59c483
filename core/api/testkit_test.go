package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/sdk/client"
)

// fakePipeline answers from its fields and notes what it was asked.
type fakePipeline struct {
	asked  []string
	err    error
	id     uuid.UUID
	sync   client.SyncStatus
	batch  circuit.Batch
	text   string
	result circuit.IngestResult
	rows   Rows
	wait   func(context.Context) error

	storage *client.StorageView // nil = a file with one sync block
}

func (f *fakePipeline) note(what string) error { f.asked = append(f.asked, what); return f.err }

func (f *fakePipeline) Name() string { return "p" }
func (f *fakePipeline) View() client.PipelineView {
	storage := client.StorageView{Type: "file", Sync: make([]client.SyncView, 1)}
	if f.storage != nil {
		storage = *f.storage
	}
	return client.PipelineView{Name: "p", State: "running", Storage: storage}
}
func (f *fakePipeline) Stats() client.Stats           { return client.Stats{Step: 7} }
func (f *fakePipeline) Start(context.Context) error   { return f.note("start") }
func (f *fakePipeline) Pause(context.Context) error   { return f.note("pause") }
func (f *fakePipeline) Resume(context.Context) error  { return f.note("resume") }
func (f *fakePipeline) Standby(context.Context) error { return f.note("standby") }

func (f *fakePipeline) Activate(_ context.Context, o client.ActivateOptions) (client.Activated, error) {
	return client.Activated{PulledBytes: 5}, f.note(fmt.Sprintf("activate %+v", o))
}

func (f *fakePipeline) Adopt(_ context.Context, target string) error {
	return f.note("adopt " + target)
}
func (f *fakePipeline) Incarnation() uuid.UUID                           { return f.id }
func (f *fakePipeline) CheckpointStatus() client.CheckpointStatus        { return client.CheckpointStatus{} }
func (f *fakePipeline) SyncStatus() client.SyncStatus                    { return f.sync }
func (f *fakePipeline) WaitCheckpoint(c context.Context, _ uint64) error { return f.wait(c) }
func (f *fakePipeline) WaitCommit(c context.Context, _ uint64) error     { return f.wait(c) }

func (f *fakePipeline) Stop(_ context.Context, checkpoint bool) error {
	if checkpoint {
		return f.note("stop with checkpoint")
	}
	return f.note("stop")
}

func (f *fakePipeline) Checkpoint(context.Context) (client.CheckpointStarted, error) {
	return client.CheckpointStarted{Sequence: 3, Incarnation: f.id}, f.note("checkpoint")
}

func (f *fakePipeline) Checkpoints(context.Context) ([]client.CheckpointView, error) {
	return []client.CheckpointView{}, f.note("checkpoints")
}

func (f *fakePipeline) RemoteCheckpoints(_ context.Context, target string) ([]client.CheckpointView, error) {
	return []client.CheckpointView{}, f.note("remote " + target)
}

func (f *fakePipeline) Verify(_ context.Context, o client.VerifyOptions) ([]client.VerifyView, error) {
	return []client.VerifyView{}, f.note(fmt.Sprintf("verify %+v", o))
}

func (f *fakePipeline) Repair(_ context.Context, target string, deep bool) (client.RepairView, error) {
	return client.RepairView{}, f.note(fmt.Sprintf("repair %s %v", target, deep))
}

func (f *fakePipeline) Sync(_ context.Context, target string) (client.SyncStarted, error) {
	return client.SyncStarted{Checkpoint: f.id}, f.note("sync " + target)
}

func (f *fakePipeline) Sweep(_ context.Context, o client.SweepOptions) (client.Sweep, error) {
	return client.Sweep{Target: "t"}, f.note(fmt.Sprintf("sweep %+v", o))
}

func (f *fakePipeline) Pins(_ context.Context, target string) ([]client.Pin, error) {
	return []client.Pin{}, f.note("pins " + target)
}

func (f *fakePipeline) Pin(_ context.Context, name string, o client.PinOptions) (client.Pin, error) {
	return client.Pin{Name: name}, f.note(fmt.Sprintf("pin %s %+v", name, o))
}

func (f *fakePipeline) Unpin(_ context.Context, target, name string) error {
	return f.note("unpin " + name + " from " + target)
}

func (f *fakePipeline) Ingest(_ context.Context, input string, b circuit.Batch) (circuit.IngestResult, error) {
	text, _ := io.ReadAll(b.Body)
	f.batch, f.text = b, string(text)
	return f.result, f.note("ingest " + input)
}

func (f *fakePipeline) Position(context.Context, string, string) (uint64, error) {
	return 42, f.note("position")
}

func (f *fakePipeline) Query(context.Context, string) (Rows, error) { return f.rows, f.note("query") }

type fakeHost struct {
	p     *fakePipeline
	ready error
}

func (f fakeHost) Pipelines() []Pipeline { return []Pipeline{f.p} }
func (f fakeHost) Ready() error          { return f.ready }

// call sends one request and gives the status, the headers and the body.
func call(t *testing.T, p *fakePipeline, method, path, body string) (int, http.Header, string) {
	t.Helper()
	server := httptest.NewServer(Handler(fakeHost{p: p}))
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for key, values := range resp.Trailer {
		resp.Header[key] = values
	}
	return resp.StatusCode, resp.Header, string(text)
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
