package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cairnsync/cairn/core/host"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// checkFlags say what is examined, on what, and how far.
type checkFlags struct {
	candidate host.Candidate
	levels    string
	keys      int
}

func (p *program) pluginCheckCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use: "check FILE|NAME [--config CONFIG [--target NAME] | --set NAME=VALUE…]", Args: cobra.ExactArgs(1),
		Short: "Examine a plugin: every sentence of the contract, on a store that may be written to",
		Long: `Start the plugin as a host would, with the config block of a target or with settings, and put it through the exam. Any language will do.
The exam writes, reads and deletes objects below a prefix of its own ("exam/…"), some gigabytes in all; give it a store that may be thrown
away, never one that a host uses.

A case of the level process takes the store away: http:// and https:// URLs in the configuration are changed to one where nobody listens. A
store without a URL needs --away path=/does/not/exist or its like; without it that case is skipped.

Levels: core (the four methods), conditional (create-if-absent), bulk (large objects, many keys), process (the plugin as a process: start,
configuration, signals, kill -9). A level is passed when every case of it has passed; one with skipped cases is "passed with skips", and
the skips are listed with their reasons. Exit code 7 means that a case failed, or that a level asked for was not examined at all. A store
that cannot be used, for it is down or refuses who asks, is exit code 1: nothing was examined then.`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if f.candidate.File, err = pluginFile(cmd, args[0]); err != nil {
				return err
			}
			f.candidate.Config = p.config
			return p.check(cmd.Context(), f)
		},
	}
	p.configFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.candidate.Target, "target", "", "target whose config block the plugin gets (default: the only one)")
	flags.StringArrayVar(&f.candidate.Settings, "set", nil, "an attribute of the plugin, NAME=VALUE, in place of a configuration file; may be repeated")
	flags.StringArrayVar(&f.candidate.Away, "away", nil, "an attribute with which the store is away, NAME=VALUE, such as a path that does not exist; may be repeated (default: URLs are changed)")
	flags.StringVar(&f.levels, "level", "core,conditional,bulk,process", "levels to examine")
	flags.IntVar(&f.keys, "keys", sdktest.DefaultKeys, "number of objects in the largest listing of the level bulk")
	return cmd
}

func (f checkFlags) parsed() ([]sdktest.Level, error) {
	if f.candidate.Config != "" && len(f.candidate.Settings) > 0 {
		return nil, usageError{errors.New("--config and --set: give one of them")}
	}
	if f.candidate.Target != "" && f.candidate.Config == "" {
		return nil, usageError{errors.New("--target names a block of a configuration: name its file too, --config FILE")}
	}
	if f.keys < 1 {
		return nil, usageError{fmt.Errorf("--keys %d: want a number of objects", f.keys)}
	}
	levels, err := sdktest.ParseLevels(f.levels)
	if err != nil {
		return nil, usageError{fmt.Errorf("--level: %w", err)}
	}
	return levels, nil
}

func (p *program) check(ctx context.Context, f checkFlags) error {
	levels, err := f.parsed()
	if err != nil {
		return err
	}
	now := time.Now //nolint:forbidigo // main hands the clock down
	exam, err := host.OpenExam(ctx, f.candidate, host.LoadOptions{Getenv: os.LookupEnv, Now: now})
	if err != nil {
		return offlineError(f.advised(err))
	}
	defer exam.Close(ctx)
	if err := exam.TryStore(ctx); err != nil {
		return f.advised(err)
	}
	words := p.stdout
	if p.asJSON {
		words = io.Discard
	}
	env := &sdktest.Env{
		Target: exam.Target, Reopen: exam.Reopen, Spool: exam.Spool, Keys: f.keys, Levels: levels, Process: starter{exam}, Away: exam.Away,
	}
	r := newReport(exam, levels, now())
	last := r.Started
	for result := range sdktest.Results(ctx, env) {
		ended := now()
		writeCase(words, r.add(result, ended.Sub(last)))
		last = ended
	}
	r.close(last, ctx.Err() != nil)
	if err := p.show(r, r.write); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("examine %s: %w", f.candidate.File, ctx.Err())
	case !r.Passed:
		return examError{fmt.Errorf("%s does not pass", f.candidate.File)}
	}
	return nil
}

// advised adds what the reader of an error can do about it, a line each.
func (f checkFlags) advised(err error) error {
	lines, missing := f.candidate.Advice(err)
	for _, attribute := range missing {
		lines = append(lines, fmt.Sprintf("give --config FILE or --set %s=VALUE", attribute))
	}
	for _, line := range lines {
		if !strings.Contains(err.Error(), line) {
			err = fmt.Errorf("%w\n  %s", err, line)
		}
	}
	return err
}

// starter gives the exam, which knows no host, the processes that one starts.
type starter struct{ *host.Exam }

// Start implements sdktest.Starter.
func (s starter) Start(ctx context.Context, patience time.Duration) (sdktest.Instance, error) {
	started, err := s.Exam.Start(ctx, patience)
	if err != nil {
		return nil, err // not started: a nil pointer in the interface would not be nil
	}
	return started, nil
}
