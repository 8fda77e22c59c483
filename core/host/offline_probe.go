package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// TargetProbe is what a target was found good for by one sync block.
type TargetProbe struct {
	Target   string            `json:"target"`
	Pipeline string            `json:"pipeline"`
	Prefix   string            `json:"prefix"`
	Fencing  string            `json:"fencing"`
	Use      string            `json:"use"`              // usable, advisory, read-only, refused, unknown
	Reason   string            `json:"reason,omitempty"` // why pushes do not go there
	Remedy   string            `json:"remedy,omitempty"`
	Warnings []string          `json:"warnings"` // what is unsafe or does not work there though they do
	Rights   client.RightsView `json:"rights"`
}

// Pushable says that a host would push there.
func (t TargetProbe) Pushable() bool {
	return t.Use == string(syncer.UsePush) || t.Use == string(syncer.UseAdvisory)
}

// Known says that the store has answered.
func (t TargetProbe) Known() bool { return t.Use != string(syncer.UseUnknown) }

// ProbeTarget tries what the store of a target allows, as a host does before it claims an epoch there: once for each sync block that names the target.
// Of the configuration it reads what concerns that target and nothing else. It starts the plugin itself and ends it again, and may be used beside a
// host that runs. ErrUnknown when the configuration has no such target, or no sync block for it.
func ProbeTarget(ctx context.Context, file, target string, log hclog.Logger, opts LoadOptions) ([]TargetProbe, config.Diagnostics, error) {
	cfg, found := config.Load(file, config.Options{
		Getenv: opts.Getenv, DataDir: opts.DataDir, OnlyTarget: target, Schema: schemaOf(ctx, opts),
	})
	switch {
	case found.HasErrors():
		return nil, found, found
	case len(cfg.Targets) == 0:
		return nil, found, fmt.Errorf("target %q: %w", target, ErrUnknown)
	case len(cfg.Pipelines) == 0:
		return nil, found, fmt.Errorf("target %q: %w: no sync block names it; add one, for a probe works below its prefix", target, ErrUnknown)
	}
	var probes []TargetProbe
	for _, p := range cfg.Pipelines {
		o := &Offline{pipeline: p, targets: cfg.Targets, dataDir: cfg.Host.DataDir, origin: origin(cfg), log: log, now: opts.Now}
		probe, err := o.probe(ctx, target)
		if err != nil {
			return probes, found, err
		}
		probes = append(probes, probe)
	}
	return probes, found, nil
}

// probe tries one target as the pipeline's sync block for it would use it.
func (o *Offline) probe(ctx context.Context, target string) (TargetProbe, error) {
	targets, err := o.open(ctx, target)
	if err != nil {
		return TargetProbe{}, err
	}
	defer targets.close(ctx)
	one := targets.open[0]
	if one.err != nil {
		return TargetProbe{}, one.err
	}
	block := o.block(target)
	report, err := syncer.Probe(ctx, syncer.ProbeConfig{
		Target: target, Prefix: block.Prefix, Store: one.store, RetryBudget: offlineBudget, Now: o.now,
	})
	if err = errors.Join(err, ctx.Err()); err != nil {
		return TargetProbe{}, err
	}
	fencing := syncer.Fencing(block.Fencing)
	verdict := report.Judge(fencing)
	return TargetProbe{
		Target: target, Pipeline: o.pipeline.Name, Prefix: block.Prefix, Fencing: block.Fencing,
		Use: string(verdict.Use), Reason: verdict.Reason, Remedy: verdict.Remedy,
		Warnings: syncer.Warnings(fencing, &report), Rights: *rightsView(&report),
	}, nil
}

// block is the pipeline's sync block for a target that it is known to have.
func (o *Offline) block(target string) config.Sync {
	for _, block := range o.pipeline.Backend.Repositories() {
		if block.Target == target {
			return block
		}
	}
	return config.Sync{}
}
