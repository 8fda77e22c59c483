//go:build torture || cloud

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/internal/testaddr"
	"github.com/cairnsync/cairn/sdk/client"
)

// pipe is the name of the pipeline that is tortured, and so the prefix of its repository.
const pipe = "torture"

// patience bounds every wait for something that must happen: a loaded machine is slow, a broken host waits for ever.
const patience = 2 * time.Minute

// settings are what the tests vary in a world's configuration.
type settings struct {
	plugin     string // of the target
	config     string // attributes of its config block, beside the path of a target that is a folder
	target     string // that folder; "" = one of the world's own
	data       string // the first data folder, and
	spool      string // the spool; "" = likewise
	cloud      bool   // the target is no folder
	checkpoint string
	push       string
	keep       int                  // local checkpoints
	retention  repository.Retention // the zero value = no retention block
	pull       string               // pull_interval; "" = none
	standby    bool                 // on an empty data folder the pipeline is a standby
	maxBatch   int
	payload    int // bytes of incompressible text in each record
	file, http int // records of each input
	feed       int // number of the feed: two worlds of different numbers share no record
}

func (s settings) orDefaults() settings {
	if s.plugin == "" {
		s.plugin, s.config = "file", "create = true"
	}
	if s.checkpoint == "" {
		s.checkpoint = "100ms"
	}
	if s.push == "" {
		s.push = "200ms"
	}
	if s.keep == 0 {
		s.keep = 1
	}
	if s.maxBatch == 0 {
		s.maxBatch = 100
	}
	return s
}

// world is one pipeline with its target, its sources and, over time, many hosts: each a process of its own.
type world struct {
	t       *testing.T
	cfg     settings
	dir     string // short: sockets lie below it
	data    string // the data folder of the present host
	target  string
	address string
	url     string
	api     *client.Client
	feed    *feed
	sender  *sender
	log     *os.File
	bin     string
	host    *hostProcess // nil = none runs
	datas   int
}

// newWorld makes the folders and the configuration; nothing runs yet.
func newWorld(t *testing.T, plugins string, s settings) *world {
	t.Helper()
	s = s.orDefaults()
	dir, err := os.MkdirTemp("", "torture")
	check(t, err)
	t.Cleanup(func() {
		if !t.Failed() {
			check(t, os.RemoveAll(dir))
		}
	})
	address, err := testaddr.Reserve(t.Cleanup)
	check(t, err)
	w := &world{t: t, cfg: s, dir: dir, target: s.target, url: "http://" + address, bin: plugins}
	if w.target == "" {
		w.target = filepath.Join(dir, "target")
	}
	w.api = client.New(w.url, &http.Client{Timeout: 30 * time.Second})
	w.api.PollEvery = 20 * time.Millisecond
	w.feed = newFeed(t, filepath.Join(dir, "records.ndjson"), s)
	w.sender = newSender(w.url, s)
	w.log, err = os.Create(filepath.Join(dir, "hosts.log"))
	check(t, err)
	w.address = address
	w.rewrite()
	check(t, os.Mkdir(w.temp(), 0o700))
	w.freshData()
	if s.data != "" {
		w.data = s.data
	}
	t.Cleanup(w.close)
	return w
}

// rewrite makes the configuration file anew, for the next life.
func (w *world) rewrite() { check(w.t, os.WriteFile(w.configFile(), []byte(w.hcl(w.address)), 0o600)) }

func (w *world) configFile() string { return filepath.Join(w.dir, "cairn.hcl") }

// temp is the temporary folder of the hosts: a killed one leaves copies of plugins there.
func (w *world) temp() string { return filepath.Join(w.dir, "tmp") }

// close ends what runs. A failed test shows the end of the hosts' log and where all of it lies.
func (w *world) close() {
	w.kill()
	if w.t.Failed() {
		text, _ := os.ReadFile(w.log.Name()) // it is shown as far as it can be read
		w.t.Logf("kept for inspection: %s; the log ends with\n%s", w.dir, text[max(0, len(text)-6000):])
	}
	w.log.Close()
}

// apply counts each record in a row of its own, so that a lost or doubled one shows, and in aggregates.
const apply = `[
        "INSERT INTO seen (input, id, n, text) VALUES (:input, :record ->> '$.id', 1, :record ->> '$.text') ON CONFLICT (input, id) DO UPDATE SET n = n + 1",
        "INSERT INTO totals (input, bucket, n, amount) VALUES (:input, :record ->> '$.bucket', 1, :record ->> '$.amount') ON CONFLICT (input, bucket) DO UPDATE SET n = n + 1, amount = amount + excluded.amount",
      ]`

