package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/api"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/syncer"
)

// Options are what a Host takes from the process it lives in.
type Options struct {
	Log     hclog.Logger     // required
	Now     func() time.Time // required; with a monotonic reading, as time.Now
	Version string           // of the program, written into what it stores: "cairn 0.1.0"

	// Circuit builds the circuit of a pipeline; nil = the built-in ones. It does no I/O.
	Circuit func(config.Pipeline) (circuit.Circuit, error)

	// Exclude names targets that shall not be asked which state to start from, after an operator has seen what the others hold.
	Exclude []string

	// Listening is called once with the address of the API, before any pipeline starts. May be nil.
	Listening func(net.Addr)

	// Hook is called at named points of durable changes, so that tests can crash there. Nil in production.
	Hook func(point string)
}

// Host is one host. It is run once.
type Host struct {
	cfg       *config.Config
	opts      Options
	hostname  string
	spool     *syncer.Spool
	targets   map[string]*target
	pipelines []*pipeline
}

// New builds a host and takes its folders: they are locked to this process until Run has returned or Close is called. It starts nothing.
func New(cfg *config.Config, opts Options) (*Host, error) {
	if opts.Circuit == nil {
		opts.Circuit = builtIn(opts.Now)
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("host name: %w", err)
	}
	h := &Host{cfg: cfg, opts: opts, hostname: hostname}
	if err := h.build(); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func (h *Host) build() (err error) {
	if err := os.MkdirAll(h.cfg.Host.DataDir, 0o700); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if h.spool, err = syncer.OpenSpool(h.cfg.Host.SpoolDir); err != nil {
		return err
	}
	if h.targets, err = newTargets(h.cfg, h.spool, h.opts); err != nil {
		return err
	}
	for _, c := range h.cfg.Pipelines {
		p, err := newPipeline(h, c)
		if err != nil {
			return fmt.Errorf("pipeline %q: %w", c.Name, err)
		}
		h.pipelines = append(h.pipelines, p)
	}
	return nil
}

// Close gives the folders back. After Run it does nothing.
func (h *Host) Close() error {
	var errs []error
	for _, p := range h.pipelines {
		errs = append(errs, p.close())
	}
	h.pipelines = nil
	if h.spool != nil {
		errs = append(errs, h.spool.Close())
		h.spool = nil
	}
	return errors.Join(errs...)
}

// Handler is the HTTP API, for a platform that serves it itself.
func (h *Host) Handler() http.Handler { return api.Handler(h) }

// Run starts everything and serves until ctx ends. Then it stops the pipelines (each with a last checkpoint, and a push where
// push_on_shutdown says so, within shutdown_timeout), the API and the plugins, and returns nil.
func (h *Host) Run(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", h.cfg.Host.Listen)
	if err != nil {
		return errors.Join(fmt.Errorf("listen for the API: %w", err), h.Close())
	}
	h.opts.Log.Info("API listening", "address", listener.Addr().String())
	if h.opts.Listening != nil {
		h.opts.Listening(listener.Addr())
	}
	// What is started below ends by its own stop, in order, not by ctx.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	plugins := h.startTargets(work)
	served := h.serve(listener)
	for _, p := range h.pipelines {
		p.startAsDesired(work)
	}
	var failure error
	select {
	case <-ctx.Done():
		h.opts.Log.Info("host stopping", "timeout", h.cfg.Host.ShutdownTimeout)
	case failure = <-served.done:
	}
	h.stopPipelines()
	served.stop(work)
	cancel()
	plugins.Wait()
	return errors.Join(failure, h.Close())
}

// startTargets runs the supervisors; the group is done when all have ended.
func (h *Host) startTargets(ctx context.Context) *sync.WaitGroup {
	group := &sync.WaitGroup{}
	for _, t := range h.targets {
		group.Go(func() {
			if err := t.plugin.Run(ctx); err != nil {
				h.opts.Log.Error("plugin supervisor ended", "target", t.name, "error", err)
			}
		})
	}
	return group
}

// stopPipelines stops all at once and waits for the last of them; each bounds itself by shutdown_timeout.
func (h *Host) stopPipelines() {
	var group sync.WaitGroup
	for _, p := range h.pipelines {
		group.Go(p.shutdown)
	}
	group.Wait()
}

// server is the API while it is served.
type server struct {
	http *http.Server
	done chan error // what ended it, when nobody stopped it
}

func (h *Host) serve(listener net.Listener) *server {
	s := &server{done: make(chan error, 1), http: &http.Server{Handler: h.Handler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: h.opts.Log.Named("http").StandardLogger(nil)}}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.done <- fmt.Errorf("serve the API: %w", err)
		}
		close(s.done)
	}()
	return s
}

// apiGrace is how long calls that are being answered may take at the end: the pipelines have stopped, so none of them has to wait.
const apiGrace = 2 * time.Second

func (s *server) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, apiGrace)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // what is left are idle or broken connections
	}
	for range s.done { // until the serving goroutine has ended
	}
}

// Pipelines are all pipelines, for the API.
func (h *Host) Pipelines() []api.Pipeline {
	all := make([]api.Pipeline, len(h.pipelines))
	for i, p := range h.pipelines {
		all[i] = p
	}
	return all
}

// Ready is nil when every pipeline is in the state that is desired of it.
func (h *Host) Ready() error {
	var errs []error
	for _, p := range h.pipelines {
		errs = append(errs, p.ready())
	}
	return errors.Join(errs...)
}
