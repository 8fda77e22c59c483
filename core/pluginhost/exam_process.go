package pluginhost

import (
	"context"
	"sync"
	"syscall"
	"time"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/rpc"
)

// Subject is a process under examination: it runs and answers, nobody has configured it, and nobody restarts it. Each step of a plugin's
// life is a method, in any order, for that is what the exam is about. Its calls as a store are those of [Store].
type Subject struct {
	calls
	session *session
	once    sync.Once
}

var _ store = (*Subject)(nil)

// Protocol is the major version of the protocol that this host speaks.
const Protocol = rpc.ProtocolVersion

// Launch starts the plugin of spec and connects to it. The caller closes the Subject; ctx bounds the start only.
func Launch(ctx context.Context, spec Spec, opts Options) (*Subject, error) {
	opts, err := opts.prepare(spec)
	if err != nil {
		return nil, err
	}
	sweepRuntimeDirs(opts.RuntimeDir, ctx.Done(), opts.Log)
	s, err := launch(ctx, spec, opts)
	if err != nil {
		return nil, err
	}
	subject := &Subject{session: s}
	subject.ready = func(context.Context, string, string) (*session, error) { return s, nil }
	return subject, nil
}

// Heard waits, once the process has ended, until what it wrote has been read: its last words come after its end. While it runs there is nothing to
// wait for. It takes no longer than a teardown does.
func (s *Subject) Heard() {
	select {
	case <-s.session.proc.exited:
		within(lastWords+s.session.opts.Timeouts.Kill, s.session.proc.drained)
	default:
	}
}

// Describe asks the plugin what it is.
func (s *Subject) Describe(ctx context.Context) (sdk.Description, error) {
	return s.session.client.Describe(ctx)
}

// Validate has the plugin check a configuration.
func (s *Subject) Validate(ctx context.Context, config []byte) error {
	return s.session.client.Validate(ctx, config)
}

// Configure makes the target, with the spool of the Spec.
func (s *Subject) Configure(ctx context.Context, config []byte) error {
	return s.session.client.Configure(ctx, s.configuration(config))
}

// ConfigureUnseen is rpc.Client.ConfigureUnseen.
func (s *Subject) ConfigureUnseen(ctx context.Context, config []byte) (proven bool, err error) {
	return s.session.client.ConfigureUnseen(ctx, s.configuration(config))
}

func (s *Subject) configuration(config []byte) rpc.Configuration {
	return rpc.Configuration{Target: s.session.spec.Target, Config: config, Spool: s.session.spec.Spool}
}

// Drain is rpc.Client.Drain.
func (s *Subject) Drain(ctx context.Context, wait time.Duration) (running int, err error) {
	return s.session.client.Drain(ctx, wait)
}

// Signal reaches the process group. Once the process is reaped it does nothing.
func (s *Subject) Signal(sig syscall.Signal) error { return s.session.proc.signal(sig) }

// HangUp closes the process's standard input, as a host does that goes away.
func (s *Subject) HangUp() error { return s.session.proc.hangUp() }

// PID is the number of the process.
func (s *Subject) PID() int { return s.session.proc.number() }

// Exited is closed when the process has ended.
func (s *Subject) Exited() <-chan struct{} { return s.session.proc.exited }

// Exit is the status of a process that has ended, or -1 when a signal has ended it or it lives, and how it ended in words.
func (s *Subject) Exit() (status int, how string) {
	return s.session.proc.status(), s.session.proc.exit()
}

// Close takes the process down, also one that was stopped, and removes what belongs to it. It is not asked to drain: the exam has done with it
// what it wanted. ctx gives only values.
func (s *Subject) Close(ctx context.Context) {
	s.once.Do(func() { s.session.end(ctx, false) })
}

// hangUp closes our end of standard input; reap closes it again, which does no harm.
func (p *process) hangUp() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stdin == nil || p.reaped {
		return nil
	}
	return p.stdin.Close()
}

func (p *process) status() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped || p.state == nil {
		return -1
	}
	return p.state.ExitCode()
}
