package host

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/sdk/client"
)

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

// quick is a host that does not take long over a store that does not answer.
func quick(o *Options) {
	o.pace = pace{remote: time.Second, first: 10 * time.Millisecond, most: 100 * time.Millisecond}
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
	var why string
	r.until("pipeline p fails", func() bool {
		v := r.view("p") // one look: a start that begins meanwhile takes the reason away
		why = v.Error
		return v.State == "failed"
	})
	return why
}
