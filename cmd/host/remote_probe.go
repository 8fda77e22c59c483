package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/host"
	"github.com/cairnsync/cairn/sdk/client"
)

func (p *program) probeCommand() *cobra.Command {
	var target string
	cmd := &cobra.Command{
		Use: "probe --config FILE --target NAME", Args: cobra.NoArgs,
		Short: "Try what a target's store allows: write, read, list, delete, create-if-absent; needs no running host",
		Long: `Start the target's plugin and really do, below the prefix of each sync block that names the target, what a host does before its first push:
create an object, create it again (which must be refused), read it and a range of it back, list it, delete it. What is created is a few bytes under
keys of its own, and is deleted again. Exit code 8 means that a host would not push there; 1, that the store did not answer.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.probe(cmd, target) },
	}
	p.configFlags(cmd)
	cmd.Flags().StringVar(&target, "target", "", "target to try")
	return cmd
}

func (p *program) probe(cmd *cobra.Command, target string) error {
	if p.config == "" || target == "" {
		return usageError{errors.New("name the configuration file and a target in it: --config FILE --target NAME")}
	}
	log := hclog.New(&hclog.LoggerOptions{Name: "cairn", Output: p.stderr, Level: hclog.Warn})
	probes, found, err := host.ProbeTarget(cmd.Context(), p.config, target, log, host.LoadOptions{
		Getenv: os.LookupEnv, Now: time.Now, DataDir: p.dataDir, //nolint:forbidigo // main hands the clock down
	})
	if faults := config.Diagnostics(nil); errors.As(err, &faults) {
		return p.tell(found)
	}
	if err != nil {
		return offlineError(err)
	}
	err = p.show(probes, func(w io.Writer) {
		for _, one := range probes {
			writeProbe(w, one)
		}
	})
	return errors.Join(err, probeOutcome(probes))
}

// probeOutcome is why the command does not end with 0; nil when all sync blocks can push.
func probeOutcome(probes []host.TargetProbe) error {
	for _, one := range probes {
		if !one.Known() {
			return fmt.Errorf("target %q, pipeline %q: %s", one.Target, one.Pipeline, one.Reason)
		}
	}
	for _, one := range probes {
		if !one.Pushable() {
			return unfitError{fmt.Errorf("target %q, pipeline %q: it cannot be pushed to: %s: %s", one.Target, one.Pipeline, one.Reason, one.Remedy)}
		}
	}
	return nil
}

func writeProbe(w io.Writer, one host.TargetProbe) {
	fmt.Fprintf(w, "target %s, pipeline %s, prefix %s: %s\n", one.Target, one.Pipeline, one.Prefix, one.Use)
	r := one.Rights
	rows := [][]string{}
	for _, right := range []struct {
		name string
		seen client.RightView
	}{{"read", r.Read}, {"write", r.Write}, {"list", r.List}, {"delete", r.Delete}, {"conditional", r.Conditional}} {
		rows = append(rows, []string{right.name, right.seen.State, right.seen.Took, about(right.seen)})
	}
	table(w, []string{"RIGHT", "STATE", "TOOK", "ERROR"}, rows)
	if r.ClockAhead != "" {
		fmt.Fprintf(w, "the store's clock is ahead by %s, give or take %s\n", r.ClockAhead, r.ClockWithin)
	}
	for _, warning := range one.Warnings {
		fmt.Fprintf(w, "WARNING: %s\n", warning)
	}
}

// about is a right's error in one cell.
func about(r client.RightView) string {
	text := r.Error
	if r.Hint != "" && !strings.Contains(text, r.Hint) {
		text += ": " + r.Hint
	}
	return text
}
