package config

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"

	"github.com/cairnsync/cairn/sdk"
)

// Options is what Load needs from the world beside the file.
type Options struct {
	// Getenv answers env("NAME"). Nil means that no variable is set.
	Getenv func(name string) (string, bool)

	// Schema asks a plugin for the schema of its targets' bodies. It is called once for each plugin that a target names. An error with a
	// NoAnswerError in its chain is no fault of the file. Nil leaves the bodies unchecked, for commands that never start a plugin.
	Schema func(Host, Plugin) (sdk.Schema, error)

	// Start says that a host starts from the configuration. A plugin that cannot be asked keeps no host from that, unless its error has a HostFaultError
	// in its chain: it is a Warning, and the bodies of its targets are taken as they are written, for the plugin to judge once it runs.
	Start bool

	// Hash answers the checksum of a plugin's file, for the remedy of one that lacks it. Nil leaves it to the reader to find out.
	Hash func(path string) (string, error)

	// CheckDataDir tells why a folder cannot be data_dir. Nil accepts all.
	CheckDataDir func(dir string) error

	// Look runs a look at a folder and tells whether it came to its end: on a network file system that is away it may not. One that did not goes on
	// by itself. Nil waits for each.
	Look func(look func()) bool

	// Only, when not empty, names a pipeline: nothing is read but its storage and the targets that it syncs to. Its circuit is left out,
	// unless WithCircuit is set.
	Only        string
	WithCircuit bool

	// OnlyTarget, when not empty, names a target: nothing is read but it, and of the pipelines that sync to it their storage. Circuits and the
	// sync blocks for other targets are left out.
	OnlyTarget string

	// DataDir and Listen, when not empty, take the place of what the file says. A relative DataDir stands under the working directory.
	DataDir, Listen string
}

// NoAnswerError is a plugin that could not be asked for a reason that is not in the configuration: the machine, or the moment.
type NoAnswerError struct{ Err error }

func (e *NoAnswerError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *NoAnswerError) Unwrap() error { return e.Err }

// HostFaultError is a plugin that could not be asked for a reason in the host's own settings: no plugin can run before that is put right.
type HostFaultError struct{ Err error }

func (e *HostFaultError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *HostFaultError) Unwrap() error { return e.Err }

// whole says that all of the file is read.
func (o Options) whole() bool { return o.Only == "" && o.OnlyTarget == "" }

// Load reads a configuration. The diagnostics are sorted by line; when any of them is an error the configuration must not be used, and
// may be nil.
func Load(file string, opts Options) (*Config, Diagnostics) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, Diagnostics{{Severity: Error, File: file, Summary: fmt.Sprintf("read configuration: %v", err)}}
	}
	source, err := readText(abs)
	if err != nil {
		return nil, Diagnostics{{
			Severity: Error, File: abs, Summary: fmt.Sprintf("read configuration: %v", err),
			Remedy: fmt.Sprintf("Name an HCL file of at most %s that exists and that this user may read.", sdk.Size(maxText)),
		}}
	}
	return parse(abs, source, opts)
}

// maxText bounds what is read of a file: configurations, schemas and statements are text written by people.
const maxText = 4 << 20

// readText reads a file that may be a pipe, and gives up where it goes on beyond maxText.
func readText(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err == nil && len(text) > maxText {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxText)
	}
	return text, err
}

func parse(file string, source []byte, opts Options) (*Config, Diagnostics) {
	parsed, found := hclparse.NewParser().ParseHCL(source, file)
	if found.HasErrors() {
		return nil, fromHCL(source, found).valueless()
	}
	l := &loader{dir: filepath.Dir(file), source: source, opts: opts, eval: evalContext(filepath.Dir(file), opts.Getenv)}
	cfg := l.config(l.open(root(), nil, parsed.Body))
	cfg.File = file
	sort.SliceStable(l.found, func(i, j int) bool { return l.found[i].Line < l.found[j].Line })
	return cfg, l.found
}

// loader collects what is found on the way through one file.
type loader struct {
	dir    string // of the file; relative paths stand under it
	source []byte
	opts   Options
	eval   *hcl.EvalContext
	found  Diagnostics
}

func (l *loader) report(d ...Diagnostic) { l.found = append(l.found, d...) }

// hideSource takes the source text out of the faults that were found since there were n of them: it may hold a secret.
func (l *loader) hideSource(n int) {
	for i := range l.found[n:] {
		l.found[n+i].Snippet, l.found[n+i].Remedy = "", unquoted(l.found[n+i].Remedy, string(l.source))
	}
}

func (l *loader) fault(at hcl.Range, summary, remedy string) {
	l.report(diagnostic(Error, l.source, at, summary, remedy))
}

func (l *loader) warn(at hcl.Range, summary, remedy string) {
	l.report(diagnostic(Warning, l.source, at, summary, remedy))
}

// config walks the file in the order in which things are needed: the host's folders first, then plugins, targets, pipelines.
func (l *loader) config(file section) *Config {
	cfg := &Config{Host: l.host(file)}
	plugins := l.plugins(file, cfg.Host)
	cfg.Targets = l.targets(file, cfg.Host, plugins, l.wanted(file))
	cfg.Pipelines = l.pipelines(file, cfg)
	if len(file.all("pipeline")) == 0 {
		l.fault(file.at, "no pipeline is configured", `Add at least one pipeline "NAME" { … } block.`)
	}
	return cfg
}
