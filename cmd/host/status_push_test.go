package main

import (
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk/client"
)

func TestStatusTellsThatTheLastPushFailedWhoeverWantedItAndOnce(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	then := now.Add(-12 * time.Second)
	job := func(id uint64, trigger, state, err string) client.JobView {
		return client.JobView{ID: id, Trigger: trigger, State: state, Error: err, Finished: &then}
	}
	good := job(1, "requested", "succeeded", "")
	denied := job(2, "requested", "failed", "put x: permission denied")
	for _, row := range []struct {
		name string
		view client.PipelineView
		t    client.TargetView
		want string
	}{
		{"no job", client.PipelineView{}, client.TargetView{}, ""},
		{"a requested one", client.PipelineView{}, client.TargetView{Jobs: []client.JobView{good, denied}}, "    the last push (requested) failed 12s ago: put x: permission denied\n"},
		{
			"one that nobody answered",
			client.PipelineView{},
			client.TargetView{Jobs: []client.JobView{job(1, "shutdown", "unresolved", "silence")}},
			"    the last push (shutdown) failed 12s ago: silence\n",
		},
		{"and then one that did not", client.PipelineView{}, client.TargetView{Jobs: []client.JobView{denied, good}}, ""},
		{"one that the reason tells of", client.PipelineView{}, client.TargetView{Reason: "put x: permission denied", Jobs: []client.JobView{denied}}, ""},
		{
			"a checkpoint of object storage",
			client.PipelineView{CheckpointError: "commit: put x; ask"},
			client.TargetView{Jobs: []client.JobView{job(1, "checkpoint", "failed", "put x: ask")}},
			"",
		},
		{"one that was held", client.PipelineView{}, client.TargetView{Jobs: []client.JobView{job(1, "requested", "held", "not ours")}}, ""},
		{"a periodic one", client.PipelineView{}, client.TargetView{Failures: 1, Jobs: []client.JobView{job(1, "periodic", "failed", "down")}}, "    1 periodic push failed: down\n"},
		{
			"periodic ones",
			client.PipelineView{},
			client.TargetView{Failures: 2, Jobs: []client.JobView{job(1, "periodic", "failed", "down"), job(2, "periodic", "unresolved", "silence")}},
			"    2 periodic pushes failed in a row; the last: silence\n",
		},
		{
			"a periodic one and then a good one that was asked for",
			client.PipelineView{},
			client.TargetView{Failures: 1, Jobs: []client.JobView{job(1, "periodic", "failed", "down"), good}},
			"    1 periodic push failed: down\n",
		},
		{
			"one of each",
			client.PipelineView{},
			client.TargetView{Failures: 3, Jobs: []client.JobView{job(1, "periodic", "failed", "down"), denied}},
			"    3 periodic pushes failed in a row; the last: down\n    the last push (requested) failed 12s ago: put x: permission denied\n",
		},
		{
			"periodic ones that the reason tells of",
			client.PipelineView{},
			client.TargetView{Reason: "gone", Failures: 2, Jobs: []client.JobView{job(1, "periodic", "failed", "gone")}},
			"    2 periodic pushes failed in a row\n",
		},
		{"a periodic one that is not remembered", client.PipelineView{}, client.TargetView{Failures: 1, Jobs: []client.JobView{good}}, "    1 periodic push failed\n"},
	} {
		var text strings.Builder
		writeTarget(&text, row.view, row.t, now)
		_, after, _ := strings.Cut(text.String(), "\n")
		var got strings.Builder
		for line := range strings.Lines(after) {
			if strings.Contains(line, "push") && !strings.Contains(line, "never proven") {
				got.WriteString(line)
			}
		}
		if got.String() != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got.String(), row.want)
		}
	}
}

func TestOnePullThatFailedIsNoRow(t *testing.T) {
	var text strings.Builder
	writeStandby(&text, client.PipelineView{}, client.StandbyView{Failures: 1, Error: "down"}, time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC))
	if !strings.Contains(text.String(), "  1 pull failed: down\n") {
		t.Error(text.String())
	}
}
