package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/pluginhost"
	"github.com/cairnsync/cairn/core/syncer"
)

// offlineBudget is how long one call to a store is repeated while a person waits for the answer.
const offlineBudget = 30 * time.Second

// offlineTargets are targets with plugin processes of their own and a spool that no host shares.
type offlineTargets struct {
	open    []offlineTarget
	spool   *syncer.Spool
	scratch *scratch
}

type offlineTarget struct {
	name   string
	reader *syncer.Reader
	store  *pluginhost.Store
	err    error // why it could not be opened
}

// open starts the plugins of one target, or with "" of all that the pipeline syncs to. Whose repositories they hold is not asked.
func (o *Offline) open(ctx context.Context, target string) (*offlineTargets, error) {
	return o.openOf(ctx, target, uuid.Nil)
}

// openOf refuses repositories of another pipeline than owner; Nil = any will do.
func (o *Offline) openOf(ctx context.Context, target string, owner uuid.UUID) (_ *offlineTargets, err error) {
	if err := o.checkTarget(target); err != nil {
		return nil, err
	}
	scratch, err := newScratch()
	if err != nil {
		return nil, err
	}
	targets := &offlineTargets{scratch: scratch}
	defer func() {
		if err != nil {
			targets.close(ctx)
		}
	}()
	if targets.spool, err = syncer.OpenSpool(filepath.Join(scratch.path, "spool")); err != nil {
		return nil, err
	}
	for _, block := range o.pipeline.Backend.Repositories() {
		if target == "" || target == block.Target {
			targets.open = append(targets.open, o.openTarget(ctx, block, targets, owner))
		}
	}
	return targets, nil
}

// checkTarget refuses a target that the pipeline does not sync to; "" = any will do.
func (o *Offline) checkTarget(target string) error {
	var names []string
	for _, block := range o.pipeline.Backend.Repositories() {
		names = append(names, block.Target)
	}
	switch {
	case len(names) == 0:
		return fmt.Errorf("pipeline %q syncs to no target: %w: give its storage a sync block", o.pipeline.Name, ErrUnknown)
	case target == "" || slices.Contains(names, target):
		return nil
	}
	return fmt.Errorf("target %q of pipeline %q: %w: name one that it syncs to (%s)", target, o.pipeline.Name, ErrUnknown, strings.Join(names, ", "))
}

// named are those that a choice is among: the one of that name, or with "" all. They are closed with the others.
func (t *offlineTargets) named(target string) *offlineTargets {
	among := *t
	if target != "" {
		among.open = slices.DeleteFunc(slices.Clone(t.open), func(one offlineTarget) bool { return one.name != target })
	}
	return &among
}

func (o *Offline) openTarget(ctx context.Context, block config.Sync, in *offlineTargets, owner uuid.UUID) offlineTarget {
	opened := offlineTarget{name: block.Target}
	for _, t := range o.targets {
		if t.Name != block.Target {
			continue
		}
		spec, err := pluginSpec(t, in.spool.Dir())
		if err == nil {
			opened.store, _, err = pluginhost.Open(ctx, spec, pluginhost.Options{Log: o.log, RuntimeDir: runFrom(o.dataDir, in.scratch.path), Now: o.now})
		}
		if err != nil {
			opened.err = fmt.Errorf("target %q: %w", block.Target, err)
			return opened
		}
	}
	opened.reader, opened.err = syncer.NewReader(syncer.ReaderConfig{
		Target: block.Target, Prefix: block.Prefix, Store: hooked(opened.store, o.hook), Now: o.now, Log: o.log, RetryBudget: offlineBudget,
		Pipeline: owner, PipelineName: o.pipeline.Name, Origin: o.origin,
	})
	return opened
}

// newest is the target that holds the newest of what is wanted. One that cannot be read may hold a newer one; only a checkpoint that is asked
// for by id is the same wherever it lies.
func (t *offlineTargets) newest(ctx context.Context, wanted syncer.Selector) (offlineTarget, error) {
	var best offlineTarget
	var step uint64
	var failed, absent []error
	for _, one := range t.open {
		if one.err != nil {
			failed = append(failed, one.err)
			continue
		}
		c, err := one.reader.Find(ctx, wanted)
		switch {
		case errors.Is(err, ErrNoCommit):
			absent = append(absent, err)
		case err != nil:
			failed = append(failed, err)
		case best.reader == nil || c.Checkpoint.Step > step:
			best, step = one, c.Checkpoint.Step
		}
	}
	byID := best.reader != nil && wanted == syncer.Selector{Checkpoint: wanted.Checkpoint} && wanted != (syncer.Selector{})
	switch {
	case len(failed) > 0 && !byID:
		return best, fmt.Errorf("restore %s: a target cannot be read and may hold what is wanted; make it readable, or name another with --target: %w", wanted, errors.Join(failed...))
	case best.reader == nil:
		return best, fmt.Errorf("restore: no target holds %s: %w; `cairn remote list` shows what they hold", wanted, errors.Join(absent...))
	}
	return best, nil
}

func (t *offlineTargets) close(ctx context.Context) {
	for _, one := range t.open {
		if one.store != nil {
			one.store.Close(ctx)
		}
	}
	if t.spool != nil {
		_ = t.spool.Close() // it goes with its folder
	}
	_ = t.scratch.remove() // the next command tries again
}

// runFrom is where plugins run from for a while: below the data folder where there is one that can be written, for a host runs them from there too, and
// a temporary folder may lie on a file system that holds no programs.
func runFrom(dataDir, scratch string) string {
	if info, err := os.Stat(dataDir); err == nil && info.IsDir() && checkWritable(dataDir, syscall.Access) == nil {
		return runtimeDir(dataDir)
	}
	return filepath.Join(scratch, "run")
}
