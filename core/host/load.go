package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/pluginhost"
	"github.com/cairnsync/cairn/sdk"
)

// LoadOptions is what Load needs beside the file.
type LoadOptions struct {
	Getenv  func(name string) (string, bool) // answers env("NAME")
	Now     func() time.Time                 // required
	DataDir string                           // in place of the file's, if not empty
	Listen  string                           // likewise
	Circuit func(config.Pipeline) (circuit.Circuit, error)
}

// Load reads a configuration and checks all that can be checked before a host runs: the file itself, each target's body against its
// plugin's schema and by the plugin's own rules, and each circuit. Plugins are started for it and ended again; nothing else is, and no
// store is asked.
func Load(ctx context.Context, file string, opts LoadOptions) (*config.Config, config.Diagnostics) {
	scratch, err := os.MkdirTemp("", "cairn-")
	if err != nil {
		return nil, config.Diagnostics{{Severity: config.Error, Summary: fmt.Sprintf("make a folder to run plugins from: %v", err)}}
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // what is left lies in the temporary folder, which the system empties
	l := &loader{plugins: pluginhost.Options{Log: hclog.NewNullLogger(), RuntimeDir: scratch, Now: opts.Now}, circuit: opts.Circuit}
	if l.circuit == nil {
		l.circuit = builtIn(opts.Now)
	}
	cfg, found := config.Load(file, config.Options{
		Getenv: opts.Getenv, DataDir: opts.DataDir, Listen: opts.Listen,
		Schema: func(p config.Plugin) (sdk.Schema, error) {
			about, err := pluginhost.Describe(ctx, describeSpec(p), l.plugins)
			return about.Schema, err
		},
	})
	if found.HasErrors() {
		return cfg, found
	}
	return cfg, append(found, l.check(ctx, cfg)...)
}

// loader checks what only the parts themselves can tell.
type loader struct {
	plugins pluginhost.Options
	circuit func(config.Pipeline) (circuit.Circuit, error)
}

func (l *loader) check(ctx context.Context, cfg *config.Config) config.Diagnostics {
	var found config.Diagnostics
	for _, t := range cfg.Targets {
		found = append(found, l.checkTarget(ctx, t)...)
	}
	for _, p := range cfg.Pipelines {
		if _, err := l.circuit(p); err != nil {
			for _, one := range flatten(err) {
				found = append(found, p.Fault(one.Error(), "Change the circuit block, or the files that it names."))
			}
		}
	}
	return found
}

// checkTarget has the plugin look at its target's body.
func (l *loader) checkTarget(ctx context.Context, t config.Target) config.Diagnostics {
	spec, err := pluginSpec(t, "")
	if err == nil {
		err = pluginhost.Validate(ctx, spec, l.plugins)
	}
	if err == nil {
		return nil
	}
	var found config.Diagnostics
	for _, one := range flatten(err) {
		var complaint *sdk.Error
		if errors.As(one, &complaint) && complaint.Code == sdk.InvalidConfig {
			found = append(found, t.Fault(complaint.Attribute, fmt.Sprintf("target %q: %v", t.Name, complaint.Err), complaint.Hint))
			continue
		}
		found = append(found, t.Fault("", fmt.Sprintf("target %q cannot be checked: %v", t.Name, one), "See what the plugin says, or run `cairn plugin info` on it."))
	}
	return found
}

// flatten takes joined errors apart, so that each gets a place of its own.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, flatten(one)...)
	}
	return all
}
