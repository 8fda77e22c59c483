package config

import (
	"fmt"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
)

func (l *loader) pipelines(file section, cfg *Config) []Pipeline {
	var all []Pipeline
	names, claims := map[string]hcl.Range{}, &claims{targets: cfg.Targets}
	for _, b := range file.all("pipeline") {
		if !l.reads(b) {
			continue
		}
		s := file.load(b)
		s.name(names)
		p := Pipeline{Name: s.label, Initial: Initial(s.text("initial"))}
		s.circuit(&p)
		checkpoint, hasCheckpoint := s.inner("checkpoint")
		if !hasCheckpoint {
			checkpoint = section{loader: l, spec: checkpointSpec()} // its defaults
		}
		p.Checkpoint = Checkpoint{Interval: checkpoint.duration("interval"), Keep: checkpoint.integer("keep")}
		if b := s.all("storage"); len(b) > 0 {
			p.Backend = s.backend(b[0], p, cfg, claims)
			if hasCheckpoint && p.Backend.Type == MemoryBackend {
				s.fault(checkpoint.at, "a checkpoint block under memory storage", `Nothing survives in memory, so there is nothing to checkpoint: remove the block, or use storage "file".`)
			}
		}
		s.follows(p)
		all = append(all, p)
	}
	return all
}

// circuit is left out where only the pipeline's storage is wanted.
func (s section) circuit(p *Pipeline) {
	seen := len(s.found)
	if circuit, ok := s.inner("circuit"); ok && (s.opts.whole() || s.opts.WithCircuit) {
		p.Circuit = circuit.sql()
		p.place = diagnostic(Error, s.source, circuit.at, "", "")
		p.sound = !s.found[seen:].HasErrors()
	}
}

func (s section) sql() SQL {
	if s.label != "sql" {
		s.fault(s.labels, fmt.Sprintf("no circuit of type %q", s.label), `Use circuit "sql"; circuits of your own are built in through the Go package core/host.`)
	}
	c := SQL{
		Schema:   s.text("schema"),
		MaxBatch: s.integer("max_batch"),
		MinBatch: s.integer("min_batch"),
		MaxDelay: s.duration("max_delay"),
	}
	names := map[string]hcl.Range{}
	for _, b := range s.all("input") {
		in := s.load(b)
		in.name(names)
		c.Inputs = append(c.Inputs, in.input())
	}
	return c
}

func (s section) input() Input {
	in := Input{Name: s.label, Apply: s.texts("apply"), OnError: s.text("on_error")}
	file, isFile := s.inner("file")
	http, isHTTP := s.inner("http")
	switch {
	case isFile && isHTTP:
		s.fault(http.at, fmt.Sprintf("input %q has two sources", s.label), "Keep the file block or the http block; a second input can have the other.")
	case isFile:
		in.File = &FileInput{Path: file.path("path", s.dir), Base: file.base("path", s.dir), Format: file.text("format"), Follow: file.boolean("follow")}
	case isHTTP:
		in.HTTP = &HTTPInput{Format: http.text("format")}
	default:
		s.fault(s.at, fmt.Sprintf("input %q has no source", s.label), "Add a file { … } or an http { } block.")
	}
	return in
}

// backend decides by the label what may stand in a storage block.
func (s section) backend(b *hcl.Block, p Pipeline, cfg *Config, claims *claims) Backend {
	switch kind := BackendType(b.Labels[0]); kind {
	case FileBackend:
		s.refuseStray(b, "%s belongs in a sync block", `Write it inside sync "TARGET" { … }.`, "push_interval", "pull_interval", "push_on_shutdown", "prefix", "fencing")
		s.refuseStray(b, `%s belongs to storage "object"`, `Name the target in a sync "TARGET" { … } block, or use storage "object".`, "target")
		s.refuseRetention(b)
		return s.load(b).fileBackend(p, cfg, claims)
	case MemoryBackend:
		s.refuseSync(b)
		return Backend{Type: kind}
	case ObjectBackend:
		s.refuseSchedule(b)
		return s.load(b).objectBackend(p, cfg, claims)
	default:
		s.fault(b.LabelRanges[0], fmt.Sprintf("no storage of type %q", b.Labels[0]), `Use storage "file", "object" or "memory".`)
		return Backend{}
	}
}

func (s section) fileBackend(p Pipeline, cfg *Config, claims *claims) Backend {
	backend := Backend{Type: FileBackend, Path: s.folder(p, cfg, claims), Start: s.start()}
	seen := map[string]hcl.Range{}
	for _, b := range s.all("sync") {
		if s.opts.OnlyTarget != "" && b.Labels[0] != s.opts.OnlyTarget {
			continue
		}
		inner := s.load(b)
		block, ok := inner.sync(p, cfg)
		if first, twice := seen[inner.label]; twice {
			s.fault(inner.labels, fmt.Sprintf("a second sync block for target %q", inner.label), fmt.Sprintf("The first is in line %d. Remove one.", first.Start.Line))
			continue
		}
		seen[inner.label] = inner.labels
		if ok {
			claims.repository(inner, p, block)
		}
		backend.repos = append(backend.repos, block) // one at fault too, so that only the true fault is told
	}
	s.beginnings(p, cfg, &backend)
	return backend
}

// objectBackend has one repository, which is what there is to start from.
func (s section) objectBackend(p Pipeline, cfg *Config, claims *claims) Backend {
	backend := Backend{
		Type: ObjectBackend, Path: s.folder(p, cfg, claims), Start: Start{From: "latest", FailIfNoCheckpoint: s.boolean("fail_if_no_checkpoint")},
	}
	seen := len(s.found)
	target := s.text("target")
	switch {
	case !s.has("target"):
		s.fault(s.at, `storage "object" names no target`, `Add target = "NAME", of a target block of this file.`)
	case s.opts.OnlyTarget != "" && target != s.opts.OnlyTarget:
		return backend
	}
	if len(s.found) > seen {
		s.belowTarget(p)
		return backend
	}
	if repo, ok := s.repository(target, s.where("target"), p, cfg); ok {
		claims.repository(s, p, repo)
		backend.repos = []Sync{repo}
	}
	return backend
}

// folder is the pipeline's own, which no other may share.
func (s section) folder(p Pipeline, cfg *Config, claims *claims) string {
	folder := s.path("path", cfg.Host.DataDir)
	if folder == "" {
		folder = filepath.Join(cfg.Host.DataDir, p.Name)
	}
	claims.path(s, p.Name, folder, cfg.Host)
	return folder
}
