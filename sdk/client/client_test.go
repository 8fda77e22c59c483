package client

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// host is a scripted one: each call of "METHOD path" gets the next answer, the last one again and again.
type host map[string][]answer

type answer struct {
	status int
	body   any
}

func (h host) client(t *testing.T) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v0/pipelines/p")
		answers := h[key]
		if len(answers) == 0 {
			t.Errorf("unexpected call: %s", key)
			w.WriteHeader(http.StatusTeapot)
			return
		}
		if len(answers) > 1 {
			h[key] = answers[1:]
		}
		w.WriteHeader(answers[0].status)
		if err := json.NewEncoder(w).Encode(answers[0].body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	c := New(server.URL, server.Client())
	c.PollEvery = time.Millisecond
	return c
}

func ok(bodies ...any) []answer {
	var all []answer
	for _, b := range bodies {
		all = append(all, answer{200, b})
	}
	return all
}

func mismatch() answer { return answer{400, Error{Message: "anew", Code: CodeIncarnationMismatch}} }

// ids are three uuid v7, rising.
func ids(t *testing.T) (first, second, third uuid.UUID) {
	t.Helper()
	for _, id := range []*uuid.UUID{&first, &second, &third} {
		*id = uuid.Must(uuid.NewV7())
	}
	return first, second, third
}

func failed(id uuid.UUID, minute int) *SyncFailure {
	return &SyncFailure{UUID: id, Error: "refused", FailedAt: time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)}
}

