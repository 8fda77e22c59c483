package main

import (
	"fmt"
	"io"
	"time"

	"github.com/cairnsync/cairn/sdk/client"
)

// writeStandby is what a standby has and what it lacks.
func writeStandby(w io.Writer, v client.PipelineView, s client.StandbyView, now time.Time) {
	if s.Pulled == nil {
		fmt.Fprintln(w, "  pulled: nothing yet")
	} else {
		fmt.Fprintf(w, "  pulled: commit %d of %s, checkpoint %s, step %d, taken %s ago\n", s.Pulled.Number, whence(*s.Pulled), s.Pulled.UUID, s.Pulled.Step, ago(now, s.Pulled.Created))
	}
	switch {
	case s.Newest == nil:
		fmt.Fprintf(w, "  newest on target %s: not seen", s.Target)
	case s.Lag.None():
		fmt.Fprintf(w, "  newest on %s: commit %d, which is here", whence(*s.Newest), s.Newest.Number)
	default:
		fmt.Fprintf(w, "  newest on %s: commit %d, step %d; behind by %s, %s, %s", whence(*s.Newest), s.Newest.Number, s.Newest.Step,
			round(time.Duration(s.Lag.Seconds*float64(time.Second))), counted(s.Lag.Steps, "steps"), counted(s.Lag.Commits, "commits"))
	}
	if s.LookedAt != nil {
		fmt.Fprintf(w, ", looked %s ago", ago(now, *s.LookedAt))
	}
	if s.NextPull != nil && s.NextPull.After(now) {
		fmt.Fprintf(w, ", again in %s", round(s.NextPull.Sub(now)))
	}
	fmt.Fprintln(w)
	if s.Pulling != nil {
		fmt.Fprintf(w, "  pulling commit %d: %s of %s\n", s.Pulling.Commit, size(s.Pulling.Done), size(s.Pulling.Total))
	}
	if s.Failures > 0 {
		fmt.Fprintf(w, "  %s\n", inARow(s.Failures, "pull", "pulls", s.Error))
	}
	if s.ActivationError != "" {
		fmt.Fprintf(w, "  %s\n", s.ActivationError)
	}
	for _, t := range v.Targets {
		if t.Plugin != nil && t.Plugin.State != "ready" {
			fmt.Fprintf(w, "  target %s: plugin %s %s\n", t.Target, t.Plugin.Name, t.Plugin.State)
		}
	}
}

// counted is a number that may not be known.
func counted(n *uint64, what string) string {
	if n == nil {
		return "an unknown number of " + what
	}
	return fmt.Sprintf("%d %s", *n, what)
}

func whence(c client.Commit) string {
	if c.Seed {
		return "the seed " + c.Target
	}
	return "target " + c.Target
}
