package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/cairnsync/cairn/sdk/rpc"
)

// session is one plugin process with a connected client, and everything that must be gone when it ends.
type session struct {
	spec Spec
	opts Options

	mask   *mask
	dir    *runtimeDir
	image  image
	out    *output
	proc   *process
	peer   *plugin.Client // go-plugin's side of the process
	client *rpc.Client

	synced  []*io.PipeWriter
	working sync.WaitGroup // the connecting goroutine and the readers of the synced streams
	doomed  chan string    // why it must be reaped; the first reason counts
	useless atomic.Bool    // doomed: it is not worth being asked to drain
}

// launch starts the plugin of spec and connects to it. It is a transaction: after an error nothing of the attempt is left, no process, no
// goroutine, no directory. ctx bounds the launch only.
func launch(ctx context.Context, spec Spec, opts Options) (*session, error) {
	s := &session{spec: spec, opts: opts, doomed: make(chan string, 1), mask: newMask(secretsOf(spec))}
	s.out = newOutput(opts.Log, s.mask, opts.Now)
	if spec.Dev {
		opts.Log.Warn("dev = true: this plugin runs unchecked, whoever may write its file", "plugin", spec.Plugin, "path", spec.Path)
	}
	if err := s.begin(ctx); err != nil {
		s.end(ctx, false)
		return nil, err
	}
	return s, nil
}

func (s *session) begin(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeouts.Start)
	defer cancel()
	if s.dir, err = newRuntimeDir(s.opts.RuntimeDir); err != nil {
		return &StartError{Path: s.spec.Path, What: "has no place to run", Err: err}
	}
	if s.image, err = copyImage(ctx, s.spec, s.dir.path); err != nil {
		return err
	}
	own, err := newIdentity()
	if err != nil {
		return err
	}
	s.proc = newProcess(s.spec.Path, s.image, s.out)
	s.proc.memory = s.spec.MemoryLimit
	if err := s.connect(ctx, own); err != nil {
		return s.explain(ctx, err)
	}
	return nil
}

func (s *session) connect(ctx context.Context, own identity) error {
	s.peer = plugin.NewClient(s.clientConfig(own))
	connected := make(chan error, 1)
	s.working.Go(func() { connected <- s.dispense() })
	select {
	case err := <-connected:
		return err
	case <-ctx.Done():
		// go-plugin has no context: with its process gone every wait of its own comes to an end.
		return errors.Join(ctx.Err(), s.proc.signal(syscall.SIGKILL))
	}
}

func (s *session) clientConfig(own identity) *plugin.ClientConfig {
	stdout, stderr := s.out.synced("stdout", &s.working), s.out.synced("stderr", &s.working)
	s.synced = []*io.PipeWriter{stdout, stderr}
	return &plugin.ClientConfig{
		HandshakeConfig:  rpc.Handshake(),
		Plugins:          rpc.Plugins(rpc.Clocks{Hung: s.opts.Timeouts.Hung, Stall: s.opts.Timeouts.Stall}),
		GRPCDialOptions:  rpc.DialOptions(),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		TLSConfig:        own.tls, // instead of AutoMTLS: see identity
		SkipHostEnv:      true,
		StartTimeout:     2 * s.opts.Timeouts.Start, // ours comes first
		SyncStdout:       stdout,
		SyncStderr:       stderr,
		Logger:           demoted(s.opts.Log, s.mask),
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: s.dir.path},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			s.proc.env = environment(append(cmd.Env, clientCertVar+"="+string(own.cert)), s.dir.path, s.spec)
			return s.proc, nil
		},
	}
}

func (s *session) dispense() error {
	protocol, err := s.peer.Client()
	if err != nil {
		return err
	}
	raw, err := protocol.Dispense(rpc.Name)
	if err != nil {
		return err
	}
	client, ok := raw.(*rpc.Client)
	if !ok {
		return fmt.Errorf("go-plugin dispensed a %T", raw)
	}
	s.client = client
	return nil
}

// explain finds out what an unsuccessful connection means.
func (s *session) explain(ctx context.Context, err error) error {
	e := &StartError{Path: s.spec.Path, Err: s.mask.error(err)}
	switch {
	case s.proc.refused() != nil:
		return explainExec(s.spec.Path, s.image, mountedNoexec(s.image.path), s.proc.refused())
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Cause, e.What, e.Err = CauseTimeout, fmt.Sprintf("did not connect within %s of its start", s.opts.Timeouts.Start), nil
		e.Remedy = "run the file by hand to see what it waits for; a Cairn plugin answers at once that it is one"
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("start plugin %s: %w", s.spec.Path, err)
	case !s.out.shookHands() && within(s.opts.Timeouts.Kill, s.proc.exited):
		e.Cause, e.What, e.Err = CauseExited, s.proc.exit()+" before the handshake", nil
		e.Remedy = "run the file by hand; a Cairn plugin says that it is one"
		if library := missingLibrary(s.lastWords()); library != "" {
			e.Cause, e.What = CauseLibrary, "is a dynamic binary and lacks the shared library "+library
			e.Remedy = "install it on this machine, or build the plugin statically (CGO_ENABLED=0 for Go)"
		}
	default:
		e.Cause, e.What = CauseHandshake, "is not a plugin for this Cairn"
		e.Remedy = "use a plugin built with the SDK of this Cairn's protocol version"
	}
	e.Stderr = s.lastWords()
	return e
}

// lastWords waits for the end of the output of a process that has exited.
func (s *session) lastWords() []string {
	if s.proc.hasExited() {
		within(lastWords+s.opts.Timeouts.Kill, s.proc.drained)
	}
	return s.out.tail.last(reportLines)
}

// doom asks the owner of the session to reap the process. It never blocks.
func (s *session) doom(why string) {
	s.useless.Store(true)
	select {
	case s.doomed <- why:
	default: // it is doomed already
	}
}

// report logs what went wrong while cleaning up: nobody waits for it, and nothing can be undone.
func (s *session) report(err error) {
	if err != nil {
		s.opts.Log.Error("plugin clean-up", "plugin", s.spec.Plugin, "error", err)
	}
}

// within waits for done, at most d, and says whether it came.
func within(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// bounded runs f and waits for it, at most d. When f is late its goroutine stays behind and the caller says so.
func bounded(d time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return within(d, done)
}

// demoted gives go-plugin a logger whose every line arrives at trace level: to it, normal life looks like failure.
func demoted(log hclog.Logger, mask *mask) hclog.Logger {
	if !log.IsTrace() {
		return hclog.NewNullLogger()
	}
	quiet := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Trace})
	quiet.RegisterSink(traceSink{log, mask})
	return quiet
}

type traceSink struct {
	log  hclog.Logger
	mask *mask
}

// Accept implements hclog.SinkAdapter.
func (s traceSink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	told := []any{"go_plugin_level", level.String()}
	for _, arg := range args {
		told = append(told, printable(s.mask.text(fmt.Sprint(arg))))
	}
	s.log.Trace(printable(s.mask.text(msg)), told...)
}