func TestASyncIsWaitedForUntilItCannotComeAnyMore(t *testing.T) {
	older, id, newer := ids(t)
	started := SyncStarted{Checkpoint: id, Incarnation: uuid.New()}
	for _, row := range []struct {
		name     string
		statuses []answer
		fails    string
	}{
		{"it is done when success names it", ok(SyncStatus{}, SyncStatus{Running: &id}, SyncStatus{Success: &id}), ""},
		{"it is done when a periodic push got there first", ok(SyncStatus{}, SyncStatus{Periodic: &id}), ""},
		{"it is done when a newer checkpoint superseded it", ok(SyncStatus{}, SyncStatus{Success: &older}, SyncStatus{Periodic: &newer}), ""},
		{"an older success is not it", ok(SyncStatus{Success: &older}, SyncStatus{Success: &older}, SyncStatus{Success: &id}), ""},
		{"a commit of an earlier day does not answer for a push that runs", ok(SyncStatus{Periodic: &id}, SyncStatus{Periodic: &id, Targets: []TargetSync{{Queued: []uuid.UUID{id}}}}, SyncStatus{Periodic: &id, Targets: []TargetSync{{Running: &id}}}, SyncStatus{Periodic: &id, Failure: failed(id, 1)}), "refused"},
		{"its failure ends the wait", ok(SyncStatus{}, SyncStatus{Running: &id}, SyncStatus{Failure: failed(id, 1)}), "refused"},
		{"an old failure of the same id is not its own", ok(SyncStatus{Failure: failed(id, 1)}, SyncStatus{Failure: failed(id, 1)}, SyncStatus{Success: &id}), ""},
		{"a second failure of the same id is", ok(SyncStatus{Failure: failed(id, 1)}, SyncStatus{Failure: failed(id, 1)}, SyncStatus{Failure: failed(id, 2)}), "refused"},
		{"while it waits its turn a failure is another's", ok(SyncStatus{}, SyncStatus{Failure: failed(id, 1), Targets: []TargetSync{{Queued: []uuid.UUID{id}}}}, SyncStatus{Failure: failed(id, 1), Targets: []TargetSync{{Running: &id}}}, SyncStatus{Success: &id}), ""},
		{"a failure of an older id is not its own", ok(SyncStatus{}, SyncStatus{Failure: failed(older, 1)}, SyncStatus{Success: &id}), ""},
		{"a restart makes it ask again", append(append(ok(SyncStatus{}), mismatch()), ok(SyncStatus{}, SyncStatus{Success: &id})...), ""},
		{"any other error is told", append(ok(SyncStatus{}), answer{404, Error{Message: "no pipeline", Code: CodePipelineNotFound}}), "no pipeline"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := host{"GET /checkpoint/sync_status": row.statuses, "POST /checkpoint/sync": ok(started)}.client(t)
			got, err := c.SyncCheckpoint(t.Context(), "p", true)
			if row.fails == "" && (err != nil || got != id) || row.fails != "" && (err == nil || !strings.Contains(err.Error(), row.fails)) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestASyncThatIsNotWaitedForAnswersWithItsID(t *testing.T) {
	id, _, _ := ids(t)
	c := host{"GET /checkpoint/sync_status": ok(SyncStatus{}), "POST /checkpoint/sync": ok(SyncStarted{Checkpoint: id})}.client(t)
	if got, err := c.SyncCheckpoint(t.Context(), "p", false); err != nil || got != id {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestACheckpointIsWaitedForUntilItCannotComeAnyMore(t *testing.T) {
	done := func(n uint64) CheckpointStatus { return CheckpointStatus{Success: &n} }
	failed := func(n uint64) CheckpointStatus {
		return CheckpointStatus{Failure: &CheckpointFailure{Sequence: n, Error: "disk full"}}
	}
	for _, row := range []struct {
		name     string
		statuses []answer
		fails    string
	}{
		{"a later success covers it", ok(CheckpointStatus{}, done(2), done(4)), ""},
		{"an older failure says nothing", ok(failed(2), done(3)), ""},
		{"its failure ends the wait", ok(CheckpointStatus{}, failed(3)), "disk full"},
		{"a restart makes it ask again", append([]answer{mismatch()}, ok(done(3))...), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := host{"POST /checkpoint": ok(CheckpointStarted{Sequence: 3, Incarnation: uuid.New()}), "GET /checkpoint_status": row.statuses}.client(t)
			err := c.CheckpointAndWait(t.Context(), "p")
			if (err != nil) != (row.fails != "") || err != nil && !strings.Contains(err.Error(), row.fails) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	id, _, _ := ids(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	c := host{"GET /checkpoint/sync_status": ok(SyncStatus{}), "POST /checkpoint/sync": ok(SyncStarted{Checkpoint: id})}.client(t)
	if _, err := c.SyncCheckpoint(ctx, "p", true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestTheLastSuccessfulSyncIsTheNewerOfBoth(t *testing.T) {
	older, newer, _ := ids(t)
	for _, row := range []struct {
		name   string
		status SyncStatus
		want   uuid.UUID
		err    error
	}{
		{"neither", SyncStatus{}, uuid.Nil, ErrNoneSynced},
		{"only a requested one", SyncStatus{Success: &older}, older, nil},
		{"only a periodic one", SyncStatus{Periodic: &older}, older, nil},
		{"the requested one is newer", SyncStatus{Success: &newer, Periodic: &older}, newer, nil},
		{"the periodic one is newer", SyncStatus{Success: &older, Periodic: &newer}, newer, nil},
	} {
		c := host{"GET /checkpoint/sync_status": ok(row.status)}.client(t)
		if got, err := c.LastSuccessfulCheckpointSync(t.Context(), "p"); got != row.want || !errors.Is(err, row.err) {
			t.Errorf("%s: got %v, %v", row.name, got, err)
		}
	}
	if got := ErrNoneSynced.Error(); got != "no checkpoints have been synced yet" {
		t.Errorf("the text is part of the contract, got %q", got)
	}
}

func TestASyncStatusIsSuccessWhenEitherNamesTheID(t *testing.T) {
	id, other, _ := ids(t)
	for _, row := range []struct {
		status SyncStatus
		want   Outcome
	}{
		{SyncStatus{Success: &id}, Success},
		{SyncStatus{Periodic: &id}, Success},
		{SyncStatus{Success: &id, Failure: failed(id, 1)}, Success},
		{SyncStatus{Failure: failed(id, 1)}, Failure},
		{SyncStatus{Success: &other, Failure: failed(other, 1)}, Unknown},
	} {
		c := host{"GET /checkpoint/sync_status": ok(row.status)}.client(t)
		got, text, err := c.SyncStatus(t.Context(), "p", id)
		if err != nil || got != row.want || (text != "") != (row.want == Failure) {
			t.Errorf("%+v: got %s %q, %v", row.status, got, text, err)
		}
	}
}

func TestAnAnswerThatIsNoneOfOursIsToldByItsStatus(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte("<html>bad gateway"))
	}))
	defer server.Close()
	_, err := New(server.URL+"/", nil).Pipelines(t.Context())
	var answered *Error
	if !errors.As(err, &answered) || answered.Status != 502 || answered.RetryAfter != 3*time.Second || !strings.Contains(err.Error(), "502") {
		t.Errorf("got %#v", err)
	}
}

// What was done is told by the answer: a client that takes it for a failure sends a batch without a seq again, and it counts twice.
func TestAnAnswerThatWasReadWholeStandsThoughItsConnectionBreaksBehindIt(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"step":7,"applied":1}`))
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	c := New(server.URL, server.Client())
	got, err := c.Ingest(t.Context(), "p", "i", "", 0, "", strings.NewReader("{}"))
	if err != nil || got.Step != 7 || got.Applied != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := c.Stop(t.Context(), "p", false); err != nil {
		t.Error(err)
	}
}

// Whoever waits polls: a connection for each look would use up the machine's ports.
func TestAnAnswerLeavesItsConnectionToTheNextCall(t *testing.T) {
	var opened atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(PipelineView{Error: strings.Repeat("long ", 2000)}); err != nil {
			t.Error(err)
		}
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c := New(server.URL, server.Client())
	for range 5 {
		if _, err := c.Pipeline(t.Context(), "p"); err != nil {
			t.Fatal(err)
		}
	}
	if got := opened.Load(); got != 1 {
		t.Errorf("%d connections for 5 calls in a row", got)
	}
}
