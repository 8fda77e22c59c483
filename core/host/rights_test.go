package host

import (
	"context"
	"errors"
	"iter"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/pluginhost"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk"
)

// liar is a store that takes every create, as if nobody had asked for a condition.
type liar struct{ syncer.Store }

func (l liar) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	req.IfAbsent = false
	return l.Store.Put(ctx, req)
}

func lying(o *Options) { o.around = func(s syncer.Store) syncer.Store { return liar{s} } }

const advisoryBlock = "sync \"t\" {\n fencing = \"advisory\"\n}\n"

func TestAStoreThatLiesIsRefusedAndUnderAdvisoryFencingPushedToLoudly(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}, lying).up()
	first.insert(0, 5)
	first.checkpoint()
	_, err := first.SyncCheckpoint(t.Context(), "p", true)
	if err == nil {
		t.Fatal("a store that lies about create-if-absent was pushed to")
	}
	contains(t, err.Error(), "create-if-absent", "ignores the condition", `fencing = "advisory"`)
	view, status := first.view("p").Targets[0], first.syncs().Targets[0]
	equal(t, "state", view.State, "refused")
	equal(t, "fencing", view.Fencing, "required")
	contains(t, view.Reason, "two writers could overwrite each other")
	equal(t, "conditional", view.Rights.Conditional.State, "failed")
	equal(t, "conditional in sync_status", status.Rights.Conditional.State, "failed")
	equal(t, "write", view.Rights.Write.State, "ok")
	if entries, err := os.ReadDir(w.path("target", "p")); err == nil && len(entries) > 0 {
		t.Errorf("a refused store keeps %v", entries)
	}
	first.stop()

	second := w.start(conf{sync: advisoryBlock}, lying).up()
	contains(t, second.log.String(), "two writers cannot be told apart")
	before := second.view("p").Targets[0]
	contains(t, strings.Join(before.Warnings, "\n"), "two writers cannot be told apart")
	id := second.push()
	view, status = second.view("p").Targets[0], second.syncs().Targets[0]
	equal(t, "committed", view.Committed.UUID.String(), id)
	equal(t, "state", view.State, "ready")
	for where, text := range map[string]string{
		"the pipeline's view": view.Fencing + strings.Join(view.Warnings, "\n"), "sync_status": status.Fencing + strings.Join(status.Warnings, "\n"),
	} {
		if !strings.HasPrefix(text, "advisory") || !strings.Contains(text, "two writers cannot be told apart") {
			t.Errorf("%s says %q", where, text)
		}
	}
	equal(t, "effective fencing", second.view("p").Storage.Sync[0].Fencing, "advisory")
	rows := second.rows()
	second.kill()

	third := w.start(conf{data: "elsewhere", from: "latest", strict: true}, lying).up()
	equal(t, "rows", third.rows(), rows)
}

// comes is a store that is down until it comes.
type comes struct {
	syncer.Store

	asked *sync.Once
	down  chan struct{} // closed at the first call
	up    *atomic.Bool
}

func (c comes) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	if c.up.Load() {
		return c.Store.List(ctx, req)
	}
	c.asked.Do(func() { close(c.down) })
	return func(yield func(sdk.Object, error) bool) {
		yield(sdk.Object{}, &sdk.Error{Code: sdk.Unavailable, Op: "list", Key: req.Prefix})
	}
}

