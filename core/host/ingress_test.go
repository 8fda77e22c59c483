package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/api"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/sqlcircuit"
	"github.com/cairnsync/cairn/sdk/client"
)

// call makes one plain HTTP call and answers with the status, the headers and the body.
func (r *liveHost) call(method, path, body string) (int, http.Header, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	must(r.t, err)
	resp, err := http.DefaultClient.Do(req)
	must(r.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(r.t, err)
	return resp.StatusCode, resp.Header, string(text)
}

const ingress = "/v0/pipelines/p/ingress/rows"

func TestABatchThatIsSentAgainCountsOnceAlsoAfterARestore(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	for seq := range uint64(3) {
		_, err := first.Ingest(t.Context(), "p", "rows", "me", seq+1, "", rows(int(seq), int(seq)+1))
		must(t, err)
	}
	first.checkpoint()
	first.push()
	before := first.rows()
	_, err := first.Ingest(t.Context(), "p", "rows", "me", 4, "", rows(3, 4)) // lost with this machine
	must(t, err)
	first.kill()

	second := w.start(conf{data: "elsewhere", from: "latest"}).up()
	seq, err := second.Position(t.Context(), "p", "rows", "me")
	must(t, err)
	equal(t, "position", seq, 3)
	again, err := second.Ingest(t.Context(), "p", "rows", "me", 3, "", rows(2, 3))
	must(t, err)
	equal(t, "duplicate", again.Duplicate, true)
	equal(t, "rows", second.rows(), before)
	resumed, err := second.Ingest(t.Context(), "p", "rows", "me", 4, "", rows(3, 4))
	must(t, err)
	equal(t, "applied", resumed.Applied, 1)
}

func TestABatchCanWaitUntilItIsSafe(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{checkpoint: "100ms", push: "100ms"}).up()
	for _, wait := range []string{"checkpoint", "commit"} {
		got, err := h.Ingest(t.Context(), "p", "rows", "", 0, wait, rows(0, 3))
		must(t, err)
		equal(t, "waited", got.Waited, wait)
		v := h.view("p")
		if v.Checkpoint.Step < got.Step || wait == "commit" && v.Targets[0].Committed.Step < got.Step {
			t.Errorf("%s: step %d is not covered: %+v", wait, got.Step, v)
		}
	}
}

func TestABatchWhoseWaitTimesOutIsAppliedAllTheSame(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{}).up()
	status, _, body := h.call(http.MethodPost, ingress+"?wait=commit&timeout=50ms", `{"id": 1}`)
	equal(t, "status", status, http.StatusAccepted)
	var got client.Ingested
	must(t, json.Unmarshal([]byte(body), &got))
	equal(t, "step", got.Step, 1)
	equal(t, "waited", got.Waited, "")
	contains(t, got.WaitError, "not within 50ms: ", "covers step 1 yet")
	equal(t, "rows", strings.Count(h.rows(), "\n"), 1)
}

func TestABatchThatCannotBeTakenSaysWhenOrHowToSendIt(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{}).up()
	refused := func(what, path, body string, status int, code string, again bool) {
		t.Helper()
		got, header, text := h.call(http.MethodPost, path, body)
		var answered client.Error
		must(t, json.Unmarshal([]byte(text), &answered))
		equal(t, what+": status", got, status)
		equal(t, what+": code", answered.Code, code)
		equal(t, what+": Retry-After", header.Get("Retry-After") != "", again)
	}
	refused("an unknown input", "/v0/pipelines/p/ingress/nothing", "{}", http.StatusNotFound, client.CodeInputNotFound, false)
	refused("too many records", ingress, strings.Repeat("{}\n", sqlcircuit.DefaultMaxRecords+1), http.StatusRequestEntityTooLarge, client.CodeTooLarge, false)
	refused("too many bytes", ingress, `{"text": "`+strings.Repeat("x", 8<<20)+`"}`, http.StatusRequestEntityTooLarge, client.CodeTooLarge, false)
	refused("seq without source", ingress+"?seq=3", "{}", http.StatusBadRequest, client.CodeBadRequest, false)
	must(t, h.Pause(t.Context(), "p"))
	refused("paused", ingress, "{}", http.StatusServiceUnavailable, client.CodeNotRunning, true)
	must(t, h.Resume(t.Context(), "p"))
	equal(t, "rows", h.rows(), "")
	must(t, h.Stop(t.Context(), "p", true))
	refused("stopping or stopped", ingress, "{}", http.StatusServiceUnavailable, client.CodeNotRunning, true)
}

func TestEachRefusalOfTheCircuitHasItsStatus(t *testing.T) {
	for _, row := range []struct {
		refusal error
		status  int
		again   bool
	}{
		{sqlcircuit.ErrUnknownInput, 404, false},
		{sqlcircuit.ErrTooLarge, 413, false},
		{sqlcircuit.ErrFull, 429, true},
		{circuit.ErrNoSpace, 503, true},
		{sqlcircuit.ErrBadFormat, 400, false},
		{sqlcircuit.ErrMediaType, 415, false},
		{sqlcircuit.ErrBadQuery, 400, false},
		{sqlcircuit.ErrQueryTime, 504, false},
		{sqlcircuit.ErrNotRunning, 503, true},
		{sqlcircuit.ErrInputStopped, 503, true},
	} {
		var answered *api.Error
		if !errors.As((&pipeline{}).dataError(fmt.Errorf("somewhere: %w", row.refusal)), &answered) {
			t.Errorf("%v has no status", row.refusal)
			continue
		}
		equal(t, row.refusal.Error(), answered.GetStatus(), row.status)
		equal(t, row.refusal.Error()+": Retry-After", answered.GetHeaders().Get("Retry-After") != "", row.again)
	}
	unknown := errors.New("disk full")
	equal(t, "any other error", (&pipeline{}).dataError(unknown), unknown)
}

func TestAnswersHaveTheirShapeBeforeAnythingHasHappened(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{initial: "paused"})
	h.until("it begins paused", func() bool { return h.view("p").State == "paused" })
	for path, want := range map[string]string{
		"/checkpoint/sync_status": `{"success":null,"failure":null,"periodic":null,"periodic_failure":null,"running":null,"incarnation_uuid":"I",` +
			`"targets":[{"target":"t","state":"ready","fencing":"required","warnings":[],"rights":null,"success":null,"failure":null,"periodic":null,"periodic_failure":null,"queued":[],"running":null,"running_since":null}]}`,
		"/checkpoint_status": `{"success":null,"failure":null,"incarnation_uuid":"I"}`,
		"/checkpoints":       `[]`, "/checkpoints/remote": `[]`,
		"/stats": `{"step":0,"buffered":0,"state_bytes":8192,"inputs":[{"name":"rows","applied":0,"rejected":0,"buffered":0}]}`,
	} {
		status, _, body := h.call(http.MethodGet, "/v0/pipelines/p"+path, "")
		equal(t, path, status, http.StatusOK)
		body = strings.ReplaceAll(strings.TrimSpace(body), h.view("p").Incarnation.String(), "I")
		if path == "/stats" {
			continue // its sizes are SQLite's
		}
		equal(t, path, body, want)
	}
	_, _, body := h.call(http.MethodGet, "/v0/pipelines/p", "")
	contains(t, body, `"checkpoint":null`, `"committed":null`, `"behind_steps":null`, `"next_push":null`, `"running":null`, `"jobs":[]`)
}
