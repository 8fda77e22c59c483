package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/api"
	"github.com/cairnsync/cairn/core/checkpoint"
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

	around func(syncer.Store) syncer.Store // puts the faults of a test around every target's store
	pace   pace                            // zero = the usual one
}

// ErrRun is what a second Run of one Host returns.
var ErrRun = errors.New("the host has been run already: make a new one")

// ErrClosed is what Run returns after Close.
var ErrClosed = errors.New("the host is closed: make a new one")

// ErrUnderWay is what Close returns while Run is under way.
var ErrUnderWay = errors.New("the host is running: end the context of Run instead")

// Host is one host. It is run once.
type Host struct {
	cfg       *config.Config
	opts      Options
	hostname  string
	spool     *syncer.Spool
	targets   map[string]*target
	pipelines []*pipeline

	mu    sync.Mutex // guards phase
	phase phase
}

// phase is how far a Host has come.
type phase uint8

const (
	built phase = iota
	running
	closed
)

// New builds a host and takes its folders: they are locked to this process until Run has returned or Close is called. It starts nothing.
func New(cfg *config.Config, opts Options) (*Host, error) {
	if opts.Log == nil || opts.Now == nil {
		return nil, errors.New("build host: Options.Log and Options.Now are required")
	}
	if opts.Circuit == nil {
		opts.Circuit = builtIn(opts.Now)
	}
	if opts.pace == (pace{}) {
		opts.pace = usual()
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("host name: %w", err)
	}
	h := &Host{cfg: cfg, opts: opts, hostname: hostname}
	if err := h.build(); err != nil {
		return nil, errors.Join(err, h.release())
	}
	return h, nil
}

func (h *Host) build() (err error) {
	for _, name := range h.opts.Exclude {
		if !slices.ContainsFunc(h.cfg.Targets, func(t config.Target) bool { return t.Name == name }) {
			return fmt.Errorf("exclude target %q: %w", name, ErrUnknown)
		}
	}
	if err := checkpoint.MakeDirs(h.cfg.Host.DataDir); err != nil {
		return fmt.Errorf("data_dir: %w", checkpoint.Unwritable(err))
	}
	if err := checkWritable(h.cfg.Host.DataDir, syscall.Access); err != nil {
		return fmt.Errorf("data_dir %w", err)
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

// Close gives the folders back, where Run is not going to. After Run, or a second time, it does nothing; during Run it is ErrUnderWay.
func (h *Host) Close() error {
	h.mu.Lock()
	was := h.phase
	if was == built {
		h.phase = closed
	}
	h.mu.Unlock()
	switch was {
	case running:
		return ErrUnderWay
	case closed:
		return nil
	}
	return h.release()
}

func (h *Host) release() error {
	var errs []error
	for _, p := range h.pipelines {
		errs = append(errs, p.close())
	}
	if h.spool != nil {
		errs = append(errs, h.spool.Close())
	}
	return errors.Join(errs...)
}

// Handler is the HTTP API, for a platform that serves it itself. It answers before, during and after Run; only during Run can pipelines
// be started.
func (h *Host) Handler() http.Handler { return api.Handler(h) }

// Run starts everything and serves until ctx ends. Then it stops the pipelines (each with a last checkpoint, and a push where
// push_on_shutdown says so, within shutdown_timeout), the API and the plugins (within what is left of it, or a second), and returns nil. It returns an error when the API cannot be
// served, after the same orderly stop.
func (h *Host) Run(ctx context.Context) error {
	if err := h.enter(); err != nil {
		return err
	}
	defer h.leave()
	if ctx.Err() != nil {
		return h.release()
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", h.cfg.Host.Listen)
	if err != nil {
		err = fmt.Errorf("listen for the API: %w; end whatever uses the address, or choose another one: --listen HOST:PORT, or host.listen in the configuration", err)
		return errors.Join(err, h.release())
	}
	h.opts.Log.Info("API listening", "address", listener.Addr().String())
	if h.opts.Listening != nil {
		h.opts.Listening(listener.Addr())
	}
	return errors.Join(h.serveUntil(ctx, listener), h.release())
}

// serveUntil is Run once the API has its address.
func (h *Host) serveUntil(ctx context.Context, listener net.Listener) (failure error) {
	// What is started below ends by its own stop, in order, not by ctx.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	plugins := h.startTargets(work)
	served := serve(work, listener, h.Handler(), h.opts.Log.Named("http"))
	for _, p := range h.pipelines {
		p.startAsDesired(work)
	}
	for _, p := range h.pipelines {
		p.lookAtRest(work)
	}
	select {
	case <-ctx.Done():
		h.opts.Log.Info("host stopping", "timeout", h.cfg.Host.ShutdownTimeout)
	case failure = <-served.failed:
		h.opts.Log.Error("host stopping, its API has failed", "error", failure)
	}
	due := h.opts.Now().Add(h.cfg.Host.ShutdownTimeout)
	h.stopPipelines()
	left := max(leastEnd, due.Sub(h.opts.Now()))
	for _, t := range h.targets {
		t.plugin.EndBy(h.opts.Now().Add(left))
	}
	served.stop(work, min(apiGrace, left/2))
	cancel()
	plugins.Wait()
	return failure
}

// leastEnd is what the API and the plugins have together, where the pipelines needed all of shutdown_timeout.
const leastEnd = time.Second

func (h *Host) enter() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch h.phase {
	case running:
		return ErrRun
	case closed:
		return ErrClosed
	}
	h.phase = running
	return nil
}

func (h *Host) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.phase = closed
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
