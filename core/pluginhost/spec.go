package pluginhost

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Spec says what to run for one target. It is data from the configuration; nothing in it changes while the target lives.
type Spec struct {
	Target   string            // name of the target in the configuration, for logs and status
	Plugin   string            // name of the plugin, as in plugin = "NAME"
	Path     string            // the binary or script to run; a Catalog resolves a name to it
	Checksum string            // "sha256:" and 64 hex digits, as Hash prints it; empty = any content
	Env      map[string]string // the whole environment the plugin gets beside what go-plugin needs; there is no PATH
	Dev      bool              // skips the checksum and the permission checks, and says so at each start

	// MemoryLimit is the most bytes of data that each process of the plugin may map (RLIMIT_DATA, Linux only); 0 = no bound. A Go plugin is told
	// nine tenths of it as GOMEMLIMIT, unless Env says something else.
	MemoryLimit int64

	Config  []byte   // the target's config body, a JSON object
	Secrets []string // the values in Config that are secret: masked in all that the plugin says
	Spool   string   // the one directory through which bodies are handed over; empty = none
}

// Options are the host's side: the same for all targets.
type Options struct {
	Log        hclog.Logger     // nil discards
	RuntimeDir string           // parent of the private directories, usually <data_dir>/run; made 0700 when absent
	Now        func() time.Time // required
	Jitter     func() float64   // in [0, 1); nil = random
	Timeouts   Timeouts
	Restart    RestartPolicy
}

// Timeouts bound every step of a plugin's life. Zero means the default.
type Timeouts struct {
	Start time.Duration // from fork to a connected client: 30 s, a cold start on a loaded machine takes one or two
	Call  time.Duration // each of Describe, Validate, Configure: 10 s
	Ready time.Duration // how long a call without a deadline waits for a process: 30 s
	Hung  time.Duration // a call without any event from the plugin: 10 s, ten missed heartbeats
	Stall time.Duration // a call whose events move no bytes: 60 s
	Drain time.Duration // calls in flight may finish: 10 s
	Term  time.Duration // from SIGTERM to SIGKILL: 5 s
	Kill  time.Duration // from SIGKILL to giving up, and for each step of cleaning up: 5 s
}

func (t Timeouts) withDefaults() Timeouts {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&t.Start, 30 * time.Second},
		{&t.Call, 10 * time.Second},
		{&t.Ready, 30 * time.Second},
		{&t.Hung, 10 * time.Second},
		{&t.Stall, time.Minute},
		{&t.Drain, 10 * time.Second},
		{&t.Term, 5 * time.Second},
		{&t.Kill, 5 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return t
}

// prepare checks what can be checked without touching the plugin and fills in the defaults.
func (o Options) prepare(spec Spec) (Options, error) {
	if o.Now == nil {
		return o, errors.New("pluginhost: Options.Now is not set")
	}
	if o.RuntimeDir == "" {
		return o, errors.New("pluginhost: Options.RuntimeDir is not set")
	}
	dir, err := filepath.Abs(o.RuntimeDir)
	if err != nil {
		return o, fmt.Errorf("runtime directory %s: %w", o.RuntimeDir, err)
	}
	o.RuntimeDir = dir
	if err := CheckRuntimeDir(dir); err != nil {
		return o, err
	}
	if err := spec.check(); err != nil {
		return o, err
	}
	if o.Log == nil {
		o.Log = hclog.NewNullLogger()
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	o.Log = o.Log.Named("plugin").With("target", spec.Target)
	o.Timeouts = o.Timeouts.withDefaults()
	o.Restart = o.Restart.withDefaults()
	return o, nil
}

func (s Spec) check() error {
	if !filepath.IsAbs(s.Path) { // a bare name would be looked for in whatever directory the host runs in
		return fmt.Errorf("plugin %q: path %q is not absolute", s.Plugin, s.Path)
	}
	if s.Checksum != "" {
		if _, err := parseChecksum(s.Checksum); err != nil {
			return fmt.Errorf("plugin %q: %w", s.Plugin, err)
		}
	}
	for name, value := range s.Env {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00"):
			return fmt.Errorf("plugin %q: env %q: a name is not empty and holds no \"=\", and neither name nor value holds a NUL", s.Plugin, name)
		case isReserved(name):
			return fmt.Errorf("plugin %q: env %s: the name belongs to the plugin protocol; leave it out", s.Plugin, name)
		}
	}
	return nil
}
