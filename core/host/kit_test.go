package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/client"
)

// patience bounds every wait for something that must happen: a loaded machine is slow, a broken host waits for ever.
const testPatience = 45 * time.Second

// plugins is the folder of the file plugin, built once for the run, and what that says of itself.
var plugins struct {
	dir    string
	schema sdk.Schema
}

func TestMain(m *testing.M) {
	dir, err := buildPlugin()
	if err == nil {
		plugins.dir = dir
		var about sdk.Description
		about, err = DescribePlugin(context.Background(), filepath.Join(dir, "cairn-plugin-file"), time.Now)
		plugins.schema = about.Schema
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// buildPlugin puts the file plugin into a folder that only this user may write.
func buildPlugin() (string, error) {
	dir, err := os.MkdirTemp("", "cairn-host-test")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "cairn-plugin-file")
	out, err := exec.Command("go", "build", "-o", file, "github.com/cairnsync/cairn/plugins/file").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build plugin: %w\n%s", err, out)
	}
	return dir, errors.Join(os.Chmod(dir, 0o755), os.Chmod(file, 0o755))
}

// world is a machine's disk: a target that outlives hosts, and the folder of the hosts that come and go.
type world struct {
	t      *testing.T
	dir    string
	target string
}

// newWorld also lets the test run beside others: most of its time it waits for processes and disks.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	dir, err := os.MkdirTemp("", "cw") // short: sockets lie below it
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{t: t, dir: dir, target: filepath.Join(dir, "target")}
	must(t, os.Mkdir(w.target, 0o755))
	return w
}

func (w *world) path(elem ...string) string {
	return filepath.Join(append([]string{w.dir}, elem...)...)
}

// conf is what tests vary in a configuration with one pipeline "p" that syncs to target "t".
type conf struct {
	data       string // data folder; "" = "data"
	checkpoint string // interval; "" = on request only
	push       string // interval; "" = on request only
	atEnd      bool   // push_on_shutdown
	from       string // start_from_checkpoint
	strict     bool   // fail_if_no_checkpoint
	schema     string // "" = one table t0
	initial    string
	timeout    string // shutdown_timeout
	memory     bool
	object     bool   // on target t
	retain     int    // min_count of object storage
	more       string // further blocks
	sync       string // in place of the sync block
	pull       string // pull_interval
	seed       string // attributes of a seed block on target "t"
}

const schema = "CREATE TABLE t0 (id INTEGER, text TEXT)"

func (w *world) hcl(c conf) string {
	var b strings.Builder
	or := func(value, otherwise string) string {
		if value == "" {
			return otherwise
		}
		return value
	}
	fmt.Fprintf(&b, "host {\n  listen = \"127.0.0.1:0\"\n  data_dir = %q\n  plugin_dir = %q\n  shutdown_timeout = %q\n}\n", w.path(or(c.data, "data")), plugins.dir, or(c.timeout, "30s"))
	fmt.Fprintf(&b, "target \"t\" {\n  plugin = \"file\"\n  config {\n    path = %q\n  }\n}\n%s\n", w.target, c.more)
	b.WriteString(pipelineBlock("p", c))
	return b.String()
}

func pipelineBlock(name string, c conf) string {
	var b strings.Builder
	line := func(format, value string) {
		if value != "" {
			fmt.Fprintf(&b, format+"\n", value)
		}
	}
	text := schema
	if c.schema != "" {
		text = c.schema
	}
	line("pipeline %q {", name)
	line("  initial = %q", c.initial)
	line("  circuit \"sql\" {\n    schema = %q\n    input \"rows\" {\n      http {}\n      apply = \"INSERT INTO t0 (id, text) VALUES (:record ->> '$.id', :record ->> '$.text')\"\n    }\n  }", text)
	line("  checkpoint {\n    interval = %q\n  }", c.checkpoint)
	if c.memory {
		b.WriteString("  storage \"memory\" {}\n}\n")
		return b.String()
	}
	if c.object {
		fmt.Fprintf(&b, "  storage \"object\" {\n    target = \"t\"\n    fail_if_no_checkpoint = %v\n", c.strict)
		if c.retain > 0 {
			fmt.Fprintf(&b, "    retention {\n      min_count = %d\n    }\n", c.retain)
		}
		b.WriteString("  }\n}\n")
		return b.String()
	}
	b.WriteString("  storage \"file\" {\n")
	line("    start_from_checkpoint = %q", c.from)
	fmt.Fprintf(&b, "    fail_if_no_checkpoint = %v\n", c.strict)
	if c.sync != "" {
		b.WriteString(c.sync)
	} else {
		fmt.Fprintf(&b, "    sync \"t\" {\n      push_on_shutdown = %v\n", c.atEnd)
		line("      push_interval = %q", c.push)
		line("      pull_interval = %q", c.pull)
		b.WriteString("    }\n")
	}
	line("    seed \"t\" {\n%s\n    }", c.seed)
	b.WriteString("  }\n}\n")
	return b.String()
}

// load reads a configuration, with the schema of the file plugin for every target.
func (w *world) load(hcl string) *config.Config {
	w.t.Helper()
	file := w.path("cairn.hcl")
	must(w.t, os.WriteFile(file, []byte(hcl), 0o600))
	cfg, found := config.Load(file, config.Options{Schema: func(config.Host, config.Plugin) (sdk.Schema, error) { return plugins.schema, nil }})
	if found.HasErrors() {
		w.t.Fatalf("%v\n%s", found, hcl)
	}
	return cfg
}

