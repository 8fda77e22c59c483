// Package config turns a host's HCL file into a typed configuration, or into a list of everything that is wrong with it.
//
// It is the only room that knows HCL. Load reads one file, evaluates it, checks every block against the tables in spec.go and every
// target's body against its plugin's schema, and reports all faults of the file in one run, each with file, line, the source text and
// what to do about it. Nothing here keeps a goroutine or a file open; the result is plain values which the caller owns.
//
// A relative path in a configuration stands under the folder of the file that names it, so that a host started from anywhere means the
// same thing. The one exception is a pipeline's storage path, which stands under data_dir.
package config

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/cairnsync/cairn/core/trigger"
)

// Config is one host's whole configuration, checked and complete: every default is filled in, every path is absolute.
type Config struct {
	File      string // absolute path of the file it came from
	Host      Host
	Targets   []Target   // in the order of the file
	Pipelines []Pipeline // in the order of the file
}

// Host holds what concerns the process as a whole.
type Host struct {
	Listen          string // host:port of the HTTP API
	DataDir         string
	DataDirGiven    bool // it took the place of what the file says
	PluginDir       string
	SpoolDir        string // the only folder that plugins can see
	LogLevel        string // trace, debug, info, warn, error
	LogFormat       string // text, json
	ShutdownTimeout time.Duration

	RequireChecksums bool // no plugin runs unchecked
}

// RunDir is where plugins run from. It belongs to the host alone.
func (h Host) RunDir() string { return filepath.Join(h.DataDir, "run") }

// MemoryDir holds what circuits under memory storage work in, which is removed at each start. It belongs to the host alone.
func (h Host) MemoryDir() string { return filepath.Join(h.DataDir, "memory") }

// Plugin is an executable that serves targets.
type Plugin struct {
	Name     string
	Path     string            // absolute
	Checksum string            // "sha256:" and lower hex; "" = not checked
	Env      map[string]string // the plugin's whole environment, beside what the protocol needs
	Dev      bool              // skip checksum and permission checks, loudly

	MemoryLimit int64 // bytes of data that each of its processes may map; 0 = no bound
}

// Target is one configured instance of a plugin.
type Target struct {
	Name   string
	Plugin Plugin
	Body   Body

	sound   bool
	folders []folder // where its objects lie on this machine, if they do
}

// Sound tells that nothing in the target's block is at fault, so that it makes sense to ask the plugin about it.
func (t Target) Sound() bool { return t.sound }

// Pipeline is one circuit with its checkpoints and its storage.
type Pipeline struct {
	Name       string
	Initial    Initial
	Circuit    SQL
	Checkpoint Checkpoint
	Backend    Backend

	place Diagnostic // where a fault of the circuit is to be shown
	sound bool
}

// Sound tells that nothing in the pipeline's circuit block is at fault, so that it makes sense to build the circuit.
func (p Pipeline) Sound() bool { return p.sound }

// Fault places a circuit's own complaint at the pipeline's circuit block.
func (p Pipeline) Fault(summary, remedy string) Diagnostic {
	at := p.place
	at.Severity, at.Summary, at.Remedy = Error, fmt.Sprintf("pipeline %q: %s", p.Name, summary), remedy
	return at
}

// Initial is the state a pipeline starts in when it has never run here.
type Initial string

// The initial states.
const (
	InitiallyRunning Initial = "running"
	InitiallyPaused  Initial = "paused"
	InitiallyStandby Initial = "standby"
)

// SQL configures the built-in circuit.
type SQL struct {
	Schema   string
	MaxBatch int           // records applied in one step at most
	MinBatch int           // records that make a step due at once
	MaxDelay time.Duration // how long fewer records than MinBatch may wait
	Inputs   []Input
}

// Input is one stream of records into a SQL circuit. Exactly one of File and HTTP is set.
type Input struct {
	Name    string
	Apply   []string // one SQL statement each
	OnError string   // record, stop
	File    *FileInput
	HTTP    *HTTPInput
}

// FileInput reads files from disk.
type FileInput struct {
	Path   string // absolute; may be a glob
	Base   string // the configuration's folder, where the path is written relative to it; "" = it is written absolute
	Format string // csv, ndjson
	Follow bool
}

// HTTPInput takes batches over the API.
type HTTPInput struct {
	Format string // csv, ndjson
}

// Checkpoint says when local checkpoints are taken and how many are kept.
type Checkpoint struct {
	Interval time.Duration // 0 = only on request and at a stop
	Keep     int           // newest local checkpoints that stay on disk
}

// Sync is one sync block: where a pipeline's newest checkpoint is pushed, and how often.
type Sync struct {
	Target         string
	Prefix         string        // of every key of this pipeline on the target
	PushInterval   time.Duration // 0 = only on request
	PullInterval   time.Duration // of a standby; 0 = it does not follow this target
	PushOnShutdown bool
	Fencing        string     // required, advisory
	Retention      *Retention // nil = every commit is kept
}

// Retention says which commits a target keeps besides the newest, the newest that was verified and those that are pinned: what any of its rules
// keeps. At least one of MinCount and MinAge is set.
type Retention struct {
	MinCount  int           // the newest so many checkpoints; 0 = this rule keeps none
	MinAge    time.Duration // those committed less than this ago; 0 = this rule keeps none
	MaxDelete int           // a run that would retire more retires none; 0 = no guard
}

// Seed is another repository to begin with. It is never written.
type Seed struct {
	Target string
	Prefix string
	From   string // "" = as Start.From, "latest", or a checkpoint's uuid
}

// Start says which state a file-style backend starts from when there is no local one.
type Start struct {
	From               string // "" = local state only, "latest", or a checkpoint's uuid
	FailIfNoCheckpoint bool
}

// Policy is the schedule that the trigger follows for this pipeline.
func (p Pipeline) Policy() trigger.Policy {
	policy := trigger.Policy{
		CheckpointEvery: p.Checkpoint.Interval,
		MinBatch:        p.Circuit.MinBatch,
		MaxDelay:        p.Circuit.MaxDelay,
	}
	blocks, _ := p.Backend.Sync() // a backend that cannot sync has no blocks, which is what a policy without targets says
	for _, block := range blocks {
		policy.Targets = append(policy.Targets, trigger.TargetPolicy{
			Name:      block.Target,
			PushEvery: block.PushInterval,
			RetryMin:  retryMin,
			RetryMax:  retryMax,
		})
	}
	return policy
}

// A periodic job that failed for good (the syncer has spent its own retries) starts again after a second at the earliest and, when it
// keeps failing, every five minutes.
const (
	retryMin = time.Second
	retryMax = 5 * time.Minute
)
