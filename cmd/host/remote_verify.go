package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/cairnsync/cairn/core/host"
	"github.com/cairnsync/cairn/sdk/client"
)

// shownProblems is how many problems are told in words; --json tells all.
const shownProblems = 20

func (p *program) verifyCommand() *cobra.Command {
	var o client.VerifyOptions
	var sample string
	cmd := &cobra.Command{
		Use: "verify PIPELINE", Args: cobra.ExactArgs(1),
		Short: "Prove that what the targets list can be restored; with --config, without a running host",
		Long: `Read every object of the repositories but packs, and see that each pack is there in its right length. With --sample a part of the chunks is
fetched and checked as well, another one each time and always some of the newest commit; with --deep every chunk is. Nothing is written to a target. A running
host keeps the proof, and "cairn status" shows its age. Exit code 9 means that something is missing or damaged; 1, that a target could not be verified.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Deep && sample != "" {
				return usageError{errors.New("--deep reads every chunk: leave --sample out")}
			}
			var err error
			if o.Sample, err = parseFraction(sample); err != nil {
				return err
			}
			return p.verify(cmd, args[0], o)
		},
	}
	p.configFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.Target, "target", "", "only this target")
	flags.StringVar(&sample, "sample", "", "read and check this part of the chunks, as 5% or 0.05")
	flags.BoolVar(&o.Deep, "deep", false, "read and check every chunk")
	flags.BoolVar(&o.Newest, "newest", false, "look at the newest commit only, as after a repair; no proof is kept")
	return cmd
}

// parseFraction reads "5%" or "0.05"; "" is 0.
func parseFraction(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, percent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(number, 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f > 0 && f <= 1) {
		return 0, usageError{fmt.Errorf("--sample %q: write a part above 0 and at most all, as 5%% or 0.05", text)}
	}
	return f, nil
}

func (p *program) verify(cmd *cobra.Command, pipeline string, o client.VerifyOptions) error {
	views, err := p.verified(cmd, pipeline, o)
	if err != nil {
		return err
	}
	err = p.show(views, func(w io.Writer) {
		for _, v := range views {
			writeVerified(w, v)
		}
	})
	return errors.Join(err, verifyOutcome(views))
}

func (p *program) verified(cmd *cobra.Command, pipeline string, o client.VerifyOptions) ([]client.VerifyView, error) {
	ctx := cmd.Context()
	bar := p.progress("verifying")
	defer bar.end()
	if p.config == "" {
		defer p.watchVerify(ctx, pipeline, o.Target, bar)()
		var views []client.VerifyView
		err := p.attend(ctx, attendance{pipeline: pipeline, target: o.Target}, func(ctx context.Context, c *client.Client) (err error) {
			views, err = c.Verify(ctx, pipeline, o)
			return err
		})
		return views, err
	}
	offline, err := p.offline(ctx, pipeline, host.WithTargets)
	if err != nil {
		return nil, err
	}
	views, err := offline.Verify(ctx, o, bar.report)
	return views, offlineError(err)
}

// watchVerify asks the host every half second how far it is, until it is stopped.
func (p *program) watchVerify(ctx context.Context, pipeline, target string, bar *progress) (stop func()) {
	if p.asJSON {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		every := time.NewTicker(500 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			view, err := p.client().Pipeline(ctx, pipeline)
			if err != nil {
				continue // the verification itself will say so
			}
			for _, t := range view.Targets {
				if v := t.Verifying; v != nil && (target == "" || target == t.Target) {
					bar.report(v.Done, v.Total)
				}
			}
		}
	})
	return func() { cancel(); watching.Wait() }
}

// verifyOutcome is why the command does not end with 0: what is broken comes before what could not be looked at.
func verifyOutcome(views []client.VerifyView) error {
	for _, v := range views {
		if n := len(v.Problems) + v.MoreProblems; n > 0 {
			broken := plural(len(v.Broken), "commit") + " cannot"
			if unreadable(v) {
				broken = "no commit can"
			}
			return brokenError{fmt.Errorf("target %q: %s, %s be restored whole", v.Target, plural(n, "problem"), broken)}
		}
	}
	for _, v := range views {
		if v.Known != nil {
			return brokenError{fmt.Errorf("target %q: known to be broken: %s, which this verification was not deep enough to see", v.Target, plural(len(v.Known.Commits), "commit"))}
		}
	}
	for _, v := range views {
		if v.Error != "" {
			return fmt.Errorf("target %q could not be verified: %s", v.Target, v.Error)
		}
	}
	return nil
}

// plural is a number of things.
func plural[N int | int64 | uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func writeVerified(w io.Writer, v client.VerifyView) {
	if v.Error != "" {
		fmt.Fprintf(w, "target %s: not verified: %s\n", v.Target, v.Error)
		return
	}
	fmt.Fprintf(w, "target %s: %s: %s, %s", v.Target, level(v.Level, v.Sample), plural(v.Commits, "commit"), plural(v.Packs, "pack"))
	if v.Chunks > 0 {
		fmt.Fprintf(w, "; %s read and checked, %s", plural(v.Chunks, "chunk"), size(v.Bytes))
	}
	fmt.Fprintf(w, "; %s in %s\n", plural(v.Requests, "request"), round(v.Finished.Sub(v.Started)))
	if v.Orphans > 0 {
		fmt.Fprintf(w, "  %s of %s that no commit names: a sweep takes what nobody needs\n", plural(v.Orphans, "pack"), size(v.OrphanBytes))
	}
	for i, problem := range v.Problems {
		if i == shownProblems {
			fmt.Fprintf(w, "  and %d more; --json lists them\n", len(v.Problems)-i+v.MoreProblems)
			break
		}
		writeProblem(w, problem)
	}
	if k := v.Known; k != nil {
		fmt.Fprintf(w, "  known to be broken since a verification at %s (%s), and not looked at as deep here: commits %s\n", k.At.Local().Format(time.DateTime), level(k.Level, k.Sample), listed(k.Commits))
	}
	switch {
	case v.Proof != nil:
		fmt.Fprintf(w, "  proven: commit %d (checkpoint %s)%s\n", v.Proof.Commit, v.Proof.UUID, before(v.Proof.Commits))
	case len(v.Problems) == 0 && v.Known != nil: // told above
	case len(v.Problems) == 0:
		fmt.Fprintln(w, "  no checkpoint is there: nothing to prove")
	default:
		broken := listed(v.Broken)
		if unreadable(v) {
			broken = "all, until that is put right"
		}
		fmt.Fprintf(w, "  commits that cannot be restored whole: %s\n", broken)
	}
}

// unreadable says that what is missing or damaged keeps every commit from being read, however whole it is.
func unreadable(v client.VerifyView) bool {
	return slices.ContainsFunc(v.Problems, func(p client.ProblemView) bool { return p.Kind == "damaged-format" || p.Kind == "damaged-gc" })
}

func writeProblem(w io.Writer, p client.ProblemView) {
	fmt.Fprintf(w, "  %s: %s: %s\n", p.Kind, p.Object, p.What)
	if len(p.Commits) > 0 {
		fmt.Fprintf(w, "    breaks commits %s", listed(p.Commits))
		if p.File != "" {
			fmt.Fprintf(w, ", in file %q", p.File)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "    remedy: %s\n", p.Remedy)
}

// before tells of the commits that were proven with the newest.
func before(commits int) string {
	if commits < 2 {
		return ""
	}
	return fmt.Sprintf(" and the %d before it", commits-1)
}

// level is how deep a verification went, in words.
func level(name string, sample float64) string {
	if sample > 0 {
		return fmt.Sprintf("%s of %g%%", name, sample*100)
	}
	return name
}

// listed names some numbers.
func listed(numbers []uint64) string {
	if len(numbers) == 0 {
		return "none"
	}
	const shown = 10
	var texts []string
	for i, n := range numbers {
		if i == shown {
			texts = append(texts, fmt.Sprintf("and %d more", len(numbers)-shown))
			break
		}
		texts = append(texts, strconv.FormatUint(n, 10))
	}
	return strings.Join(texts, ", ")
}

func (p *program) repairCommand() *cobra.Command {
	var target string
	var deep bool
	cmd := &cobra.Command{
		Use: "repair PIPELINE --target NAME", Args: cobra.ExactArgs(1),
		Short: "Where the newest commit of a target is broken, commit the newest local checkpoint anew, with all that is missing",
		Long: `Verify the target and, if its newest commit is not whole, push the newest local checkpoint as a commit that needs nothing of what is missing or
damaged. Nothing is overwritten or deleted: older commits that need it stay broken, are named, and go with retention.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if target == "" {
				return usageError{errors.New("name the target: --target NAME")}
			}
			var view client.RepairView
			err := p.attend(cmd.Context(), attendance{pipeline: args[0], target: target}, func(ctx context.Context, c *client.Client) (err error) {
				view, err = c.Repair(ctx, args[0], target, deep)
				return err
			})
			if err != nil {
				return err
			}
			return p.show(view, func(w io.Writer) { writeRepaired(w, view) })
		},
	}
	cmd.Flags().StringVar(&target, "target", "", "target to repair")
	cmd.Flags().BoolVar(&deep, "deep", false, "read and check every chunk of the newest commit first")
	return cmd
}

