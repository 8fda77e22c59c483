package api

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/sdk/client"
)

var update = flag.Bool("update", false, "rewrite golden files")

const documentFile = "../../openapi.json"

func TestTheCommittedOpenAPIDocumentIsTheOneThatIsServed(t *testing.T) {
	want, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(documentFile, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("openapi.json is not the document of core/api; run: go test ./core/api -update")
	}
	for _, word := range []string{"push_interval", "periodic", "checkpoint_sequence_number", "error_code"} {
		if !bytes.Contains(got, []byte(`"`+word+`"`)) {
			t.Errorf("openapi.json does not show %s", word)
		}
	}
	if bytes.Contains(got, []byte("ErrorModel")) {
		t.Error("openapi.json shows the library's error shape")
	}
}

func TestEachCallReachesItsMethod(t *testing.T) {
	for _, row := range []struct {
		method, path string
		status       int
		asked        string
	}{
		{"POST", "/v0/pipelines/p/start", 202, "start"},
		{"POST", "/v0/pipelines/p/pause", 202, "pause"},
		{"POST", "/v0/pipelines/p/resume", 202, "resume"},
		{"POST", "/v0/pipelines/p/activate", 200, "activate {AcceptLocal:false Target:}"},
		{"POST", "/v0/pipelines/p/remote/sweep", 200, "sweep {Target: DryRun:false MaxDelete:0}"},
		{"POST", "/v0/pipelines/p/remote/sweep?target=t&dry_run=true&max_delete=9", 200, "sweep {Target:t DryRun:true MaxDelete:9}"},
		{"GET", "/v0/pipelines/p/remote/pins?target=t", 200, "pins t"},
		{"POST", "/v0/pipelines/p/remote/pin?pin=audit&commit=7&note=why", 200, "pin audit {Target: Checkpoint:00000000-0000-0000-0000-000000000000 Commit:7 Note:why}"},
		{"POST", "/v0/pipelines/p/remote/unpin?pin=audit&target=t", 204, "unpin audit from t"},
		{"POST", "/v0/pipelines/p/activate?require_latest=false&target=t", 200, "activate {AcceptLocal:true Target:t}"},
		{"POST", "/v0/pipelines/p/standby", 202, "standby"},
		{"POST", "/v0/pipelines/p/stop", 202, "stop with checkpoint"},
		{"POST", "/v0/pipelines/p/stop?checkpoint=false", 202, "stop"},
		{"POST", "/v0/pipelines/p/adopt?target=t", 202, "adopt t"},
		{"POST", "/v0/pipelines/p/checkpoint", 200, "checkpoint"},
		{"POST", "/v0/pipelines/p/checkpoint/sync", 202, "sync "},
		{"POST", "/v0/pipelines/p/checkpoint/sync?target=t", 202, "sync t"},
		{"GET", "/v0/pipelines/p/checkpoints", 200, "checkpoints"},
		{"GET", "/v0/pipelines/p/checkpoints/remote", 200, "remote "},
		{"POST", "/v0/pipelines/p/remote/verify", 200, "verify {Target: Sample:0 Deep:false Newest:false}"},
		{"POST", "/v0/pipelines/p/remote/verify?target=t&sample=0.05", 200, "verify {Target:t Sample:0.05 Deep:false Newest:false}"},
		{"POST", "/v0/pipelines/p/remote/verify?deep=true&newest=true", 200, "verify {Target: Sample:0 Deep:true Newest:true}"},
		{"POST", "/v0/pipelines/p/remote/verify?sample=1.5", 422, ""},
		{"POST", "/v0/pipelines/p/remote/repair?target=t&deep=true", 200, "repair t true"},
		{"POST", "/v0/pipelines/p/remote/repair", 422, ""},
		{"GET", "/v0/pipelines/p/ingress/in?source=s", 200, "position"},
		{"GET", "/v0/pipelines", 200, ""},
		{"GET", "/v0/pipelines/p", 200, ""},
		{"GET", "/v0/pipelines/p/stats", 200, ""},
		{"GET", "/v0/pipelines/p/checkpoint_status", 200, ""},
		{"GET", "/v0/pipelines/p/checkpoint/sync_status", 200, ""},
		{"GET", "/healthz", 200, ""},
		{"GET", "/readyz", 200, ""},
		{"GET", "/openapi.json", 200, ""},
	} {
		p := &fakePipeline{id: uuid.New()}
		status, _, text := call(t, p, row.method, row.path, "")
		if status != row.status {
			t.Errorf("%s %s: status %d, want %d: %s", row.method, row.path, status, row.status, text)
		}
		if got := strings.Join(p.asked, ","); got != row.asked {
			t.Errorf("%s %s asked %q, want %q", row.method, row.path, got, row.asked)
		}
	}
}