// liveHost is a host that runs, with a client of its API.
type liveHost struct {
	*client.Client

	t    *testing.T
	host *Host
	url  string
	log  *logBook
	end  context.CancelFunc
	done chan error
}

// start runs a host; it ends with the test at the latest.
func (w *world) start(c conf, change ...func(*Options)) *liveHost {
	w.t.Helper()
	return w.run(w.load(w.hcl(c)), change...)
}

func (w *world) run(cfg *config.Config, change ...func(*Options)) *liveHost {
	w.t.Helper()
	return w.runChanged(cfg, func(*Host) {}, change...)
}

// runChanged changes something inside of the host before it runs.
func (w *world) runChanged(cfg *config.Config, inside func(*Host), change ...func(*Options)) *liveHost {
	w.t.Helper()
	r := &liveHost{t: w.t, log: &logBook{}, done: make(chan error, 1)}
	listening := make(chan net.Addr, 1)
	opts := Options{
		Log: hclog.New(&hclog.LoggerOptions{Output: r.log, Level: hclog.Debug}), Now: time.Now, Version: "cairn test",
		Listening: func(a net.Addr) { listening <- a },
	}
	for _, f := range change {
		f(&opts)
	}
	h, err := New(cfg, opts)
	must(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	inside(h)
	r.host, r.end = h, cancel
	go func() { r.done <- h.Run(ctx) }()
	w.t.Cleanup(func() {
		r.stop()
		if w.t.Failed() {
			w.t.Logf("log of a host:\n%s", r.log)
		}
	})
	r.url = "http://" + (<-listening).String()
	r.Client = client.New(r.url, nil)
	r.PollEvery = 5 * time.Millisecond
	return r
}

// stop ends the host in order and waits for it.
func (r *liveHost) stop() {
	r.t.Helper()
	r.end()
	if err, first := <-r.done; first && err != nil {
		r.t.Errorf("Run: %v", err)
	} else if first {
		close(r.done)
	}
}

// up waits until the pipeline runs.
func (r *liveHost) up() *liveHost {
	r.t.Helper()
	r.until("pipeline p runs", func() bool { return r.view("p").State == "running" })
	return r
}

// begin starts the pipeline as soon as the host takes that.
func (r *liveHost) begin() {
	r.t.Helper()
	r.until("the host takes a start", func() bool {
		err := r.Start(r.t.Context(), "p")
		if err != nil && code(err) != client.CodeNotRunning {
			r.t.Fatal(err)
		}
		return err == nil
	})
}

// until polls a condition.
func (r *liveHost) until(what string, met func() bool) {
	r.t.Helper()
	deadline := time.After(testPatience)
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for !met() {
		select {
		case <-every.C:
		case <-deadline:
			r.t.Fatalf("never: %s; view %+v", what, r.view("p"))
		}
	}
}

func (r *liveHost) view(name string) client.PipelineView {
	r.t.Helper()
	v, err := r.Pipeline(r.t.Context(), name)
	must(r.t, err)
	return v
}

func (r *liveHost) syncs() client.SyncStatus {
	r.t.Helper()
	s, err := r.Syncs(r.t.Context(), "p")
	must(r.t, err)
	return s
}

// insert sends rows from..to to pipeline p.
func (r *liveHost) insert(from, to int) client.Ingested {
	r.t.Helper()
	got, err := r.Ingest(r.t.Context(), "p", "rows", "", 0, "", rows(from, to))
	must(r.t, err)
	return got
}

func rows(from, to int) *strings.Reader {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "{\"id\": %d, \"text\": \"row %d\"}\n", i, i*i)
	}
	return strings.NewReader(b.String())
}

// rows are all rows of t0, as a multiset.
func (r *liveHost) rows() string {
	r.t.Helper()
	var b strings.Builder
	must(r.t, r.Query(r.t.Context(), "p", "SELECT id, text FROM t0 ORDER BY id, text", &b))
	return b.String()
}

// checkpoint takes one of pipeline p and answers with its id.
func (r *liveHost) checkpoint() string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), testPatience)
	defer cancel()
	must(r.t, r.CheckpointAndWait(ctx, "p"))
	all, err := r.Checkpoints(r.t.Context(), "p")
	must(r.t, err)
	return all[len(all)-1].UUID.String()
}

// push syncs the newest checkpoint of pipeline p and answers with its id.
func (r *liveHost) push() string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), testPatience)
	defer cancel()
	id, err := r.SyncCheckpoint(ctx, "p", true)
	must(r.t, err)
	return id.String()
}

// kill ends the pipeline without a checkpoint, then the host: what is not in a checkpoint is lost with the storage.
func (r *liveHost) kill() {
	r.t.Helper()
	must(r.t, r.Stop(r.t.Context(), "p", false))
	r.stop()
}

// failed waits until pipeline p has failed and answers why.
func (r *liveHost) failed() string {
	r.t.Helper()
	r.until("pipeline p fails", func() bool { return r.view("p").State == "failed" })
	return r.view("p").Error
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// code is the error code that the API answered; "" for none.
func code(err error) string {
	var answered *client.Error
	if errors.As(err, &answered) {
		return answered.Code
	}
	return ""
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// logBook keeps what was logged.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// count is how many lines hold the text.
func (b *logBook) count(part string) int { return strings.Count(b.String(), part) }

// quiet are the options of a host whose log nobody reads.
func quiet() Options { return Options{Log: hclog.NewNullLogger(), Now: time.Now} }
