package host

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/pluginhost"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk"
)

// Candidate is a plugin to be examined and what it is configured with: the block of a target in a configuration file, or settings.
type Candidate struct {
	File     string   // the plugin
	Config   string   // configuration file; "" = Settings
	Target   string   // whose config block it gets; "" = the only target there is
	Settings []string // each "name=value", see settingsJSON
	Away     []string // settings in place of the others with which the store is away; none = the exam finds its own
}

// examPatience is how long a plugin under examination may be silent: three times as long as for any host, because exams run where programs are
// built, on machines that are busy. That it is never silent for more than a second is a case of its own.
const examPatience = 30 * time.Second

// PluginProtocol is the major version of the protocol that this host speaks with plugins.
const PluginProtocol = pluginhost.Protocol

// Exam is a plugin that is running to be examined. It implements what the cases of the exam need of a host.
type Exam struct {
	About  sdk.Description
	Name   string // of the target
	SHA256 string // of the file that is examined, as pluginhost.Hash writes it
	Target sdk.Target
	Spool  string // folder for bodies that do not travel inside a call
	Away   []byte // Config with the candidate's settings for a store that is away; nil = there are none

	spec    pluginhost.Spec
	opts    pluginhost.Options
	scratch *scratch
	spool   *syncer.Spool
	open    []*pluginhost.Store
}

// OpenExam starts a plugin as a host would. The caller closes the Exam.
func OpenExam(ctx context.Context, c Candidate, opts LoadOptions) (*Exam, error) {
	scratch, err := newScratch()
	if err != nil {
		return nil, err
	}
	e := &Exam{scratch: scratch, opts: pluginhost.Options{
		Log: hclog.NewNullLogger(), RuntimeDir: filepath.Join(scratch.path, "run"), Now: opts.Now, Timeouts: pluginhost.Timeouts{Hung: examPatience},
	}}
	if err := e.start(ctx, c, opts); err != nil {
		e.Close(ctx)
		return nil, err
	}
	return e, nil
}

func (e *Exam) start(ctx context.Context, c Candidate, opts LoadOptions) (err error) {
	path, err := filepath.Abs(c.File)
	if err != nil {
		return fmt.Errorf("plugin %s: %w", c.File, err)
	}
	if e.About, err = DescribePlugin(ctx, path, opts.Now); err != nil {
		return err
	}
	if e.spool, err = syncer.OpenSpool(filepath.Join(e.scratch.path, "spool")); err != nil {
		return err
	}
	e.Spool = e.spool.Dir()
	if e.spec, err = c.spec(e.About, e.Spool, opts); err != nil {
		return err
	}
	if e.Away, err = c.away(e.About.Schema, e.spec.Config); err != nil {
		return err
	}
	e.Name, e.spec.Path, e.spec.Checksum, e.spec.Dev = e.spec.Target, path, "", true
	store, err := e.configured(ctx)
	if err != nil {
		return err
	}
	e.Target, e.SHA256 = store, fmt.Sprintf("sha256:%x", store.SHA256())
	return nil
}

// spec is what a host would start for the candidate's target, but for the file.
func (c Candidate) spec(about sdk.Description, spool string, opts LoadOptions) (pluginhost.Spec, error) {
	if c.Config == "" {
		body, err := settingsJSON(about.Schema, c.Settings)
		secrets := settingSecrets(about.Schema, c.Settings)
		return pluginhost.Spec{Target: "exam", Plugin: about.Name, Config: body, Secrets: secrets, Spool: spool}, err
	}
	cfg, found := config.Load(c.Config, config.Options{Getenv: opts.Getenv, Schema: func(config.Host, config.Plugin) (sdk.Schema, error) { return about.Schema, nil }})
	if found.HasErrors() {
		return pluginhost.Spec{}, found
	}
	t, err := chosen(cfg.Targets, c.Target)
	if err != nil {
		return pluginhost.Spec{}, err
	}
	return pluginSpec(t, spool)
}

func chosen(targets []config.Target, name string) (config.Target, error) {
	if name == "" && len(targets) == 1 {
		return targets[0], nil
	}
	for _, t := range targets {
		if t.Name == name {
			return t, nil
		}
	}
	return config.Target{}, fmt.Errorf("target %q: %w; name one of its %d targets", name, ErrUnknown, len(targets))
}

// configured starts one more process of the plugin, with its configuration. It ends with the Exam.
func (e *Exam) configured(ctx context.Context) (*pluginhost.Store, error) {
	store, _, err := pluginhost.Open(ctx, e.spec, e.opts)
	if err != nil {
		return nil, err
	}
	e.open = append(e.open, store)
	return store, nil
}

// Reopen starts a second process on the same store.
func (e *Exam) Reopen(ctx context.Context) (sdk.Target, error) { return e.configured(ctx) }

// Config is the JSON object that the plugin is configured with, secrets and all.
func (e *Exam) Config() []byte { return e.spec.Config }

// Start starts one more process, which is not configured. patience is how long it may be silent during a call before it counts as hung; 0 =
// examPatience. The caller closes it.
func (e *Exam) Start(ctx context.Context, patience time.Duration) (*Examined, error) {
	said := &transcript{}
	// Only what a start needs: with the target's secrets known to it, pluginhost would mask what the exam is looking for.
	spec := pluginhost.Spec{
		Target: e.spec.Target, Plugin: e.spec.Plugin, Path: e.spec.Path, Env: e.spec.Env, Dev: true, Config: e.spec.Config, Spool: e.spec.Spool,
	}
	opts := e.opts
	opts.Log = said.logger()
	if patience > 0 {
		opts.Timeouts.Hung = patience
	}
	subject, err := pluginhost.Launch(ctx, spec, opts)
	if err != nil {
		return nil, err
	}
	return &Examined{Subject: subject, transcript: said}, nil
}

// Close ends the plugin's processes.
func (e *Exam) Close(ctx context.Context) {
	for _, store := range e.open {
		store.Close(ctx)
	}
	if e.spool != nil {
		_ = e.spool.Close() // it goes with its folder
	}
	_ = e.scratch.remove() // the next command tries again
}
