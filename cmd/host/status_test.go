package main

import (
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk/client"
)

func TestATargetThatNobodyHasReachedIsNotCalledEmpty(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name   string
		target client.TargetView
		want   string
	}{
		{"before the first probe", client.TargetView{}, "no push from here yet: what it holds is not known"},
		{"once it has answered", client.TargetView{Rights: &client.RightsView{}}, "nothing committed yet: a loss of this machine would take everything"},
		{
			"once what was committed was seen to be gone",
			client.TargetView{InDoubt: &client.Point{Step: 7, Created: now.Add(-time.Minute)}, LookedAt: &now},
			"step 7, confirmed 1m0s ago, is in doubt (it was seen to be gone, or the target to be put back): a loss of this machine may take everything",
		},
		{"with a commit", client.TargetView{Committed: &client.Point{Step: 7, Created: now}}, "step 7"},
	} {
		var text strings.Builder
		writeTarget(&text, client.PipelineView{Step: 7}, row.target, now)
		if !strings.Contains(text.String(), row.want) {
			t.Errorf("%s: %s; want %q", row.name, text.String(), row.want)
		}
	}
}

func TestStatusTellsWhatIsWrongWithInputs(t *testing.T) {
	var text strings.Builder
	writeStatus(&text, client.PipelineView{Name: "p", State: "running", Step: 1, Inputs: []client.InputStats{
		{Name: "well", Applied: 7},
		{Name: "in", Stopped: "read in.csv: it shrank", Remedy: "when that is mended: `cairn pipeline stop p`", Rejected: 1},
		{Name: "logs", Note: "gone: a.log", Rejected: 12},
	}}, time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC))
	want := `p: running, input in stopped, at step 1
  input in: STOPPED: read in.csv: it shrank (when that is mended: ` + "`cairn pipeline stop p`" + `)
  input in: 1 record rejected, see table cairn_errors
  input logs: note: gone: a.log
  input logs: 12 records rejected, see table cairn_errors
  local checkpoint: none yet
`
	if text.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", text.String(), want)
	}
}