func writeRepaired(w io.Writer, v client.RepairView) {
	writeVerified(w, v.Found)
	switch {
	case v.Repaired == nil && v.Found.Commits == 0:
		fmt.Fprintf(w, "target %s: there is no commit: nothing was written\n", v.Target)
	case v.Repaired == nil:
		fmt.Fprintf(w, "target %s: the newest commit is whole: nothing was written\n", v.Target)
	default:
		fmt.Fprintf(w, "target %s: checkpoint %s of step %d is committed anew as commit %d, %s stored\n", v.Target, v.Repaired.UUID, v.Repaired.Step, v.Number, size(v.Bytes))
	}
	if len(v.Broken) > 0 {
		fmt.Fprintf(w, "commits %s stay broken; retention lets them go\n", listed(v.Broken))
	}
}

// writeProof tells how old the last proof is, and those that went deeper, and what is known to be broken.
func writeProof(w io.Writer, pipeline string, t client.TargetView, now time.Time) {
	switch {
	case t.Proof != nil:
		for _, p := range append([]client.ProofView{*t.Proof}, t.Deeper...) {
			fmt.Fprintf(w, "    proven %s ago (%s): commit %d%s\n", ago(now, p.At), level(p.Level, p.Sample), p.Commit, before(p.Commits))
		}
	case t.Committed != nil && t.Damage == nil:
		fmt.Fprintf(w, "    never proven from here: `cairn remote verify %s` does it\n", pipeline)
	}
	if d := t.Damage; d != nil {
		what := fmt.Sprintf("`cairn remote verify %s` names what, and the remedy", pipeline)
		if len(d.Commits) > 0 && t.Committed != nil { // where all is gone a repair has nothing to go on from
			what = fmt.Sprintf("commits that cannot be restored whole: %s; `cairn remote repair %s --target %s` makes the newest state whole", listed(d.Commits), pipeline, t.Target)
		}
		fmt.Fprintf(w, "    DAMAGED, found %s ago (%s): %s\n", ago(now, d.At), level(d.Level, d.Sample), what)
	}
}
