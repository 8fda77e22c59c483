package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/cairnsync/cairn/sdk/client"
)

func (p *program) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status [PIPELINE]", Short: "Show what runs, what is safe and what would be lost now", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			views, err := p.views(cmd.Context(), args)
			if err != nil {
				return err
			}
			now := time.Now() //nolint:forbidigo // ages are for a person who reads them now
			return p.show(views, func(w io.Writer) {
				for _, v := range views {
					writeStatus(w, v, now)
				}
			})
		},
	}
}

func (p *program) views(ctx context.Context, names []string) ([]client.PipelineView, error) {
	if len(names) == 0 {
		return p.client().Pipelines(ctx)
	}
	view, err := p.client().Pipeline(ctx, names[0])
	return []client.PipelineView{view}, err
}

// writeStatus is a pipeline in words.
func writeStatus(w io.Writer, v client.PipelineView, now time.Time) {
	fmt.Fprintf(w, "%s: %s%s at step %d", v.Name, v.State, stoppedInputs(v.Inputs), v.Step)
	switch {
	case strings.HasPrefix(v.Doing, "until "):
		fmt.Fprintf(w, ", waiting %s", v.Doing)
	case v.Doing != "":
		fmt.Fprintf(w, ", %s", v.Doing)
	}
	fmt.Fprintln(w)
	if v.Error != "" {
		fmt.Fprintf(w, "  error: %s\n", v.Error)
	}
	if v.Standby != nil {
		writeStandby(w, v, *v.Standby, now)
		return
	}
	writeInputs(w, v.Inputs)
	if v.StartedFrom != "" {
		fmt.Fprintf(w, "  started: %s\n", v.StartedFrom)
	}
	if v.Checkpoint == nil {
		fmt.Fprintln(w, "  local checkpoint: none yet")
	} else {
		fmt.Fprintf(w, "  local checkpoint: %s, step %d, %s ago, %s\n", v.Checkpoint.UUID, v.Checkpoint.Step, ago(now, v.Checkpoint.Created), behind(v.Step, v.Checkpoint.Step))
	}
	if v.StepError != "" {
		fmt.Fprintf(w, "  steps wait: %s\n", v.StepError)
	}
	if v.CheckpointError != "" {
		fmt.Fprintf(w, "  the last checkpoint failed: %s\n", v.CheckpointError)
	}
	for _, t := range v.Targets {
		writeTarget(w, v, t, now)
	}
}

// stoppedInputs is what the headline says of inputs that take no more: who reads no further than "running" would take all for well.
func stoppedInputs(inputs []client.InputStats) string {
	var names []string
	for _, in := range inputs {
		if in.Stopped != "" {
			names = append(names, in.Name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return ", input " + names[0] + " stopped,"
	}
	return ", inputs " + strings.Join(names, ", ") + " stopped,"
}

// writeInputs tells what is wrong with inputs; of those that are in order there is nothing to say.
func writeInputs(w io.Writer, inputs []client.InputStats) {
	for _, in := range inputs {
		if in.Stopped != "" {
			fmt.Fprintf(w, "  input %s: STOPPED: %s (%s)\n", in.Name, in.Stopped, in.Remedy)
		}
		if in.Note != "" {
			fmt.Fprintf(w, "  input %s: note: %s\n", in.Name, in.Note)
		}
		if in.Rejected > 0 {
			fmt.Fprintf(w, "  input %s: %s rejected, see table cairn_errors\n", in.Name, plural(in.Rejected, "record"))
		}
	}
}

func writeTarget(w io.Writer, v client.PipelineView, t client.TargetView, now time.Time) {
	fmt.Fprintf(w, "  target %s: %s", t.Target, t.State)
	if t.Plugin != nil && t.Plugin.State != "ready" {
		fmt.Fprintf(w, ", plugin %s %s", t.Plugin.Name, t.Plugin.State)
	}
	writeCommitted(w, v, t, now)
	if t.LookedAt != nil {
		fmt.Fprintf(w, ", last looked at %s ago", ago(now, *t.LookedAt))
	}
	if t.NextPush != nil && t.NextPush.After(now) {
		fmt.Fprintf(w, ", next push in %s", round(t.NextPush.Sub(now)))
	}
	fmt.Fprintln(w)
	for _, warning := range t.Warnings {
		fmt.Fprintf(w, "    WARNING: %s\n", warning)
	}
	if t.Reason != "" {
		fmt.Fprintf(w, "    %s\n", t.Reason)
	}
	writeProof(w, v.Name, t, now)
	writeRights(w, t.Rights, now)
	writeMaintenance(w, t.Maintenance, now)
	if t.Running != nil {
		fmt.Fprintf(w, "    pushing %s: %d requests, %s so far\n", t.Running.UUID, t.Running.Requests, size(t.Running.Bytes))
		if t.Running.Error != "" {
			fmt.Fprintf(w, "    trying again: %s\n", t.Running.Error)
		}
	}
	writeFailedPushes(w, v, t, now)
}

// writeRights tells what a probe has found: all of it, when something is missing.
func writeRights(w io.Writer, r *client.RightsView, now time.Time) {
	if r == nil {
		return
	}
	var ok, told []string
	for _, right := range []struct {
		name string
		seen client.RightView
	}{{"read", r.Read}, {"write", r.Write}, {"list", r.List}, {"delete", r.Delete}, {"conditional", r.Conditional}} {
		if right.seen.State == "ok" {
			ok = append(ok, right.name)
			continue
		}
		told = append(told, right.name+" "+right.seen.State)
	}
	if len(ok) > 0 {
		told = append(told, strings.Join(ok, ", ")+" ok")
	}
	fmt.Fprintf(w, "    rights, tried %s ago: %s\n", ago(now, r.ProbedAt), strings.Join(told, "; "))
}

func behind(step, safe uint64) string {
	if step <= safe {
		return "up to date"
	}
	return plural(step-safe, "step") + " behind"
}

func ago(now, then time.Time) string { return round(max(0, now.Sub(then))).String() }

func round(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// table aligns columns.
func table(w io.Writer, header []string, rows [][]string) {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, strings.Join(header, "\t"))
	for _, row := range rows {
		fmt.Fprintln(out, strings.Join(row, "\t"))
	}
	_ = out.Flush() // a broken pipe ends the program anyway
}
