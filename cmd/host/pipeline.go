package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cairnsync/cairn/sdk/client"
)

func (p *program) pipelineCommand() *cobra.Command {
	var now bool
	stop := p.verb("stop PIPELINE", "Take a last checkpoint, push it where push_on_shutdown says so, and stop", "is stopping",
		func(ctx context.Context, c *client.Client, name string) error { return c.Stop(ctx, name, !now) })
	stop.Flags().BoolVar(&now, "now", false, "stop without a checkpoint and without a push")
	return group("pipeline", "Start, pause, resume, stop, follow, activate and adopt",
		p.verb("start PIPELINE", "Start a stopped or failed pipeline", "is starting", starting),
		p.verb("pause PIPELINE", "Hold back steps; checkpoints and pushes go on", "is paused", pausing),
		p.verb("resume PIPELINE", "End a pause", "runs on", resuming),
		stop,
		p.verb("standby PIPELINE", "Make a stopped pipeline, or a primary that was fenced, follow its target", "becomes a standby", following),
		p.activateCommand(), p.adoptCommand())
}

func following(ctx context.Context, c *client.Client, name string) error { return c.Standby(ctx, name) }

func (p *program) activateCommand() *cobra.Command {
	var opts client.ActivateOptions
	cmd := &cobra.Command{
		Use: "activate PIPELINE", Short: "Make a standby the primary: fence the one before, pull the newest commit, start from it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var done client.Activated
			err := p.attend(cmd.Context(), attendance{pipeline: args[0], starting: true}, func(ctx context.Context, c *client.Client) (err error) {
				done, err = c.Activate(ctx, args[0], opts) // it answers when all is pulled
				return err
			})
			if err != nil {
				return err
			}
			return p.show(done, func(w io.Writer) { writeActivated(w, args[0], done) })
		},
	}
	cmd.Flags().BoolVar(&opts.AcceptLocal, "accept-local", false, "start the local copy where the newest commit cannot be had, and tell what is lost")
	cmd.Flags().StringVar(&opts.Target, "target", "", "only this target has to answer, and only it is claimed (default: all of the pipeline)")
	return cmd
}

func writeActivated(w io.Writer, name string, a client.Activated) {
	if a.From == nil {
		fmt.Fprintf(w, "%s is the primary now, with an empty state\n", name)
	} else {
		fmt.Fprintf(w, "%s is the primary now, from checkpoint %s (step %d, commit %d of target %s), %s pulled\n", name, a.From.UUID, a.From.Step, a.Number, a.Target, size(a.PulledBytes))
	}
	fmt.Fprintf(w, "  %s\n", a.Loss.Text)
	for _, c := range a.Claims {
		switch {
		case c.Fenced != "":
			fmt.Fprintf(w, "  target %s: epoch %d; fenced: %s\n", c.Target, c.Epoch, c.Fenced)
		case c.Error == "":
			fmt.Fprintf(w, "  target %s: epoch %d\n", c.Target, c.Epoch)
		}
	}
	for _, warning := range a.Warnings {
		fmt.Fprintf(w, "  WARNING: %s\n", warning)
	}
}

func starting(ctx context.Context, c *client.Client, name string) error { return c.Start(ctx, name) }

func pausing(ctx context.Context, c *client.Client, name string) error { return c.Pause(ctx, name) }

func resuming(ctx context.Context, c *client.Client, name string) error { return c.Resume(ctx, name) }

func (p *program) verb(use, short, done string, do func(context.Context, *client.Client, string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := do(cmd.Context(), p.client(), args[0]); err != nil {
				return err
			}
			return p.show(map[string]string{"pipeline": args[0], "answer": done}, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", args[0], done) })
		},
	}
}

func (p *program) adoptCommand() *cobra.Command {
	return &cobra.Command{
		Use: "adopt PIPELINE TARGET", Short: "Let pushes go on top of the history that a held target has", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var before client.PipelineView
			err := p.attend(cmd.Context(), attendance{pipeline: args[0], target: args[1]}, func(ctx context.Context, c *client.Client) (err error) {
				if before, err = c.Pipeline(ctx, args[0]); err != nil {
					return err
				}
				return c.Adopt(ctx, args[0], args[1])
			})
			if err != nil {
				return err
			}
			return p.show(map[string]string{"pipeline": args[0], "target": args[1], "answer": "adopted"}, func(w io.Writer) {
				fmt.Fprintf(w, "target %s is adopted: the next push of %s becomes its newest checkpoint, also where what lies there is not in our state\n", args[1], args[0])
				if ready := func(t client.TargetView) bool { return t.Target == args[1] && t.State == "ready" }; slices.ContainsFunc(before.Targets, ready) {
					fmt.Fprintf(w, "(it was not held: pushes were going there anyway)\n")
				}
			})
		},
	}
}

func (p *program) queryCommand() *cobra.Command {
	return &cobra.Command{
		Use: "query PIPELINE SQL", Short: "Read the live state; rows as JSON lines", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] == "" {
				return usageError{errors.New("give a statement")}
			}
			return p.client().Query(cmd.Context(), args[0], args[1], p.stdout)
		},
	}
}
