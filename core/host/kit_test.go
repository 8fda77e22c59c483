package host

import (
	"context"
	"errors"
	"fmt"
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
