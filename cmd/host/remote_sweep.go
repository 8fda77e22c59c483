package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/cairnsync/cairn/sdk/client"
)

func (p *program) sweepCommand() *cobra.Command {
	var opts client.SweepOptions
	cmd := &cobra.Command{
		Use: "sweep PIPELINE", Short: "Run retention and sweep on a target now, or tell what they would do", Args: cobra.ExactArgs(1),
		Long: `Have the running host retire the commits that the target's retention block does not keep, and delete the packs that no commit names. It runs
beside pushes. Without a retention block every commit is kept, and what failed pushes have left goes. --dry-run reads all of it, tells what would become of
each commit and why, and changes nothing; it works also where the host has not pushed yet.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.MaxDelete < 0 || opts.MaxDelete == 0 && cmd.Flags().Changed("max-delete") {
				return usageError{fmt.Errorf("--max-delete %d: want a number of checkpoints from 1 on; --dry-run deletes nothing", opts.MaxDelete)}
			}
			var done client.Sweep
			err := p.attend(cmd.Context(), attendance{pipeline: args[0], target: opts.Target}, func(ctx context.Context, c *client.Client) (err error) {
				done, err = c.Sweep(ctx, args[0], opts) // it answers when all is done
				return err
			})
			if err != nil {
				return err
			}
			return p.show(done, func(w io.Writer) { writeSweep(w, done) })
		},
	}
	cmd.Flags().StringVar(&opts.Target, "target", "", "target to sweep (may be left out where there is only one)")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "tell what would go, and change nothing")
	cmd.Flags().IntVar(&opts.MaxDelete, "max-delete", 0, "retire at most so many checkpoints, from 1 on, in place of the configured max_delete (default: as configured)")
	return cmd
}

func writeSweep(w io.Writer, s client.Sweep) {
	rows := [][]string{}
	for _, c := range s.Commits {
		id := c.Kind
		if c.UUID != nil {
			id = c.UUID.String()
		}
		rows = append(rows, []string{strconv.FormatUint(c.Number, 10), id, strconv.FormatUint(c.Step, 10), c.Created.Local().Format(time.DateTime), c.Fate, c.Why})
	}
	if len(rows) > 0 {
		table(w, []string{"COMMIT", "CHECKPOINT", "STEP", "CREATED", "FATE", "WHY"}, rows)
	}
	verb, swept, freed := "", int64(0), int64(0)
	if s.Packs != nil {
		swept, freed = s.Packs.Swept, s.Packs.SweptBytes
	}
	if s.DryRun {
		verb = "would be "
		if s.Packs != nil {
			swept, freed = s.Packs.Orphans, s.Packs.OrphanBytes
		}
	}
	switch {
	case s.Refused != "":
		fmt.Fprintf(w, "target %s: a real run would refuse: %s\n", s.Target, s.Refused)
		return
	case s.Policy == nil:
		fmt.Fprintf(w, "target %s: there is no retention block, so every commit %skept\n", s.Target, orIs(verb))
	default:
		fmt.Fprintf(w, "target %s: %s %skept, %d %sretired\n", s.Target, plural(s.Kept, "checkpoint"), verb, s.Retired, verb)
	}
	if s.Packs != nil {
		fmt.Fprintf(w, "  %d of %d packs %sswept, %s of %s\n", swept, s.Packs.Packs, verb, size(freed), size(s.Packs.Bytes))
		if s.Packs.Undecided > 0 {
			fmt.Fprintf(w, "  %s (%s) of a push that has not been decided: kept\n", plural(s.Packs.Undecided, "pack"), size(s.Packs.UndecidedBytes))
		}
		if s.Packs.More {
			fmt.Fprintln(w, "  there are more packs to sweep than one run takes: run it again")
		}
	}
	writeOddities(w, "  ", s.Dangling, s.Missing)
}

func orIs(verb string) string {
	if verb == "" {
		return "is "
	}
	return verb
}

func writeOddities(w io.Writer, indent string, dangling []string, missing []uint64) {
	for _, pin := range dangling {
		fmt.Fprintf(w, "%sWARNING: pin %s keeps nothing: its commit is not there\n", indent, pin)
	}
	for _, n := range missing {
		fmt.Fprintf(w, "%sWARNING: commit %d should be there and is not\n", indent, n)
	}
}

func (p *program) pinCommand() *cobra.Command {
	var opts client.PinOptions
	var id string
	cmd := &cobra.Command{
		Use: "pin PIPELINE PIN", Short: "Keep a commit on a target from retention, until it is unpinned", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if (id == "") == (opts.Commit == 0) {
				return usageError{errors.New("name what to keep: --checkpoint UUID or --commit N, one of the two")}
			}
			if id != "" {
				if opts.Checkpoint, err = uuid.Parse(id); err != nil {
					return usageError{fmt.Errorf("--checkpoint: %w", err)}
				}
			}
			var made client.Pin
			err = p.attend(cmd.Context(), attendance{pipeline: args[0], target: opts.Target}, func(ctx context.Context, c *client.Client) (err error) {
				made, err = c.Pin(ctx, args[0], args[1], opts)
				return err
			})
			if err != nil {
				return err
			}
			return p.show(made, func(w io.Writer) { fmt.Fprintf(w, "pin %s keeps commit %d\n", made.Name, made.Commit) })
		},
	}
	cmd.Flags().StringVar(&opts.Target, "target", "", "target (may be left out where there is only one)")
	cmd.Flags().StringVar(&id, "checkpoint", "", "keep the newest commit of this checkpoint")
	cmd.Flags().Uint64Var(&opts.Commit, "commit", 0, "keep the commit of this number")
	cmd.Flags().StringVar(&opts.Note, "note", "", "why, for people")
	return cmd
}

func (p *program) unpinCommand() *cobra.Command {
	var target string
	cmd := &cobra.Command{
		Use: "unpin PIPELINE PIN", Short: "Remove a pin; what it kept goes with the next retention that finds it too old", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := p.attend(cmd.Context(), attendance{pipeline: args[0], target: target}, func(ctx context.Context, c *client.Client) error {
				return c.Unpin(ctx, args[0], target, args[1])
			})
			if err != nil {
				return err
			}
			return p.show(map[string]string{"pipeline": args[0], "pin": args[1], "answer": "removed"}, func(w io.Writer) { fmt.Fprintf(w, "pin %s is removed\n", args[1]) })
		},
	}
	cmd.Flags().StringVar(&target, "target", "", "target (may be left out where there is only one)")
	return cmd
}

func (p *program) pinsCommand() *cobra.Command {
	var target string
	cmd := &cobra.Command{
		Use: "pins PIPELINE", Short: "List the pins on a target", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var all []client.Pin
			err := p.attend(cmd.Context(), attendance{pipeline: args[0], target: target}, func(ctx context.Context, c *client.Client) (err error) {
				all, err = c.Pins(ctx, args[0], target)
				return err
			})
			if err != nil {
				return err
			}
			return p.show(all, func(w io.Writer) { writePins(w, all) })
		},
	}
	cmd.Flags().StringVar(&target, "target", "", "target (may be left out where there is only one)")
	return cmd
}

func writePins(w io.Writer, all []client.Pin) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no pins")
		return
	}
	rows := [][]string{}
	for _, pin := range all {
		id := ""
		if pin.Checkpoint != nil {
			id = pin.Checkpoint.String()
		}
		rows = append(rows, []string{pin.Name, strconv.FormatUint(pin.Commit, 10), id, pin.Created.Local().Format(time.DateTime), pin.By, pin.Note})
	}
	table(w, []string{"PIN", "COMMIT", "CHECKPOINT", "CREATED", "BY", "NOTE"}, rows)
}

// writeMaintenance is what the last run of retention and sweep came to.
func writeMaintenance(w io.Writer, m *client.MaintenanceView, now time.Time) {
	if m == nil {
		return
	}
	if m.Error != "" {
		fmt.Fprintf(w, "    retention failed %s ago, pushes go on: %s\n", ago(now, m.Finished), m.Error)
		return
	}
	fmt.Fprintf(w, "    retention %s ago: %d checkpoints kept, %d retired", ago(now, m.Finished), m.Kept, m.Retired)
	if m.SweptAt != nil {
		fmt.Fprintf(w, "; packs hold %s", size(m.PackBytes))
	}
	if m.Orphans > 0 {
		fmt.Fprintf(w, ", %s of them named by no commit", size(m.OrphanBytes))
	}
	fmt.Fprintln(w)
	writeOddities(w, "    ", m.Dangling, m.Missing)
}
