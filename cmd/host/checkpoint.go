package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/host"
	"github.com/cairnsync/cairn/sdk/client"
)

func (p *program) checkpointCommand() *cobra.Command {
	return group("checkpoint", "Take, list, push and restore checkpoints", p.createCommand(), p.listCommand(), p.pushCommand(), p.restoreCommand())
}

func (p *program) createCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "create PIPELINE", Short: "Take a local checkpoint of the state as it is now, and wait for it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkTimeout(timeout); err != nil {
				return err
			}
			ctx, cancel := within(cmd.Context(), timeout, "the checkpoint")
			defer cancel()
			err := p.attend(ctx, attendance{pipeline: args[0], objects: true}, func(ctx context.Context, c *client.Client) error {
				return c.CheckpointAndWait(ctx, args[0])
			})
			if err != nil {
				return err
			}
			all, err := p.client().Checkpoints(cmd.Context(), args[0])
			if err != nil || len(all) == 0 {
				return err
			}
			newest := all[len(all)-1]
			return p.show(newest, func(w io.Writer) {
				fmt.Fprintf(w, "checkpoint %s of step %d, %s\n", newest.UUID, newest.Step, size(newest.Size))
			})
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "wait no longer than this (default: until it is there or has failed)")
	return cmd
}

func (p *program) listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list PIPELINE", Short: "List local checkpoints; with --config, of a pipeline that does not run", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if p.config == "" {
				all, err := p.client().Checkpoints(ctx, args[0])
				return errors.Join(err, p.showCheckpoints(all, err))
			}
			o, err := p.offline(ctx, args[0], host.StorageOnly)
			if err != nil {
				return err
			}
			all, err := o.LocalCheckpoints(ctx)
			return errors.Join(offlineError(err), p.showCheckpoints(all, err))
		},
	}
	p.configFlags(cmd)
	return cmd
}

func (p *program) pushCommand() *cobra.Command {
	var noWait bool
	cmd := &cobra.Command{
		Use: "push PIPELINE", Short: "Push the newest local checkpoint to every target, and wait until it is committed there", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var id uuid.UUID
			err := p.attend(cmd.Context(), attendance{pipeline: args[0]}, func(ctx context.Context, c *client.Client) (err error) {
				id, err = c.SyncCheckpoint(ctx, args[0], !noWait)
				return err
			})
			if err != nil {
				return err
			}
			status, err := p.client().Syncs(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			left := fenced(status)
			return p.show(map[string]any{"checkpoint_uuid": id, "committed": !noWait, "fenced": left}, func(w io.Writer) {
				switch {
				case noWait:
					fmt.Fprintf(w, "push of checkpoint %s is asked for\n", id)
				case len(left) > 0:
					fmt.Fprintf(w, "checkpoint %s is committed on every target but %s, which another writer has taken over\n", id, strings.Join(left, ", "))
				default:
					fmt.Fprintf(w, "checkpoint %s is committed on every target\n", id)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return when the push is asked for")
	return cmd
}

func fenced(status client.SyncStatus) []string {
	names := []string{}
	for _, t := range status.Targets {
		if t.State == "fenced" {
			names = append(names, t.Target)
		}
	}
	return names
}

func (p *program) remoteCommand() *cobra.Command {
	var target string
	list := &cobra.Command{
		Use: "list PIPELINE", Short: "List the checkpoints on the targets; with --config, without a running host", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if p.config == "" {
				var all []client.CheckpointView
				err := p.attend(ctx, attendance{pipeline: args[0], target: target}, func(ctx context.Context, c *client.Client) (err error) {
					all, err = c.RemoteCheckpoints(ctx, args[0], target)
					return err
				})
				return errors.Join(err, p.showCheckpoints(all, err), knownBroken(args[0], all))
			}
			o, err := p.offline(ctx, args[0], host.WithTargets)
			if err != nil {
				return err
			}
			all, err := o.RemoteCheckpoints(ctx, target)
			return errors.Join(offlineError(err), p.showCheckpoints(all, err))
		},
	}
	p.configFlags(list)
	list.Flags().StringVar(&target, "target", "", "only this target")
	return group("remote", "Look at what the targets hold and allow, and at what they keep", list, p.probeCommand(), p.verifyCommand(), p.repairCommand(),
		p.sweepCommand(), p.pinCommand(), p.unpinCommand(), p.pinsCommand())
}

// showCheckpoints prints a list, unless there is only an error to tell.
func (p *program) showCheckpoints(all []client.CheckpointView, failed error) error {
	if failed != nil && len(all) == 0 {
		return nil
	}
	return p.show(all, func(w io.Writer) {
		if len(all) == 0 {
			fmt.Fprintln(w, "no checkpoints")
			return
		}
		head, rows := []string{"CHECKPOINT", "STEP", "SIZE", "CREATED", "WHERE"}, [][]string{}
		remote := all[0].Number != 0 // local checkpoints have no commit
		if remote {
			head = append([]string{"COMMIT"}, head...)
		}
		for _, c := range all {
			row := []string{c.UUID.String(), strconv.FormatUint(c.Step, 10), size(c.Size), c.Created.Local().Format(time.DateTime), where(c)}
			if remote {
				row = append([]string{strconv.FormatUint(c.Number, 10)}, row...)
			}
			rows = append(rows, row)
		}
		table(w, head, rows)
	})
}

// where names the places of a checkpoint, and what is known to be wrong there.
func where(c client.CheckpointView) string {
	places := slices.Clone(c.Where)
	for i, place := range places {
		if slices.Contains(c.Broken, place) {
			places[i] += " (BROKEN)"
		}
	}
	return strings.Join(places, ", ")
}

// knownBroken is why a list that holds what cannot be restored does not end with 0.
func knownBroken(pipeline string, all []client.CheckpointView) error {
	var found, repairs []string
	for _, c := range all {
		for _, target := range c.Broken {
			found = append(found, fmt.Sprintf("%d on target %q", c.Number, target))
			if repair := fmt.Sprintf("`cairn remote repair %s --target %s`", pipeline, target); !slices.Contains(repairs, repair) {
				repairs = append(repairs, repair)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	return brokenError{fmt.Errorf("known to be broken, so that they cannot be restored whole: commits %s: `cairn remote verify %s` names what is wrong and the remedy, "+
		"%s makes the newest state whole", strings.Join(found, ", "), pipeline, strings.Join(repairs, " or "))}
}

// offline reads of the configuration what a command needs that works without a host.
func (p *program) offline(ctx context.Context, pipeline string, scope host.Scope) (*host.Offline, error) {
	log := hclog.New(&hclog.LoggerOptions{Name: "cairn", Output: p.stderr, Level: hclog.Warn})
	o, found, err := host.OpenOffline(ctx, p.config, pipeline, scope, log, host.LoadOptions{
		Getenv: os.LookupEnv, Now: time.Now, DataDir: p.dataDir, Hook: p.hook, //nolint:forbidigo // main hands the clock down
	})
	if faults := config.Diagnostics(nil); errors.As(err, &faults) {
		return nil, p.tell(found)
	}
	return o, offlineError(err)
}

func offlineError(err error) error {
	if errors.Is(err, host.ErrUnknown) {
		return notFoundError{err}
	}
	return err
}

func parseID(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return uuid.Nil, usageError{fmt.Errorf("%q is not the uuid of a checkpoint", text)}
	}
	return id, nil
}
