package pluginhost

import (
	"context"
	"sync"

	"github.com/cairnsync/cairn/sdk"
)

// Describe starts the plugin, asks what it is, and takes it down. Neither Spec.Config nor Spec.Spool is used.
func Describe(ctx context.Context, spec Spec, opts Options) (about sdk.Description, err error) {
	err = once(ctx, spec, opts, func(s *session) (err error) {
		about, err = s.describe(ctx)
		return err
	})
	return about, err
}

// Validate starts the plugin, has it check Spec.Config without any network, and takes it down. What the plugin finds are *sdk.Error values with
// sdk.InvalidConfig and the attribute; errors.As and a walk over joined errors find each.
func Validate(ctx context.Context, spec Spec, opts Options) error {
	return once(ctx, spec, opts, func(s *session) error { return s.validate(ctx) })
}

// once is a process for one question. It is killed at its answer: it holds nothing that could be lost, and whoever asked would wait for one that ignores SIGTERM.
func once(ctx context.Context, spec Spec, opts Options, ask func(*session) error) error {
	opts, err := opts.prepare(spec)
	if err != nil {
		return err
	}
	sweepRuntimeDirs(opts.RuntimeDir, ctx.Done(), opts.Log)
	s, err := launch(ctx, spec, opts)
	if err != nil {
		return err
	}
	defer s.end(ctx, false)
	return ask(s)
}

// Store is a configured target in a running process that nobody restarts: what the exam needs, which wants to see a plugin die. When the
// process ends its calls fail as sdk.PluginGone.
type Store struct {
	calls
	session *session
	once    sync.Once
}

// Open starts and configures the plugin of spec. The caller closes the Store; ctx bounds the start only.
func Open(ctx context.Context, spec Spec, opts Options) (*Store, sdk.Description, error) {
	opts, err := opts.prepare(spec)
	if err != nil {
		return nil, sdk.Description{}, err
	}
	sweepRuntimeDirs(opts.RuntimeDir, ctx.Done(), opts.Log)
	s, about, err := startSession(ctx, spec, opts)
	if err != nil {
		return nil, about, err
	}
	store := &Store{session: s}
	store.ready = func(context.Context, string, string) (*session, error) { return s, nil }
	return store, about, nil
}

// PID is the number of the process, for a test that wants to kill it.
func (s *Store) PID() int { return s.session.proc.number() }

// SHA256 is of the very bytes that run.
func (s *Store) SHA256() [32]byte { return s.session.image.sha256 }

// Exited is closed when the process has ended.
func (s *Store) Exited() <-chan struct{} { return s.session.proc.exited }

// Close lets calls in flight finish, takes the process down and removes what belongs to it, all within bounds. ctx gives only values: a
// dead one does not hurry it.
func (s *Store) Close(ctx context.Context) {
	s.once.Do(func() { s.session.end(ctx, true) })
}
