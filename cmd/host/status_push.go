package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cairnsync/cairn/sdk/client"
)

// writeCommitted is what of the state is safe on a target, as far as that is known.
func writeCommitted(w io.Writer, v client.PipelineView, t client.TargetView, now time.Time) {
	switch {
	case t.Committed != nil:
		fmt.Fprintf(w, ", last commit %s, step %d, confirmed %s ago, %s", t.Committed.UUID, t.Committed.Step, ago(now, t.Committed.Created), behind(v.Step, t.Committed.Step))
	case t.InDoubt != nil:
		fmt.Fprintf(w, ", last commit %s, step %d, confirmed %s ago, is in doubt (it was seen to be gone, or the target to be put back): a loss of this machine may take everything",
			t.InDoubt.UUID, t.InDoubt.Step, ago(now, t.InDoubt.Created))
	case t.Rights == nil && t.LookedAt == nil: // nobody has asked the store yet, or it has not answered
		fmt.Fprint(w, ", no push from here yet: what it holds is not known")
	default:
		fmt.Fprint(w, ", nothing committed yet: a loss of this machine would take everything")
	}
}

// writeFailedPushes tells of the pushes that failed, whoever wanted them. What another line tells already is not said again.
func writeFailedPushes(w io.Writer, v client.PipelineView, t client.TargetView, now time.Time) {
	told := func(text string) bool {
		return t.Reason != "" && strings.HasPrefix(text, t.Reason) || strings.Contains(v.CheckpointError, text) || strings.Contains(v.Error, text)
	}
	if t.Failures > 0 {
		why := lastPeriodicError(t.Jobs)
		if told(why) {
			why = ""
		}
		fmt.Fprintf(w, "    %s\n", inARow(t.Failures, "periodic push", "periodic pushes", why))
	}
	if len(t.Jobs) == 0 {
		return
	}
	last := t.Jobs[len(t.Jobs)-1]
	switch {
	case !pushFailed(last), t.Failures > 0 && last.Trigger == "periodic", v.CheckpointError != "" && last.Trigger == "checkpoint", told(last.Error):
		return
	}
	when := ""
	if last.Finished != nil {
		when = " " + ago(now, *last.Finished) + " ago"
	}
	fmt.Fprintf(w, "    the last push (%s) failed%s: %s\n", last.Trigger, when, last.Error)
}

// pushFailed leaves out what held, fenced or ended a push: of that the target's own state tells, or the pipeline's.
func pushFailed(job client.JobView) bool { return job.State == "failed" || job.State == "unresolved" }

// lastPeriodicError is why the newest of the periodic pushes that failed did; "" when that is not remembered.
func lastPeriodicError(jobs []client.JobView) string {
	for i := len(jobs) - 1; i >= 0; i-- {
		if jobs[i].Trigger == "periodic" && pushFailed(jobs[i]) {
			return jobs[i].Error
		}
	}
	return ""
}

// inARow is how often something has failed without a success between, and why it last did, unless that is "".
func inARow(n int, one, many, why string) string {
	switch {
	case n == 1 && why == "":
		return fmt.Sprintf("1 %s failed", one)
	case n == 1:
		return fmt.Sprintf("1 %s failed: %s", one, why)
	case why == "":
		return fmt.Sprintf("%d %s failed in a row", n, many)
	}
	return fmt.Sprintf("%d %s failed in a row; the last: %s", n, many, why)
}
