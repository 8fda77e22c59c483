package host

import (
	"fmt"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/pluginhost"
	"github.com/cairnsync/cairn/core/syncer"
)

// target is one configured store with the process that serves it. All pipelines that sync to it share both, and its upload slots.
type target struct {
	name   string
	cfg    config.Target
	plugin *pluginhost.Supervisor
	slots  *syncer.Limiter
}

// newTargets makes a supervisor for every target that a pipeline syncs to; a target that nobody uses runs no process.
func newTargets(cfg *config.Config, spool *syncer.Spool, opts Options) (map[string]*target, error) {
	used := map[string]bool{}
	for _, p := range cfg.Pipelines {
		for _, block := range p.Backend.Repositories() {
			used[block.Target] = true
		}
		if seed, ok := p.Backend.Seed(); ok {
			used[seed.Target] = true
		}
	}
	all := map[string]*target{}
	for _, c := range cfg.Targets {
		if !used[c.Name] {
			continue
		}
		spec, err := pluginSpec(c, spool.Dir())
		if err != nil {
			return nil, err
		}
		supervisor, err := pluginhost.New(spec, pluginOptions(cfg, opts))
		if err != nil {
			return nil, fmt.Errorf("target %q: %w", c.Name, err)
		}
		all[c.Name] = &target{name: c.Name, cfg: c, plugin: supervisor, slots: syncer.NewLimiter(syncer.DefaultConcurrency)}
	}
	return all, nil
}

func pluginSpec(c config.Target, spool string) (pluginhost.Spec, error) {
	body, err := c.Body.JSON()
	if err != nil {
		return pluginhost.Spec{}, fmt.Errorf("target %q: %w", c.Name, err)
	}
	spec := describeSpec(c.Plugin)
	spec.Target, spec.Config, spec.Secrets, spec.Spool = c.Name, body, c.Body.Secrets(), spool
	return spec, nil
}

// describeSpec is enough to ask a plugin what it is.
func describeSpec(p config.Plugin) pluginhost.Spec {
	return pluginhost.Spec{Plugin: p.Name, Path: p.Path, Checksum: p.Checksum, Env: p.Env, Dev: p.Dev, MemoryLimit: p.MemoryLimit}
}

func pluginOptions(cfg *config.Config, opts Options) pluginhost.Options {
	return pluginhost.Options{Log: opts.Log, RuntimeDir: runtimeDir(cfg.Host.DataDir), Now: opts.Now}
}

func runtimeDir(dataDir string) string { return config.Host{DataDir: dataDir}.RunDir() }

// retryPlugins has the plugins of a pipeline's targets ("" = all of them) started again that were given up as broken: whoever starts a
// pipeline, or asks for a push, has corrected the cause.
func (h *Host) retryPlugins(cfg config.Pipeline, target string) {
	blocks := cfg.Backend.Repositories()
	for _, block := range blocks {
		if target == "" || target == block.Target {
			h.targets[block.Target].plugin.Reset()
		}
	}
	if seed, ok := cfg.Backend.Seed(); ok && target == "" {
		h.targets[seed.Target].plugin.Reset()
	}
}
