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
		{"with a commit", client.TargetView{Committed: &client.Point{Step: 7, Created: now}}, "step 7"},
	} {
		var text strings.Builder
		writeTarget(&text, client.PipelineView{Step: 7}, row.target, now)
		if !strings.Contains(text.String(), row.want) {
			t.Errorf("%s: %s; want %q", row.name, text.String(), row.want)
		}
	}
}