func TestEveryErrorHasTheSameShape(t *testing.T) {
	conflict := Errorf(http.StatusBadRequest, client.CodeInvalidTransition, "cannot pause a stopped pipeline")
	for _, row := range []struct {
		name, method, path, code string
		err                      error
		status                   int
	}{
		{"an unknown pipeline", "GET", "/v0/pipelines/q", client.CodePipelineNotFound, nil, 404},
		{"an error of the host", "POST", "/v0/pipelines/p/pause", client.CodeInvalidTransition, conflict, 400},
		{"an error without a code", "POST", "/v0/pipelines/p/pause", client.CodeInternal, errors.New("disk on fire"), 500},
		{"an unknown parameter", "GET", "/v0/pipelines/p/checkpoint_status?nope=1", client.CodeBadRequest, nil, 422},
		{"a parameter that is no uuid", "GET", "/v0/pipelines/p/checkpoint_status?incarnation_uuid=x", client.CodeBadRequest, nil, 422},
		{"a missing parameter", "POST", "/v0/pipelines/p/adopt", client.CodeBadRequest, nil, 422},
		{"source without seq", "POST", "/v0/pipelines/p/ingress/in?source=s", client.CodeBadRequest, nil, 400},
		{"a timeout that is none", "POST", "/v0/pipelines/p/ingress/in?timeout=soon", client.CodeBadRequest, nil, 400},
		{"a batch that is too large", "POST", "/v0/pipelines/p/ingress/in", client.CodeTooLarge, nil, 413},
	} {
		body := ""
		if row.status == 413 {
			body = strings.Repeat("x", maxBatch+1)
		}
		status, headers, text := call(t, &fakePipeline{err: row.err}, row.method, row.path, body)
		got := decode[map[string]any](t, text)
		if status != row.status || got["error_code"] != row.code || got["message"] == "" || got["details"] == nil || len(got) != 3 {
			t.Errorf("%s: %d %s", row.name, status, text)
		}
		if !strings.HasPrefix(headers.Get("Content-Type"), "application/json") {
			t.Errorf("%s: content type %q", row.name, headers.Get("Content-Type"))
		}
	}
}

func TestAStaleIncarnationIsRefusedWithBothIDs(t *testing.T) {
	p, stale := &fakePipeline{id: uuid.New()}, uuid.New()
	for _, path := range []string{"/v0/pipelines/p/checkpoint_status", "/v0/pipelines/p/checkpoint/sync_status"} {
		status, _, text := call(t, p, "GET", path+"?incarnation_uuid="+stale.String(), "")
		got := decode[Error](t, text)
		if status != 400 || got.Code != client.CodeIncarnationMismatch || got.Details["requested"] != stale.String() || got.Details["expected"] != p.id.String() {
			t.Errorf("%s: %d %s", path, status, text)
		}
		if status, _, text := call(t, p, "GET", path+"?incarnation_uuid="+p.id.String(), ""); status != 200 {
			t.Errorf("%s with the right one: %d %s", path, status, text)
		}
	}
}

func TestASyncStatusWithNothingToTellIsMadeOfNulls(t *testing.T) {
	_, _, text := call(t, &fakePipeline{sync: client.SyncStatus{Targets: []client.TargetSync{}}}, "GET", "/v0/pipelines/p/checkpoint/sync_status", "")
	want := `{"success":null,"failure":null,"periodic":null,"periodic_failure":null,"running":null,"incarnation_uuid":null,"targets":[]}`
	if strings.TrimSpace(text) != want {
		t.Errorf("got %s", text)
	}
}

