package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/pluginhost"
	"github.com/cairnsync/cairn/core/sqlcircuit"
	"github.com/cairnsync/cairn/sdk"
)

// LoadOptions is what Load needs beside the file.
type LoadOptions struct {
	Getenv  func(name string) (string, bool) // answers env("NAME")
	Now     func() time.Time                 // required
	DataDir string                           // in place of the file's, if not empty
	Listen  string                           // likewise
	Circuit func(config.Pipeline) (circuit.Circuit, error)

	// Start says that a host starts from the configuration: see config.Options.
	Start bool

	// Hook is called at named points of an offline restore, so that tests can crash there. Nil in production.
	Hook func(point string)

	timeouts pluginhost.Timeouts // of a test; zero = the defaults
}

func (o LoadOptions) circuit() func(config.Pipeline) (circuit.Circuit, error) {
	if o.Circuit == nil {
		return builtIn(o.Now)
	}
	return o.Circuit
}

// Load reads a configuration and checks all that can be checked before a host runs: the file itself, each target's body against its
// plugin's schema and by the plugin's own rules, and each circuit. Plugins are started for it and ended again; nothing else is, and no
// store is asked. What is at fault does not keep the rest from being checked. A plugin that does not answer, because the machine is busy
// or refuses, is told as config.Unchecked. When ctx ends, so does the check: the configuration is nil, and the one diagnostic says so.
func Load(ctx context.Context, file string, opts LoadOptions) (*config.Config, config.Diagnostics) {
	l := &loader{now: opts.Now, circuit: opts.circuit(), sql: opts.Circuit == nil, start: opts.Start, timeouts: opts.timeouts}
	cfg, found := config.Load(file, config.Options{
		Getenv: opts.Getenv, DataDir: opts.DataDir, Listen: opts.Listen, Schema: schemaOf(ctx, opts), Start: opts.Start,
		Hash: hashUnder(ctx), CheckDataDir: checkDataDir, Look: lookUnder(ctx),
	})
	if cfg != nil {
		found = append(found, l.check(ctx, cfg)...)
	}
	if ctx.Err() != nil { // else the plugins that it cut off would be told as faults
		return nil, interrupted(ctx, file)
	}
	return cfg, found
}

// interrupted is what is left to say of a configuration whose check was cut off.
func interrupted(ctx context.Context, file string) config.Diagnostics {
	return config.Diagnostics{{
		Severity: config.Unchecked, File: file, Summary: fmt.Sprintf("the check was interrupted: %v", context.Cause(ctx)), Remedy: "Run it again to know whether the file is in order.",
	}}
}

// loader checks what only the parts themselves can tell.
type loader struct {
	now      func() time.Time
	circuit  func(config.Pipeline) (circuit.Circuit, error)
	sql      bool // circuit is the built-in one
	start    bool // see LoadOptions
	timeouts pluginhost.Timeouts
}

// schemaOf asks a plugin what its targets' bodies may hold.
func schemaOf(ctx context.Context, opts LoadOptions) func(config.Host, config.Plugin) (sdk.Schema, error) {
	return func(h config.Host, p config.Plugin) (schema sdk.Schema, err error) {
		err = withPlugins(h.DataDir, opts.Now, func(run pluginhost.Options) error {
			run.Timeouts = opts.timeouts
			about, err := pluginhost.Describe(ctx, describeSpec(p), run)
			schema = about.Schema
			return err
		})
		return schema, outsideFile(ctx, err)
	}
}

// hashUnder hashes plugins until ctx ends.
func hashUnder(ctx context.Context) func(path string) (string, error) {
	return func(path string) (string, error) { return pluginhost.Hash(ctx, path) }
}

// lookPatience is how long a folder is waited for: a local one answers within milliseconds, an idle disk has to spin up.
const lookPatience = 10 * time.Second

