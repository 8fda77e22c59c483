package pluginhost

import (
	"context"
	"errors"
	"fmt"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/rpc"
)

// startSession is a whole start: launched, described, configured. After an error nothing of it is left.
func startSession(ctx context.Context, spec Spec, opts Options) (*session, sdk.Description, error) {
	s, err := launch(ctx, spec, opts)
	if err != nil {
		return nil, sdk.Description{}, err
	}
	about, err := s.describe(ctx)
	if err == nil {
		err = s.configure(ctx)
	}
	if err != nil {
		s.end(ctx, false)
		return nil, about, err
	}
	return s, about, nil
}

func (s *session) describe(ctx context.Context) (about sdk.Description, err error) {
	err = s.ask(ctx, "describe", func(ctx context.Context) (err error) {
		about, err = s.client.Describe(ctx)
		return err
	})
	return s.mask.description(about), err
}

func (s *session) validate(ctx context.Context) error {
	return s.ask(ctx, "validate", func(ctx context.Context) error { return s.client.Validate(ctx, s.spec.Config) })
}

// configure hands over the target's configuration and the spool.
func (s *session) configure(ctx context.Context) error {
	err := s.ask(ctx, "configure", func(ctx context.Context) error {
		return s.client.Configure(ctx, rpc.Configuration{Target: s.spec.Target, Config: s.spec.Config, Spool: s.spec.Spool})
	})
	if errors.Is(err, sdk.InvalidConfig) {
		return &StartError{
			Cause: CauseConfig, Path: s.spec.Path, What: "refuses the configuration of target " + s.spec.Target, Err: err,
			Remedy: "correct the target's config block",
		}
	}
	return err
}

// ask makes one of the short calls around a start, within its deadline. What a plugin says of a configuration passes unchanged.
func (s *session) ask(ctx context.Context, what string, call func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, s.opts.Timeouts.Call)
	defer cancel()
	err := s.mask.error(call(limited))
	e := &StartError{Path: s.spec.Path, What: "failed at " + what, Err: err}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s plugin %s: %w", what, s.spec.Path, ctx.Err())
	case limited.Err() != nil, errors.Is(err, sdk.PluginHung):
		patience := min(s.opts.Timeouts.Call, s.opts.Timeouts.Hung)
		e.Cause, e.What, e.Err = CauseTimeout, fmt.Sprintf("did not answer %s within %s", what, patience), nil // err would name the store
		e.Remedy = "look at its log for what it waits for"
	case errors.Is(err, sdk.InvalidConfig):
		return err
	case errors.Is(err, sdk.PluginGone) && within(s.opts.Timeouts.Kill, s.proc.exited):
		e.Cause, e.What, e.Err = CauseExited, s.proc.exit()+" during "+what, nil
		e.Remedy = "report this to the plugin's author"
	case errors.Is(err, sdk.PluginGone):
		e.Cause, e.What, e.Remedy = CauseHandshake, "cannot be talked to", "a plugin must serve gRPC with go-plugin's automatic mutual TLS"
	case isBreach(what, err):
		e.Cause, e.What = CauseBreach, "breaks the contract of plugins at "+what
		e.Remedy = "the fault is the plugin's, whatever its configuration: report this to its author (docs/protocol.md has the contract), or run another version of it"
	}
	e.Stderr = s.lastWords()
	return e
}

// isBreach tells that a plugin answered describe or validate, and not as it must: neither of them may fail as a call. A plugin that is being
// ended says that it is unavailable.
func isBreach(what string, err error) bool {
	return (what == "describe" || what == "validate") && !errors.Is(err, sdk.Unavailable) && !errors.Is(err, sdk.Cancelled)
}
