package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/pluginhost"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk"
)

// PluginFile is a plugin in a folder.
type PluginFile struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// ListPlugins lists the plugins in a folder. It starts none of them.
func ListPlugins(dir string) ([]PluginFile, error) {
	catalog := pluginhost.Catalog{Dir: dir}
	names, err := catalog.Names()
	if err != nil {
		return nil, err
	}
	files := []PluginFile{}
	for _, name := range names {
		path, err := catalog.Path(name)
		if err != nil {
			return nil, err
		}
		files = append(files, PluginFile{Name: name, Path: path})
	}
	return files, nil
}

// HashPlugin is the checksum of a plugin file, as a configuration wants it.
func HashPlugin(file string) (string, error) { return pluginhost.Hash(file) }

// DescribePlugin starts a plugin, asks what it is, and ends it. A file that others may write is described all the same: it is run with
// nothing of value.
func DescribePlugin(ctx context.Context, file string, now func() time.Time) (sdk.Description, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return sdk.Description{}, fmt.Errorf("plugin %s: %w", file, err)
	}
	var about sdk.Description
	err = withPlugins("", now, func(opts pluginhost.Options) (err error) {
		about, err = pluginhost.Describe(ctx, pluginhost.Spec{Plugin: filepath.Base(path), Path: path, Dev: true}, opts)
		return err
	})
	return about, err
}

// Exam is a plugin that is running to be examined.
type Exam struct {
	About  sdk.Description
	SHA256 string // of the file
	Target sdk.Target
	Spool  string // folder for bodies that do not travel inside a call

	spec    pluginhost.Spec
	opts    pluginhost.Options
	scratch string
	spool   *syncer.Spool
	open    []*pluginhost.Store
}

// OpenExam starts a plugin file with the config block of a target in a configuration; "" = the only target there is.
func OpenExam(ctx context.Context, file, configFile, target string, opts LoadOptions) (*Exam, error) {
	scratch, err := os.MkdirTemp("", "cairn-")
	if err != nil {
		return nil, fmt.Errorf("make a folder to run plugins from: %w", err)
	}
	e := &Exam{scratch: scratch, opts: pluginhost.Options{Log: hclog.NewNullLogger(), RuntimeDir: filepath.Join(scratch, "run"), Now: opts.Now}}
	if err := e.start(ctx, file, configFile, target, opts); err != nil {
		e.Close(ctx)
		return nil, err
	}
	return e, nil
}

func (e *Exam) start(ctx context.Context, file, configFile, target string, opts LoadOptions) (err error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("plugin %s: %w", file, err)
	}
	if e.SHA256, err = pluginhost.Hash(path); err != nil {
		return err
	}
	about, err := DescribePlugin(ctx, path, opts.Now)
	if err != nil {
		return err
	}
	cfg, found := config.Load(configFile, config.Options{Getenv: opts.Getenv, Schema: func(config.Host, config.Plugin) (sdk.Schema, error) { return about.Schema, nil }})
	if found.HasErrors() {
		return found
	}
	t, err := chosen(cfg.Targets, target)
	if err != nil {
		return err
	}
	if e.spool, err = syncer.OpenSpool(filepath.Join(e.scratch, "spool")); err != nil {
		return err
	}
	if e.spec, err = pluginSpec(t, e.spool.Dir()); err != nil {
		return err
	}
	e.spec.Path, e.spec.Checksum, e.spec.Dev, e.Spool = path, "", true, e.spool.Dir()
	store, about, err := pluginhost.Open(ctx, e.spec, e.opts)
	if err != nil {
		return err
	}
	e.About, e.Target, e.open = about, store, append(e.open, store)
	return nil
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

// Reopen starts a second process on the same store.
func (e *Exam) Reopen(ctx context.Context) (sdk.Target, error) {
	store, _, err := pluginhost.Open(ctx, e.spec, e.opts)
	if err != nil {
		return nil, err
	}
	e.open = append(e.open, store)
	return store, nil
}

// Close ends the plugin's processes.
func (e *Exam) Close(ctx context.Context) {
	for _, store := range e.open {
		store.Close(ctx)
	}
	errs := errors.Join(os.RemoveAll(e.scratch))
	if e.spool != nil {
		errs = errors.Join(errs, e.spool.Close())
	}
	_ = errs // what is left lies in the temporary folder, which the system empties
}
