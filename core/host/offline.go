package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// Offline looks at one pipeline of a configuration while no host runs it, or beside one that does. It starts the plugins that it needs
// itself, and ends them again. OpenOffline makes one.
type Offline struct {
	pipeline config.Pipeline
	targets  []config.Target
	dataDir  string
	origin   syncer.Origin
	log      hclog.Logger
	now      func() time.Time
	hook     func(point string)
	circuit  func(config.Pipeline) (circuit.Circuit, error) // nil = it was not opened WithCircuit
}

// Scope is how much of a pipeline's configuration a command needs, and has to be in order.
type Scope int

// The scopes; each holds those before it.
const (
	StorageOnly Scope = iota // no plugin is started
	WithTargets              // the targets' plugins are asked for their schemas
	WithCircuit              // the files that the circuit names are read
)

// ErrUnknown says that the configuration has nothing of a name.
var ErrUnknown = errors.New("no such name in the configuration")

// ErrNoCommit says that the checkpoint asked for is proven not to be there.
var ErrNoCommit = syncer.ErrNoCommit

// Selection says which checkpoint is wanted. At most one field is set; none asks for the newest.
type Selection struct {
	Checkpoint uuid.UUID
	Number     uint64    // of its commit; numbers are a target's own
	AsOf       time.Time // the newest that was taken at or before this moment
}

// OpenOffline reads of a configuration what concerns one pipeline, as far as the scope goes. Nothing else of the file has to be in order, so a
// restore to a folder needs neither the files that the circuit names nor the plugins and variables of other pipelines.
func OpenOffline(ctx context.Context, file, pipeline string, scope Scope, log hclog.Logger, opts LoadOptions) (*Offline, config.Diagnostics, error) {
	options := config.Options{Getenv: opts.Getenv, DataDir: opts.DataDir, Only: pipeline, WithCircuit: scope >= WithCircuit, Hash: hashUnder(ctx)}
	if scope >= WithTargets {
		options.Schema = schemaOf(ctx, opts)
	}
	cfg, found := config.Load(file, options)
	if found.HasErrors() {
		return nil, found, found
	}
	for _, p := range cfg.Pipelines {
		if p.Name == pipeline {
			o := &Offline{pipeline: p, targets: cfg.Targets, dataDir: cfg.Host.DataDir, origin: origin(cfg), log: log, now: opts.Now, hook: opts.Hook}
			if scope >= WithCircuit {
				o.circuit = opts.circuit()
			}
			return o, found, nil
		}
	}
	return nil, found, fmt.Errorf("pipeline %q: %w", pipeline, ErrUnknown)
}

// LocalCheckpoints lists the local checkpoints. It takes the folder as a host would: it is locked meanwhile (while a host runs it is a
// *checkpoint.LockedError), and what a crash left half-written is cleared.
func (o *Offline) LocalCheckpoints(ctx context.Context) ([]client.CheckpointView, error) {
	path := o.pipeline.Backend.Path
	if _, err := os.Stat(path); o.pipeline.Backend.Type == config.MemoryBackend || errors.Is(err, os.ErrNotExist) {
		return []client.CheckpointView{}, nil
	}
	dir, err := checkpoint.OpenDir(path, checkpoint.Options{Now: o.now})
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // the lock ends with the process at the latest
	return localViews(ctx, dir)
}

// RemoteCheckpoints lists what the targets hold; "" = all of them. What can be read is listed beside the errors of the others.
func (o *Offline) RemoteCheckpoints(ctx context.Context, target string) ([]client.CheckpointView, error) {
	targets, err := o.open(ctx, target)
	if err != nil {
		return nil, err
	}
	defer targets.close(ctx)
	merged := &merger{}
	var failed []error
	for _, t := range targets.open {
		if t.err != nil {
			failed = append(failed, t.err)
			continue
		}
		commits, err := t.reader.ListCommits(ctx)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		merged.add(t.name, commits, nil)
	}
	return merged.views(), errors.Join(failed...)
}