func (w *world) hcl(address string) string {
	return fmt.Sprintf(`
host {
  listen           = %q
  data_dir         = "data"
  plugin_dir       = %q
  shutdown_timeout = "20s"
  %s
}
plugin "faulty" {
  path = %q
  dev  = true
}
target "offsite" {
  plugin = %q
  config {
    %s
  }
}
pipeline %q {
  initial = %q
  circuit "sql" {
    schema    = <<SQL
CREATE TABLE seen (input TEXT, id INTEGER, n INTEGER NOT NULL, text TEXT, PRIMARY KEY (input, id)) WITHOUT ROWID;
CREATE TABLE totals (input TEXT, bucket INTEGER, n INTEGER NOT NULL, amount INTEGER NOT NULL, PRIMARY KEY (input, bucket)) WITHOUT ROWID;
SQL
    max_batch = %d
    input "lines" {
      file {
        path   = "records.ndjson"
        format = "ndjson"
        follow = true
      }
      apply = %s
    }
    input "calls" {
      http {}
      apply = %s
    }
  }
  checkpoint {
    interval = %q
    keep     = %d
  }
  storage "file" {
    start_from_checkpoint = "latest"
    sync "offsite" {
      push_interval = %q
      %s
    }
  }
}
`, address, w.bin, w.spool(), faultyPath(w.t), w.cfg.plugin, w.targetConfig(), pipe, w.initial(), w.cfg.maxBatch, apply, apply,
		w.cfg.checkpoint, w.cfg.keep, w.cfg.push, w.cfg.pullInterval()+w.cfg.retentionBlock())
}

func (w *world) initial() string {
	if w.cfg.standby {
		return "standby"
	}
	return "running"
}

func (w *world) spool() string {
	if w.cfg.spool == "" {
		return ""
	}
	return fmt.Sprintf("spool_dir = %q", w.cfg.spool)
}

func (w *world) targetConfig() string {
	if w.cfg.cloud {
		return w.cfg.config
	}
	return fmt.Sprintf("path = %q\n    %s", w.target, w.cfg.config)
}

func (s settings) pullInterval() string {
	if s.pull == "" {
		return ""
	}
	return fmt.Sprintf("pull_interval = %q\n      ", s.pull)
}

func (s settings) retentionBlock() string {
	if s.retention == (repository.Retention{}) {
		return ""
	}
	if s.retention.MinAge == 0 {
		return fmt.Sprintf("retention {\n        min_count = %d\n      }", s.retention.MinCount)
	}
	return fmt.Sprintf("retention {\n        min_count = %d\n        min_age   = %q\n      }", s.retention.MinCount, s.retention.MinAge)
}

func faultyPath(t *testing.T) string {
	path, err := exec.LookPath(faultyPlugin)
	check(t, err)
	return path
}

// freshData gives the next host an empty data folder. The one before is as lost as a burnt machine's.
func (w *world) freshData() {
	if w.data != "" {
		check(w.t, os.RemoveAll(w.data))
	}
	w.datas++
	w.data = filepath.Join(w.dir, fmt.Sprintf("d%d", w.datas))
	w.sender.forget()
}

// eventually polls a condition. It fails the test when the host ends meanwhile.
func (w *world) eventually(what string, done func() bool) {
	w.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-limit.C:
			w.t.Fatalf("not within %v: %s", patience, what)
		case <-w.host.done:
			w.t.Fatalf("the host ended (%v) before: %s", w.host.err, what)
		case <-tick.C:
		}
	}
}

// view is the pipeline's, or the zero view while no host answers.
func (w *world) view() client.PipelineView {
	view, err := w.api.Pipeline(w.t.Context(), pipe)
	if err != nil {
		return client.PipelineView{}
	}
	return view
}

func (w *world) offsite() client.TargetView {
	if targets := w.view().Targets; len(targets) == 1 {
		return targets[0]
	}
	return client.TargetView{}
}

func (w *world) running() bool { return w.view().State == "running" }

// cairn runs a command of the program to its end and answers what it printed.
func (w *world) cairn(args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "cairn", args...)
	cmd.Env = append(os.Environ(), "CAIRN_ADDRESS="+w.url, "TMPDIR="+w.temp())
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("cairn %s: %v\n%s%s", strings.Join(args, " "), err, out, &failed)
	}
	return string(out)
}

// query answers the rows of a statement, or "" while no host answers.
func (w *world) query(sql string) string {
	var rows bytes.Buffer
	if err := w.api.Query(w.t.Context(), pipe, sql, &rows); err != nil {
		return ""
	}
	return rows.String()
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
