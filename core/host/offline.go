package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/pluginhost"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// Offline reads what a configuration names while no host runs it, or beside one that does. It starts the plugins it needs itself, and
// writes nothing but the folder that a restore is asked for.
type Offline struct {
	Config *config.Config
	Log    hclog.Logger
	Now    func() time.Time
}

// ErrUnknown says that the configuration has nothing of a name.
var ErrUnknown = errors.New("no such name in the configuration")

// ErrNoCommit says that the checkpoint asked for is proven not to be there.
var ErrNoCommit = syncer.ErrNoCommit

// Selection says which checkpoint is wanted. At most one field is set; none asks for the newest.
type Selection struct {
	Checkpoint uuid.UUID
	Number     uint64    // of its commit
	AsOf       time.Time // the newest that was taken at or before this moment
}

// LocalCheckpoints lists the local checkpoints of a pipeline. The folder is locked meanwhile: a running host is a
// *checkpoint.LockedError.
func (o Offline) LocalCheckpoints(ctx context.Context, pipeline string) ([]client.CheckpointView, error) {
	cfg, err := o.pipeline(pipeline)
	if err != nil {
		return nil, err
	}
	views := []client.CheckpointView{}
	if _, err := os.Stat(cfg.Backend.Path); cfg.Backend.Type != config.FileBackend || errors.Is(err, os.ErrNotExist) {
		return views, nil
	}
	dir, err := checkpoint.OpenDir(cfg.Backend.Path, checkpoint.Options{Now: o.Now})
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // the lock ends with the process at the latest
	return localViews(ctx, dir)
}

// RemoteCheckpoints lists what the targets of a pipeline hold; "" = all of them.
func (o Offline) RemoteCheckpoints(ctx context.Context, pipeline, target string) ([]client.CheckpointView, error) {
	merged := &merger{}
	err := o.each(ctx, pipeline, target, func(block config.Sync, reader *syncer.Reader, _ *syncer.Spool) error {
		commits, err := reader.ListCommits(ctx)
		if err == nil {
			merged.add(block.Target, commits)
		}
		return err
	})
	return merged.views(), err
}

// Restore puts the files of a checkpoint into a folder, which must be new or empty. Without a target the first one that holds the
// checkpoint gives it; the newest is the newest of that target. progress is told the bytes done and to do, from any goroutine; nil = nobody
// is.
func (o Offline) Restore(ctx context.Context, pipeline, target string, from Selection, to string, progress func(done, total int64)) (client.CheckpointView, error) {
	var restored client.CheckpointView
	found := errors.New("found")
	err := o.each(ctx, pipeline, target, func(block config.Sync, reader *syncer.Reader, spool *syncer.Spool) error {
		req := syncer.RestoreRequest{From: syncer.Selector(from), Dir: to, Spool: spool}
		if progress != nil {
			req.Progress = func(p syncer.Progress) { progress(p.Done, p.Total) }
		}
		info, err := reader.RestoreDir(ctx, req)
		switch {
		case err == nil:
			restored = commitView(block.Target, info)
			return found
		case errors.Is(err, ErrNoCommit) && target == "":
			return nil
		}
		return err
	})
	switch {
	case errors.Is(err, found):
		return restored, nil
	case err == nil:
		return restored, fmt.Errorf("restore from pipeline %q: no target holds %s: %w", pipeline, syncer.Selector(from), ErrNoCommit)
	}
	return restored, err
}

func (o Offline) pipeline(name string) (config.Pipeline, error) {
	for _, p := range o.Config.Pipelines {
		if p.Name == name {
			return p, nil
		}
	}
	return config.Pipeline{}, fmt.Errorf("pipeline %q: %w", name, ErrUnknown)
}

// each opens the targets of a pipeline one after the other.
func (o Offline) each(ctx context.Context, pipeline, target string, use func(config.Sync, *syncer.Reader, *syncer.Spool) error) error {
	cfg, err := o.pipeline(pipeline)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "cairn-")
	if err != nil {
		return fmt.Errorf("make a folder to work in: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // what is left lies in the temporary folder, which the system empties
	spool, err := syncer.OpenSpool(filepath.Join(scratch, "spool"))
	if err != nil {
		return err
	}
	defer spool.Close() //nolint:errcheck // it goes with its folder
	blocks, _ := cfg.Backend.Sync()
	used := false
	for _, block := range blocks {
		if target != "" && target != block.Target {
			continue
		}
		used = true
		if err := o.open(ctx, block, spool, scratch, use); err != nil {
			return err
		}
	}
	if !used {
		return fmt.Errorf("target %q of pipeline %q: %w", target, pipeline, ErrUnknown)
	}
	return nil
}

func (o Offline) open(ctx context.Context, block config.Sync, spool *syncer.Spool, scratch string, use func(config.Sync, *syncer.Reader, *syncer.Spool) error) error {
	var target config.Target
	for _, t := range o.Config.Targets {
		if t.Name == block.Target {
			target = t
		}
	}
	spec, err := pluginSpec(target, spool.Dir())
	if err != nil {
		return err
	}
	store, _, err := pluginhost.Open(ctx, spec, pluginhost.Options{Log: o.Log, RuntimeDir: filepath.Join(scratch, "run"), Now: o.Now})
	if err != nil {
		return fmt.Errorf("target %q: %w", block.Target, err)
	}
	defer store.Close(ctx)
	reader, err := syncer.NewReader(syncer.ReaderConfig{
		Target: block.Target, Prefix: block.Prefix, Store: store, Now: o.Now, Log: o.Log, RetryBudget: patience,
	})
	if err != nil {
		return err
	}
	return use(block, reader, spool)
}

// patience is how long one call to a store is repeated while a person waits for the answer.
const patience = 30 * time.Second