func TestABatchReachesTheCircuitWithItsPosition(t *testing.T) {
	p := &fakePipeline{result: circuit.IngestResult{Step: 9, Applied: 2, Duplicate: true}}
	status, _, text := call(t, p, "POST", "/v0/pipelines/p/ingress/in?source=s&seq=4", "{}\n{}\n")
	if status != 200 || p.batch.Source != "s" || p.batch.Seq != 4 || p.text != "{}\n{}\n" {
		t.Errorf("%d %s, batch %+v %q", status, text, p.batch, p.text)
	}
	if got := decode[client.Ingested](t, text); got.Step != 9 || got.Applied != 2 || !got.Duplicate {
		t.Errorf("got %s", text)
	}
}

// Any other answer would make a client send the batch again.
func TestABatchWhoseWaitDoesNotEndWellIsAnswered202WithTheStep(t *testing.T) {
	never := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, row := range []struct {
		wait   func(context.Context) error
		status int
		waited string
	}{
		{func(context.Context) error { return nil }, 200, "commit"},
		{never, 202, ""},
		{func(context.Context) error { return errors.New("stopped") }, 202, ""},
	} {
		p := &fakePipeline{result: circuit.IngestResult{Step: 9}, wait: row.wait}
		status, _, text := call(t, p, "POST", "/v0/pipelines/p/ingress/in?wait=commit&timeout=10ms", "{}")
		if status != row.status || decode[client.Ingested](t, text).Waited != row.waited {
			t.Errorf("status %d, want %d: %s", status, row.status, text)
		}
		if got := decode[client.Ingested](t, text); (status == 202) != (got.WaitError != "") {
			t.Errorf("status %d with wait_error %q", status, got.WaitError)
		}
		if status < 300 && decode[client.Ingested](t, text).Step != 9 {
			t.Errorf("no step in %s", text)
		}
	}
}

func TestAWaitThatCanNeverEndIsRefusedBeforeTheBatchIsApplied(t *testing.T) {
	for _, row := range []struct {
		storage client.StorageView
		wait    string
	}{
		{client.StorageView{Type: "memory"}, "checkpoint"},
		{client.StorageView{Type: "memory"}, "commit"},
		{client.StorageView{Type: "file"}, "commit"},
	} {
		p := &fakePipeline{storage: &row.storage}
		status, _, text := call(t, p, "POST", "/v0/pipelines/p/ingress/in?wait="+row.wait, "{}")
		if status != 400 || decode[Error](t, text).Code != client.CodeNoSync || len(p.asked) != 0 {
			t.Errorf("%+v: %d %s, asked %v", row, status, text, p.asked)
		}
	}
}

func TestAnErrorThatIsAMatterOfTimeSaysWhenToComeAgain(t *testing.T) {
	full := Errorf(http.StatusTooManyRequests, client.CodeFull, "full").After(1500 * time.Millisecond)
	status, headers, _ := call(t, &fakePipeline{err: full}, "POST", "/v0/pipelines/p/ingress/in", "{}")
	if status != 429 || headers.Get("Retry-After") != "2" {
		t.Errorf("%d, Retry-After %q", status, headers.Get("Retry-After"))
	}
}

func rowsOf(fail error, rows ...[]circuit.Column) Rows {
	return func(yield func([]circuit.Column, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
		if fail != nil {
			yield(nil, fail)
		}
	}
}

func TestRowsAreStreamedWithTheirColumnsInOrder(t *testing.T) {
	row := []circuit.Column{{Name: "z", Value: int64(9007199254740993)}, {Name: "a", Value: "x"}, {Name: "n", Value: nil}}
	_, headers, text := call(t, &fakePipeline{rows: rowsOf(nil, row, row)}, "GET", "/v0/pipelines/p/query?sql=SELECT", "")
	want := `{"z":9007199254740993,"a":"x","n":null}` + "\n"
	if text != want+want || headers.Get("Content-Type") != "application/x-ndjson" || headers.Get(rowsTrailer) != "" {
		t.Errorf("got %s %v", text, headers)
	}
}

func TestAnAnswerThatBreaksOffSaysSoInItsLastLineAndItsTrailer(t *testing.T) {
	row := []circuit.Column{{Name: "a", Value: int64(1)}}
	_, headers, text := call(t, &fakePipeline{rows: rowsOf(errors.New("interrupted"), row)}, "GET", "/v0/pipelines/p/query?sql=SELECT", "")
	if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) != 2 || lines[1] != `{"error":"interrupted"}` {
		t.Errorf("got %s", text)
	}
	if headers.Get(rowsTrailer) != `"interrupted"` {
		t.Errorf("trailer %q", headers.Get(rowsTrailer))
	}
}

