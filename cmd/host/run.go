package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/host"
)

func (p *program) runCommand() *cobra.Command {
	var listen string
	var exclude []string
	cmd := &cobra.Command{
		Use: "run --config FILE", Short: "Run a host until it is interrupted", Args: cobra.NoArgs,
		Long: `Run a host: start its plugins and pipelines and serve the API, until SIGINT or SIGTERM. Then every pipeline takes a last
checkpoint, pushes it where push_on_shutdown says so, and the host ends within shutdown_timeout. A second signal ends it at once.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.runHost(cmd.Context(), listen, exclude) },
	}
	p.configFlags(cmd)
	cmd.Flags().StringVar(&listen, "listen", "", "host:port of the API, in place of the configuration's")
	cmd.Flags().StringSliceVar(&exclude, "exclude-target", nil, "do not ask this target which state to start from; may be repeated")
	return cmd
}

func (p *program) configFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&p.config, "config", "c", "", "configuration file (HCL)")
	cmd.Flags().StringVar(&p.dataDir, "data-dir", "", "data folder, in place of the configuration's")
}

func (p *program) runHost(ctx context.Context, listen string, exclude []string) error {
	if err := host.Conceal(); err != nil {
		fmt.Fprintln(p.stderr, "cairn:", err)
	}
	cfg, err := p.load(ctx, listen)
	if ctx.Err() != nil { // nothing has been started; it ends as a host does that is told to end
		return nil
	}
	if err != nil {
		return err
	}
	log := hclog.New(&hclog.LoggerOptions{
		Name: "cairn", Output: p.stderr, Level: hclog.LevelFromString(cfg.Host.LogLevel), JSONFormat: cfg.Host.LogFormat == "json",
	})
	opts := host.Options{
		Log: log, Now: time.Now, Version: "cairn " + version, Hook: p.hook, Exclude: exclude, //nolint:forbidigo // main hands the clock down
		Listening: func(addr net.Addr) { fmt.Fprintf(p.stdout, "cairn %s serves http://%s\n", version, addr) },
	}
	h, err := host.New(cfg, opts)
	if err != nil {
		return err
	}
	return h.Run(ctx)
}

// load reads the configuration with everything that can be checked before a host runs. Its faults are shown in full here.
func (p *program) load(ctx context.Context, listen string) (*config.Config, error) {
	if p.config == "" {
		return nil, usageError{errors.New("name the configuration file: --config FILE")}
	}
	cfg, found := host.Load(ctx, p.config, host.LoadOptions{
		Getenv: os.LookupEnv, Now: time.Now, DataDir: p.dataDir, Listen: listen, Start: true, //nolint:forbidigo // main hands the clock down
	})
	return cfg, p.tell(found)
}

// tell shows what is wrong with a configuration in full, and is an error when it cannot be used.
func (p *program) tell(found config.Diagnostics) error {
	if p.asJSON {
		return errorsOf(found)
	}
	if err := found.Write(p.stderr); err != nil {
		return err
	}
	if err := errorsOf(found); err != nil {
		return &shownError{err}
	}
	return nil
}

func errorsOf(found config.Diagnostics) error {
	if found.HasErrors() {
		return found
	}
	return nil
}

func (p *program) configCommand() *cobra.Command {
	check := &cobra.Command{
		Use: "check --config FILE", Short: "Report everything that is wrong with a configuration", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.config == "" {
				return usageError{errors.New("name the configuration file: --config FILE")}
			}
			_, found := host.Load(cmd.Context(), p.config, host.LoadOptions{Getenv: os.LookupEnv, Now: time.Now, DataDir: p.dataDir}) //nolint:forbidigo // as above
			if found == nil {
				found = config.Diagnostics{}
			}
			err := p.show(found, func(w io.Writer) {
				if len(found) == 0 {
					fmt.Fprintf(w, "%s: ok\n", p.config)
				}
				_ = found.Write(w) // a broken pipe ends the program anyway
			})
			if err == nil && found.HasErrors() {
				return &shownError{found}
			}
			return err
		},
	}
	p.configFlags(check)
	return group("config", "Look at a configuration", check)
}