func TestAStoreThatIsDownAtTheFirstPushIsProbedWhenItComes(t *testing.T) {
	w := newWorld(t)
	store := comes{asked: &sync.Once{}, down: make(chan struct{}), up: &atomic.Bool{}}
	h := w.start(conf{}, func(o *Options) {
		o.around = func(s syncer.Store) syncer.Store {
			c := store
			c.Store = s
			return c
		}
	}).up()
	h.insert(0, 5)
	id := h.checkpoint()
	_, err := h.SyncCheckpoint(t.Context(), "p", false)
	must(t, err)
	<-store.down
	h.until("the job shows what it waits for", func() bool {
		running := h.view("p").Targets[0].Running
		return running != nil && strings.Contains(running.Error, "store unavailable")
	})
	if target := h.view("p").Targets[0]; target.State != "pushing" || target.Rights != nil {
		t.Errorf("while the store is down: %+v", target)
	}
	store.up.Store(true)
	h.until("the push is committed", func() bool { return text(h.syncs().Success) == id })
	target := h.view("p").Targets[0]
	if target.Rights == nil || target.Rights.Conditional.State != "ok" || len(target.Warnings) != 0 || target.Rights.ProbedAt.IsZero() {
		t.Errorf("rights %+v, warnings %q", target.Rights, target.Warnings)
	}
	if entries, err := os.ReadDir(w.path("target", "p", "probe")); err == nil && len(entries) > 0 {
		t.Errorf("the probe has left %v", entries)
	}
}

func TestATargetIsProbedFromTheConfigurationAlone(t *testing.T) {
	w := newWorld(t)
	file := w.path("cairn.hcl")
	more := pipelineBlock("q", conf{schema: "not read", sync: "sync \"t\" {\n prefix = \"deep/q\"\n fencing = \"advisory\"\n}\n"}) +
		"target \"unused\" {\n plugin = \"file\"\n config {\n path = \"/x\"\n }\n}\n"
	must(t, os.WriteFile(file, []byte(w.hcl(conf{more: more})), 0o600))
	opts := LoadOptions{Now: quiet().Now}
	probes, found, err := ProbeTarget(t.Context(), file, "t", hclog.NewNullLogger(), opts)
	if err != nil || len(probes) != 2 {
		t.Fatalf("%+v, %v, %v", probes, found, err)
	}
	for _, one := range probes {
		want := map[string][2]string{"p": {"p", "usable"}, "q": {"deep/q", "advisory"}}[one.Pipeline]
		if one.Prefix != want[0] || one.Use != want[1] || !one.Pushable() || !one.Known() || one.Rights.Conditional.State != "ok" || one.Rights.ClockWithin == "" {
			t.Errorf("got %+v", one)
		}
		equal(t, "warnings of "+one.Pipeline, len(one.Warnings), map[string]int{"p": 0, "q": 1}[one.Pipeline])
	}
	for _, unknown := range []string{"nobody", "unused"} {
		if _, _, err := ProbeTarget(t.Context(), file, unknown, hclog.NewNullLogger(), opts); !errors.Is(err, ErrUnknown) {
			t.Errorf("target %q: %v", unknown, err)
		}
	}
	mustBeAbsent(t, w.path("data", "p")) // nothing of a host was touched
}

func TestARequestedSyncHasABrokenPluginStartedAgain(t *testing.T) {
	w := newWorld(t)
	cfg := w.load(w.hcl(conf{}))
	h := w.runChanged(cfg, func(h *Host) {
		target := h.targets["t"]
		spec, err := pluginSpec(target.cfg, h.spool.Dir())
		must(t, err)
		opts := pluginOptions(cfg, h.opts)
		opts.Restart = pluginhost.RestartPolicy{Crashes: 1} // the first is one too many
		target.plugin, err = pluginhost.New(spec, opts)
		must(t, err)
	}).up()
	h.insert(0, 5)
	id := h.checkpoint()
	h.until("the plugin serves", func() bool { return h.view("p").Targets[0].Plugin.State == "ready" })
	pid, err := strconv.Atoi(regexp.MustCompile(`plugin started: .*pid=(\d+)`).FindStringSubmatch(h.log.String())[1])
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	h.until("the plugin is given up", func() bool { return h.view("p").Targets[0].Plugin.State == "broken" })
	equal(t, "pushed", h.push(), id)
	equal(t, "plugin", h.view("p").Targets[0].Plugin.State, "ready")
}
