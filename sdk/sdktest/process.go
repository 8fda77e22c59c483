package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"syscall"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// Starter starts the plugin under examination as processes of its own, beside the one behind Env.Target. The host side implements it:
// this package starts none.
type Starter interface {
	// Start starts one more, which is described but not configured. patience is how long a call of it may go on without an event before the
	// host takes the process for hung; 0 = as long as the host likes.
	Start(ctx context.Context, patience time.Duration) (Instance, error)
	// Config is the JSON object that Env.Target was configured with.
	Config() []byte
}

// Instance is one process of the plugin, and its target once it is configured. All methods may be called concurrently.
type Instance interface {
	sdk.Target
	// Fetch has the plugin write an object, or a range of it, into a file of the spool at off.
	Fetch(ctx context.Context, req sdk.GetRequest, f *os.File, off int64) (int64, error)

	Describe(ctx context.Context) (sdk.Description, error)
	Validate(ctx context.Context, config []byte) error
	// Configure makes the target, with the spool of the exam.
	Configure(ctx context.Context, config []byte) error
	// ConfigureUnseen is Configure with a spool whose nonce is not where the plugin is told that it is, as when the path names another
	// directory for the plugin than for the host. proven tells whether the plugin says that it has read the nonce.
	ConfigureUnseen(ctx context.Context, config []byte) (proven bool, err error)
	Drain(ctx context.Context, wait time.Duration) (running int, err error)

	// Signal reaches the process and its children.
	Signal(sig syscall.Signal) error
	// HangUp closes standard input, which is how a plugin learns that its host is gone.
	HangUp() error
	// Exited is closed when the process has ended, Exit says how: its status, or -1 for one that a signal has ended, and the same in words.
	Exited() <-chan struct{}
	Exit() (status int, how string)

	// Stdout is what it has written on standard output since the handshake, Said all that it has written anywhere, each in lines.
	Stdout() []string
	Said() []string
	// Connections are the network connections that the process holds, but for those to the host; errors.ErrUnsupported where that
	// cannot be seen.
	Connections() ([]string, error)
	// PeakMemory is the most memory that the process has held, in bytes; 0 where that cannot be seen.
	PeakMemory() int64

	// Close ends the process, whatever state it is in. The exam closes every instance that it has started.
	Close(ctx context.Context)
}

// How long a plugin may take. Each figure is the contract's and as much again, or more, for a machine that is busy with other things.
const (
	endsWithHost = 5 * time.Second  // after its host is gone: 2 s
	endsWhenTold = 12 * time.Second // after SIGTERM: 5 s for its calls, and a moment
	answersSoon  = 10 * time.Second // a call around a start
)

// bound is how long this exam waits for what must have happened within d.
func (e *Env) bound(d time.Duration) time.Duration { return min(d, e.soon) }

// withInstance runs work on a new process, which is gone afterwards.
func (e *Env) withInstance(ctx context.Context, patience time.Duration, work func(i Instance) error) error {
	i, err := e.Process.Start(ctx, patience)
	if err != nil {
		return fmt.Errorf("start a process: %w", err)
	}
	defer i.Close(context.WithoutCancel(ctx))
	return work(i)
}

// withConfigured runs work on a new process that has the target's configuration.
func (e *Env) withConfigured(ctx context.Context, work func(i Instance) error) error {
	return e.withInstance(ctx, 0, func(i Instance) error {
		if err := i.Configure(ctx, e.Process.Config()); err != nil {
			return fmt.Errorf("configure: %w", err)
		}
		return work(i)
	})
}

// through is this case on another target.
func (e *Env) through(target sdk.Target) *Env {
	other := *e
	other.Target = target
	return &other
}

// awaitExit fails unless the process ends in time and of its own accord.
func (e *Env) awaitExit(i Instance, within time.Duration, when string) error {
	if !e.ends(i, within) {
		return fmt.Errorf("the process is still there %s after %s", within, when)
	}
	if status, how := i.Exit(); status != 0 {
		return fmt.Errorf("after %s the process %s; want status 0", when, how)
	}
	return nil
}

func (e *Env) ends(i Instance, within time.Duration) bool {
	timer := time.NewTimer(e.bound(within))
	defer timer.Stop()
	select {
	case <-i.Exited():
		return true
	case <-timer.C:
		return false
	}
}

// works fails unless the instance stores, reads, lists and deletes.
func (e *Env) works(ctx context.Context, i Instance, name string) error {
	own := e.through(i)
	if err := own.put(ctx, name, []byte(name)); err != nil {
		return err
	}
	if err := own.holds(ctx, i, name, []byte(name)); err != nil {
		return err
	}
	if err := own.listed(ctx, name, "", name); err != nil {
		return err
	}
	return own.remove(ctx, name)
}

// settings is the configuration as a map, of which a case changes something.
func (e *Env) settings() (map[string]any, error) {
	settings := map[string]any{}
	if err := json.Unmarshal(e.Process.Config(), &settings); err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return settings, nil
}

// changed is the configuration with one setting in place of another; nil leaves it out.
func changed(settings map[string]any, name string, value any) ([]byte, error) {
	other := maps.Clone(settings)
	other[name] = value
	if value == nil {
		delete(other, name)
	}
	return json.Marshal(other)
}

// wantAttribute fails unless err is a fault of the configuration that names the attribute.
func wantAttribute(err error, attribute, what string) error {
	if err := wantCode(err, sdk.InvalidConfig, what); err != nil {
		return err
	}
	for _, one := range leaves(err) {
		var fault *sdk.Error
		if errors.As(one, &fault) && fault.Attribute == attribute {
			return nil
		}
	}
	return fmt.Errorf("%s is refused, but no fault has the Attribute %q: %w", what, attribute, err)
}

// leaves are the errors that were joined.
func leaves(err error) []error {
	switch e := err.(type) {
	case *sdk.Error:
		return []error{e}
	case interface{ Unwrap() []error }:
		var all []error
		for _, one := range e.Unwrap() {
			all = append(all, leaves(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return leaves(inner)
		}
	}
	return []error{err}
}
