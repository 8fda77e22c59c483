package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/sdk"
)

// Supervisor keeps the process of one target running and is the target's store at the same time: its methods may be called as soon as it
// is made, from any goroutine. They wait for a ready process, at most as long as their context, and then fail as sdk.PluginGone with the
// last crash report.
type Supervisor struct {
	calls

	spec  Spec
	opts  Options
	log   hclog.Logger
	reset chan struct{} // wakes a Run that waits to start again

	// start is startSession but in tests of the restart policy.
	start func(ctx context.Context, spec Spec, opts Options) (*session, sdk.Description, error)

	mu      sync.Mutex
	running bool      // Run was called
	endBy   time.Time // see EndBy; zero = not bounded as a whole
	status  Status
	current *session      // not nil in StateReady only
	changed chan struct{} // closed and replaced at each change of state
}

// New checks spec and options; it starts nothing and reads no file.
func New(spec Spec, opts Options) (*Supervisor, error) {
	opts, err := opts.prepare(spec)
	if err != nil {
		return nil, err
	}
	s := &Supervisor{
		spec: spec, opts: opts, log: opts.Log,
		reset: make(chan struct{}, 1), changed: make(chan struct{}), start: startSession,
		status: Status{Target: spec.Target, Plugin: spec.Plugin, Path: spec.Path, State: StateStarting, Since: opts.Now()},
	}
	s.ready = s.await
	return s, nil
}

// Run starts the process, restarts it when it ends, and takes it down when ctx ends; then it returns nil. A plugin's failure never ends it.
// It may be called once.
func (s *Supervisor) Run(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.moveTo(StateStopped, nil)
	sweepRuntimeDirs(s.opts.RuntimeDir, ctx.Done(), s.log)
	for past := (failures{}); ; {
		ended := s.live(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var pause time.Duration
		var broken bool
		past, pause, broken = past.next(s.opts.Restart, ended, s.opts.Jitter())
		if broken {
			past = failures{}
		}
		if !s.rest(ctx, ended.exit, pause, broken) {
			return nil
		}
	}
}

// Reset lets a broken target try again, and one that waits for its next start try at once. In other states it does nothing. A call that is
// made after it waits for the process.
func (s *Supervisor) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.State != StateBroken && s.status.NextTry.IsZero() {
		return
	}
	if s.status.State == StateBroken {
		s.enter(StateDegraded)
	}
	select {
	case s.reset <- struct{}{}:
	default: // asked for already
	}
}

// Status answers a snapshot.
func (s *Supervisor) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

func (s *Supervisor) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return fmt.Errorf("plugin of target %q: Run was called before", s.spec.Target)
	}
	s.running = true
	return nil
}

// live is the life of one process, from its start until nothing of it is left.
func (s *Supervisor) live(ctx context.Context) life {
	begun := s.opts.Now()
	session, about, err := s.start(ctx, s.spec, s.opts)
	if err != nil {
		return life{exit: s.failedStart(ctx, err)}
	}
	ready := s.opts.Now()
	log := s.log.With("plugin", about.Name, "version", about.Version, "pid", session.proc.number())
	log.Info("plugin started", "sha256", formatChecksum(session.image.sha256), "took", ready.Sub(begun).Round(time.Millisecond))
	s.publish(session, about) // after the line: who sees it serve may look there for its process

	reason := session.serve(ctx)
	if ctx.Err() != nil {
		s.moveTo(StateStopped, nil) // before the end: new calls shall not wait for what does not come
		session.endIn(ctx, true, s.haste())
		log.Info("plugin stopped", "reason", "stopped by the host", "served", s.opts.Now().Sub(ready).Round(time.Millisecond))
		return life{ready: true}
	}
	s.moveTo(StateDegraded, nil)
	session.end(ctx, false)
	exit := Exit{At: s.opts.Now(), Reason: reason, Stderr: session.out.tail.last(reportLines)}
	served := exit.At.Sub(ready)
	log.Error("plugin ended", "reason", reason, "served", served.Round(time.Millisecond), "stderr", strings.Join(exit.Stderr, "\n"))
	return life{exit: exit, ready: true, served: served}
}

// serve waits until the session is over and says why; "" when only ctx ended.
func (s *session) serve(ctx context.Context) string {
	select {
	case <-ctx.Done():
		return ""
	case <-s.proc.exited:
		return s.proc.exit()
	case why := <-s.doomed:
		return why
	}
}

func (s *Supervisor) failedStart(ctx context.Context, err error) Exit {
	exit := Exit{At: s.opts.Now(), Reason: err.Error(), whole: true}
	var start *StartError
	if errors.As(err, &start) {
		exit.Stderr = start.Stderr
	}
	if ctx.Err() == nil {
		s.log.Error("plugin not started", "plugin", s.spec.Plugin, "reason", exit.Reason, "stderr", strings.Join(exit.Stderr, "\n"))
	}
	return exit
}

// rest waits until the next start is due or asked for; false when ctx ended first.
func (s *Supervisor) rest(ctx context.Context, exit Exit, pause time.Duration, broken bool) bool {
	select {
	case <-s.reset: // left over from a wait that ended by itself
	default:
	}
	var due <-chan time.Time
	if broken {
		s.log.Error("plugin crashed too often and is left alone", "plugin", s.spec.Plugin,
			"crashes", s.opts.Restart.Crashes, "within", s.opts.Restart.Window, "next", remedyBroken)
		s.moveTo(StateBroken, func(st *Status) { st.LastExit = exit })
	} else {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		due = timer.C
		s.moveTo(StateDegraded, func(st *Status) { st.LastExit, st.NextTry = exit, exit.At.Add(pause) })
	}
	select {
	case <-ctx.Done():
		return false
	case <-due:
	case <-s.reset:
	}
	s.moveTo(StateDegraded, func(st *Status) { st.Restarts++ })
	return true
}

func (s *Supervisor) publish(session *session, about sdk.Description) {
	s.moveTo(StateReady, func(st *Status) {
		st.PID, st.SHA256 = session.proc.number(), session.image.sha256
		st.Name, st.Version, st.Description = about.Name, about.Version, about.Doc
		s.current = session
	})
}

// moveTo changes the state and wakes the calls that wait for it. change runs under the lock.
func (s *Supervisor) moveTo(state State, change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(state)
	s.status.PID, s.status.NextTry, s.current = 0, time.Time{}, nil
	if change != nil {
		change(&s.status)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// enter changes the state. The caller holds the lock.
func (s *Supervisor) enter(state State) {
	if s.status.State != state {
		s.status.State, s.status.Since = state, s.opts.Now()
	}
}
