//go:build torture

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk/client"
)

// liar is a host that says of one id that it is committed, in one place of its status.
func liar(t *testing.T, place string, id uuid.UUID) string {
	t.Helper()
	status, view := client.SyncStatus{}, client.PipelineView{Targets: []client.TargetView{{}}}
	switch place {
	case "success":
		status.Success = &id
	case "periodic":
		status.Periodic = &id
	case "success of the target":
		status.Targets = []client.TargetSync{{Success: &id}}
	case "periodic of the target":
		status.Targets = []client.TargetSync{{Periodic: &id}}
	case "committed":
		view.Targets[0].Committed = &client.Point{UUID: id}
	case "a job that succeeded":
		view.Targets[0].Jobs = []client.JobView{{UUID: id, State: "succeeded"}}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = view
		if strings.HasSuffix(r.URL.Path, "/sync_status") {
			answer = status
		}
		check(t, json.NewEncoder(w).Encode(answer))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestTortureTheObserverSeesAnUpdateThatComesBeforeItsCommit(t *testing.T) {
	early := uuid.Must(uuid.NewV7())
	for _, place := range []string{"success", "periodic", "success of the target", "periodic of the target", "committed", "a job that succeeded"} {
		t.Run(place, func(t *testing.T) {
			target := t.TempDir()
			o := newObserver(liar(t, place, early), target)
			o.look(t.Context())
			if len(o.faults) != 1 || !strings.Contains(o.faults[0], place+" names checkpoint "+early.String()) {
				t.Fatalf("before the commit: %q", o.faults)
			}
			plant(t, target, early)
			o.faults = nil
			if o.look(t.Context()); len(o.faults) != 0 || o.looks != 2 {
				t.Fatalf("once the commit is there, after %d looks: %q", o.looks, o.faults)
			}
		})
	}
}

// CASES A8
func TestTortureTheObserverSeesAHalfWrittenCommit(t *testing.T) {
	id, target := uuid.Must(uuid.NewV7()), t.TempDir()
	path := plant(t, target, id)
	check(t, os.Truncate(path, 40))
	o := newObserver(liar(t, "periodic", id), target)
	if o.look(t.Context()); len(o.faults) != 2 || !strings.Contains(o.faults[0], path) {
		t.Fatalf("faults: %q", o.faults)
	}
}

// plant puts commit 1, of a checkpoint of that id, into a target's folder.
func plant(t *testing.T, target string, id uuid.UUID) string {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &repository.Commit{
		Number: 1, Kind: repository.KindCheckpoint, Epoch: 1, Writer: repository.Writer{ID: uuid.New(), Incarnation: uuid.New()},
		Created: now, WrittenBy: "cairn test",
		Checkpoint: repository.Checkpoint{
			ID: id, Step: 1, Created: now, Incarnation: uuid.New(), Identity: repository.Identity{Kind: "sql"},
			History: repository.History{{Lineage: uuid.New(), UpTo: 1}},
		},
	}
	stored, err := repository.EncodeCommit(c)
	check(t, err)
	path := filepath.Join(target, repository.CommitKey(pipe, 1))
	check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	check(t, os.WriteFile(path, stored, 0o600))
	return path
}
