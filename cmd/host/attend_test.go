package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk/client"
)

// A call that waited for a target said nothing until its client gave up, and then that the host was overloaded.
func TestACallThatWaitsForATargetSaysWhatIsInTheWay(t *testing.T) {
	const why = `target \"t\": attempt 3: list p/pins/: no such folder`
	said := make(chan struct{})     // closed by the second look: what the first has found is told by then
	answered := make(chan struct{}) // no look comes to an end any more, for it would be told again
	var looks atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v0/pipelines/p", func(w http.ResponseWriter, r *http.Request) {
		switch n := looks.Add(1); {
		case n == 2:
			close(said)
		case n > 2:
			select {
			case <-answered:
			case <-r.Context().Done():
			}
		}
		fmt.Fprintf(w, `{"name": "p", "targets": [{"target": "t", "state": "pushing", "running": {"error": "%s"}}]}`, why)
	})
	mux.HandleFunc("GET /v0/pipelines/p/remote/pins", func(w http.ResponseWriter, _ *http.Request) {
		<-said
		defer close(answered)
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, `{"error_code": "TargetError", "message": "gave up after 30s"}`)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	var out, errs strings.Builder
	p := &program{stdout: &out, stderr: &errs, look: time.Millisecond}
	if code := run(t.Context(), p, []string{"remote", "pins", "p", "--address", server.URL}); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	want := "still waiting: target \"t\": attempt 3: list p/pins/: no such folder\ncairn: gave up after 30s\n"
	if errs.String() != want {
		t.Errorf("said %q, want %q", errs.String(), want)
	}
}

// watched is what is said while the status becomes one view after the other.
func watched(t *testing.T, a attendance, views []client.PipelineView) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	look := func(context.Context, string) (client.PipelineView, error) {
		v := views[0]
		views = views[1:]
		return v, nil
	}
	ticks := make(chan time.Time)
	go func() {
		defer cancel()
		for range len(views) {
			ticks <- time.Time{}
		}
	}()
	var errs strings.Builder
	if err := (&program{stderr: &errs}).watch(ctx, a, ticks, look); err != nil {
		t.Fatal(err)
	}
	return errs.String()
}

func TestWhatIsInTheWayIsToldWhenItChangesAndNowAndThenAgain(t *testing.T) {
	target := func(why string) client.PipelineView {
		return client.PipelineView{Targets: []client.TargetView{{Target: "other", Reason: "of no interest"}, {Target: "t", Reason: why}}}
	}
	views := []client.PipelineView{target(""), target("a"), target("a"), target("b"), target("")}
	for range sayAgain {
		views = append(views, target("b"))
	}
	errs := watched(t, attendance{pipeline: "p", target: "t"}, views)
	if want := "still waiting: a\nstill waiting: b\nstill waiting: b\n"; errs != want {
		t.Errorf("said %q", errs)
	}
}

func TestACallIsGivenUpWhenTheHostDoesNotEvenTellItsStatus(t *testing.T) {
	silent := unreachableError{errors.New("silence")}
	answers := slices.Concat(slices.Repeat([]error{silent}, silentLooks-1), []error{errors.New("not now")}, slices.Repeat([]error{silent}, silentLooks))
	look := func(context.Context, string) (client.PipelineView, error) {
		err := answers[0]
		answers = answers[1:]
		return client.PipelineView{}, err
	}
	ticks := make(chan time.Time, len(answers))
	for range answers {
		ticks <- time.Time{}
	}
	if err := (&program{}).watch(t.Context(), attendance{pipeline: "p"}, ticks, look); !errors.Is(err, silent) {
		t.Errorf("got %v", err)
	}
	if len(answers) > 0 {
		t.Errorf("it was given up with %d looks to come, though the host had answered in between", len(answers))
	}
}

func TestAnActivationSaysOnceWhatItWaitsFor(t *testing.T) {
	views := []client.PipelineView{
		{State: "standby", Doing: "following"},
		{State: "starting", Doing: "claiming the targets: t is silent", Targets: []client.TargetView{{Target: "t", Reason: "of no interest"}}},
		{State: "starting", Doing: "pulling commit 3: 1 KiB"},
		{State: "starting", Doing: "pulling commit 3: 2 KiB"},
		{State: "running", Doing: "until 12:00"},
	}
	errs := watched(t, attendance{pipeline: "p", starting: true}, views)
	if want := "still waiting: claiming the targets: t is silent\nstill waiting: pulling commit 3: 1 KiB\n"; errs != want {
		t.Errorf("said %q", errs)
	}
}

func TestALimitedWaitForACheckpointSaysThatTheHostGoesOn(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v0/pipelines/p/checkpoint", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"checkpoint_sequence_number": 1}`) })
	mux.HandleFunc("GET /v0/pipelines/p/checkpoint_status", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) })
	server := httptest.NewServer(mux)
	defer server.Close()
	var errs strings.Builder
	code := run(t.Context(), &program{stderr: &errs}, []string{"checkpoint", "create", "p", "--timeout", "10ms", "--address", server.URL})
	if code != exitFailed || !strings.Contains(errs.String(), "the checkpoint has not come within 10ms; the host goes on trying") {
		t.Errorf("exit code %d, said %q", code, errs.String())
	}
	errs.Reset()
	if code := run(t.Context(), &program{stderr: &errs}, []string{"checkpoint", "create", "p", "--timeout", "-1s"}); code != exitUsage {
		t.Errorf("exit code %d, said %q", code, errs.String())
	}
}

func TestACheckpointOfFileStorageDoesNotWaitForTargets(t *testing.T) {
	v := client.PipelineView{Targets: []client.TargetView{{Target: "t", Reason: "held"}}}
	for storage, want := range map[string]string{"file": "", "object": "held"} {
		v.Storage.Type = storage
		if got := (attendance{objects: true}).inTheWay(v); got != want {
			t.Errorf("%s: %q", storage, got)
		}
	}
}