func TestARequestUnderAForeignHostNameIsRefused(t *testing.T) {
	for host, want := range map[string]int{
		"evil.example": 403, "evil.example:80": 403, "10.0.0.1:7070": 403,
		"localhost:7070": 200, "127.0.0.1": 200, "[::1]:7070": 200, "127.9.9.9:1": 200,
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil)
		req.Host = host
		answer := httptest.NewRecorder()
		Handler(fakeHost{p: &fakePipeline{}}).ServeHTTP(answer, req)
		if answer.Code != want {
			t.Errorf("host %q: %d, want %d", host, answer.Code, want)
		}
	}
}

func TestAWebPageCanNeitherChangeAnythingNorHaveAnythingDone(t *testing.T) {
	for name, headers := range map[string]map[string]string{
		"by its origin":        {"Origin": "http://evil.example"},
		"by what browsers add": {"Sec-Fetch-Site": "cross-site"},
	} {
		for path, method := range map[string]string{"pause": http.MethodPost, "query?sql=SELECT": http.MethodGet} {
			p := &fakePipeline{rows: rowsOf(nil)}
			req := httptest.NewRequestWithContext(t.Context(), method, "/v0/pipelines/p/"+path, nil)
			req.Host = "127.0.0.1:7070"
			for key, value := range headers {
				req.Header.Set(key, value)
			}
			answer := httptest.NewRecorder()
			Handler(fakeHost{p: p}).ServeHTTP(answer, req)
			if answer.Code != http.StatusForbidden || len(p.asked) > 0 || decode[client.Error](t, answer.Body.String()).Code != client.CodeForbiddenHost {
				t.Errorf("%s %s, %s: %d %s, asked %v", method, path, name, answer.Code, answer.Body, p.asked)
			}
		}
	}
}

func TestWhatIsNoCallIsAnsweredLikeAnyError(t *testing.T) {
	for _, row := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/nope", 404, ""},
		{"GET", "/v0/pipelines/p/nope", 404, ""},
		{"DELETE", "/v0/pipelines/p", 405, "GET"},
		{"GET", "/v0/pipelines/p/start", 405, "POST"},
		{"POST", "/healthz", 405, "GET"},
		{"PUT", "/v0/pipelines/p/ingress/in", 405, "GET, POST"},
	} {
		status, headers, text := call(t, &fakePipeline{}, row.method, row.path, "")
		got := decode[map[string]any](t, text)
		if status != row.status || got["message"] == "" || got["error_code"] == "" || len(got) != 3 || headers.Get("Allow") != row.allow {
			t.Errorf("%s %s: %d %v %s", row.method, row.path, status, headers, text)
		}
	}
}

func TestAGetNeverChangesAnything(t *testing.T) {
	p := &fakePipeline{rows: rowsOf(nil)}
	for _, path := range []string{"", "/stats", "/checkpoint_status", "/checkpoints", "/checkpoints/remote", "/checkpoint/sync_status", "/query?sql=x", "/ingress/in?source=s"} {
		call(t, p, "GET", "/v0/pipelines/p"+path, "")
	}
	for _, verb := range []string{"start", "pause", "resume", "activate", "stop", "adopt?target=t", "checkpoint", "checkpoint/sync", "remote/verify", "remote/repair?target=t"} {
		if status, _, text := call(t, p, "GET", "/v0/pipelines/p/"+verb, ""); status < 400 {
			t.Errorf("GET %s: %d %s", verb, status, text)
		}
	}
	if readOnly := []string{"checkpoints", "remote ", "query", "position"}; !slices.Equal(p.asked, readOnly) {
		t.Errorf("GETs asked %v, want %v", p.asked, readOnly)
	}
}