// lookUnder waits for looks at folders, each for a while, until ctx ends.
func lookUnder(ctx context.Context) func(look func()) bool {
	return func(look func()) bool {
		ctx, cancel := context.WithTimeout(ctx, lookPatience)
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			look()
		}()
		select {
		case <-done:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// outsideFile marks an error of a plugin's start whose cause is not in the configuration: the plugin was too slow, as on a machine under
// load, the operating system refused, or ctx has ended.
func outsideFile(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	start, ok := errors.AsType[*pluginhost.StartError](err)
	if ok && start.Cause == pluginhost.CauseNoExec { // data_dir, from where all of them run
		return &config.HostFaultError{Err: err}
	}
	if ctx.Err() != nil || ok && (start.Cause == pluginhost.CauseTimeout || start.Cause == pluginhost.CauseOther) {
		return &config.NoAnswerError{Err: err}
	}
	return err
}

// checkDataDir refuses a data folder whose path leaves no room for the sockets of plugins below it, and one on a file system that is mounted
// read-only. Whether this user may write there is not asked: who checks a configuration need not be who runs it.
func checkDataDir(dir string) error {
	if err := pluginhost.CheckRuntimeDir(runtimeDir(dir)); err != nil {
		return err
	}
	if readOnly(dir) {
		return fmt.Errorf("%s lies on a file system that is mounted read-only: choose another folder, or mount it for writing", dir)
	}
	return nil
}

const mayWrite = 2 // W_OK of access(2)

// checkWritable tells why this user cannot make anything in a folder, and what to do. access is syscall.Access.
func checkWritable(dir string, access func(string, uint32) error) error {
	if err := access(dir, mayWrite); err != nil {
		return fmt.Errorf("%s is not writable: %w", dir, checkpoint.Unwritable(err))
	}
	return nil
}

// readOnly tells of a folder, or of where it would be made.
func readOnly(dir string) bool {
	for {
		err := syscall.Access(dir, mayWrite)
		parent := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return errors.Is(err, syscall.EROFS)
		}
		dir = parent
	}
}

// withPlugins lends a folder to run plugins from.
func withPlugins(dataDir string, now func() time.Time, use func(pluginhost.Options) error) error {
	scratch, err := newScratch()
	if err != nil {
		return &config.NoAnswerError{Err: err}
	}
	defer scratch.remove() //nolint:errcheck // the next command tries again
	return use(pluginhost.Options{Log: hclog.NewNullLogger(), RuntimeDir: runFrom(dataDir, scratch.path), Now: now})
}

func (l *loader) check(ctx context.Context, cfg *config.Config) config.Diagnostics {
	var found config.Diagnostics
	for _, t := range cfg.Targets {
		if t.Sound() {
			found = append(found, l.checkTarget(ctx, cfg.Host, t)...)
		}
	}
	for _, p := range cfg.Pipelines {
		if err := l.checkCircuit(p); err != nil {
			for _, one := range flatten(err) {
				found = append(found, p.Fault(one.Error(), "Change the circuit block, or the files that it names."))
			}
		}
		found = append(found, missingInputs(p)...)
	}
	return found
}

// checkCircuit builds a circuit, or where a part of its block is at fault looks at the rest.
func (l *loader) checkCircuit(p config.Pipeline) error {
	switch {
	case p.Sound():
		_, err := l.circuit(p)
		return err
	case l.sql:
		return sqlcircuit.CheckSQL(sqlConfig(p, l.now))
	}
	return nil
}

// missingInputs remarks on file inputs that match nothing now. It is no fault: the file may come later.
func missingInputs(p config.Pipeline) config.Diagnostics {
	var found config.Diagnostics
	for _, in := range p.Circuit.Inputs {
		if in.File == nil || in.File.Path == "" {
			continue
		}
		if paths, err := filepath.Glob(in.File.Path); err == nil && len(paths) == 0 {
			remedy := "Correct the path, or see that the file is there when the pipeline starts: without follow the input looks once."
			if in.File.Follow {
				remedy = "Correct the path, unless the file is yet to come: the input looks for it once a second."
			}
			remark := p.Fault(fmt.Sprintf("input %q: no file matches %s", in.Name, in.File.Path), remedy)
			remark.Severity = config.Warning
			found = append(found, remark)
		}
	}
	return found
}

// checkTarget has the plugin look at its target's body.
func (l *loader) checkTarget(ctx context.Context, h config.Host, t config.Target) config.Diagnostics {
	spec, err := pluginSpec(t, "")
	if err == nil {
		err = withPlugins(h.DataDir, l.now, func(run pluginhost.Options) error {
			run.Timeouts = l.timeouts
			return pluginhost.Validate(ctx, spec, run)
		})
	}
	if err == nil {
		return nil
	}
	var found config.Diagnostics
	for _, one := range flatten(err) {
		var complaint *sdk.Error
		if errors.As(one, &complaint) && complaint.Code == sdk.InvalidConfig {
			found = append(found, t.Fault(complaint.Attribute, fmt.Sprintf("target %q: %s", t.Name, reason(complaint)), complaint.Hint))
			continue
		}
		summary := fmt.Sprintf("target %q cannot be checked: %v", t.Name, one)
		remark := t.Fault("", summary, "See what the plugin says, or run `cairn plugin info` on it.")
		if silent := (*config.NoAnswerError)(nil); errors.As(outsideFile(ctx, one), &silent) {
			remark = t.Unchecked(summary)
		}
		if l.start {
			remark.Severity = config.Warning
		}
		found = append(found, remark)
	}
	return found
}

// reason is what a plugin has against a configuration, if only that it has something against it.
func reason(complaint *sdk.Error) string {
	if complaint.Err == nil {
		return "its plugin refuses the configuration and does not say why"
	}
	return complaint.Err.Error()
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
