package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/cairnsync/cairn/sdk"
)

func configureCases() []Case {
	return []Case{
		{"a call before Configure is refused and harms nothing", Process, callsBeforeConfigure},
		{"Configure makes the target once; a second one is refused and harms nothing", Process, configureTwice},
		{"Open does no network I/O: it works while the store is away, and then the calls say Unavailable", Process, openOffline},
		{"a plugin that cannot read the nonce does not say that it sees the spool", Process, spoolUnproven},
		{"a secret of the configuration is in nothing that the plugin writes or answers", Process, secretsKept},
	}
}

func callsBeforeConfigure(ctx context.Context, e *Env) error {
	return e.withInstance(ctx, 0, func(i Instance) error {
		own := e.through(i)
		_, putErr := own.store(ctx, sdk.PutRequest{Key: e.key("early")}, []byte("x"))
		_, _, getErr := get(ctx, i, whole(e.key("early")))
		_, listErr := own.list(ctx, sdk.ListRequest{Prefix: e.key("")})
		for op, err := range map[string]error{"put": putErr, "get": getErr, "list": listErr, "delete": own.remove(ctx, "early")} {
			if err == nil || errors.Is(err, sdk.PluginGone) || errors.Is(err, sdk.PluginHung) || errors.Is(err, sdk.NotFound) {
				return fmt.Errorf("%s before Configure answers %v; want an error such as Unsupported", op, err)
			}
		}
		if err := i.Configure(ctx, e.Process.Config()); err != nil {
			return fmt.Errorf("configure after calls that came too early: %w", err)
		}
		return e.works(ctx, i, "after-early-calls")
	})
}

func configureTwice(ctx context.Context, e *Env) error {
	return e.withConfigured(ctx, func(i Instance) error {
		if err := e.works(ctx, i, "once"); err != nil {
			return err
		}
		if i.Configure(ctx, e.Process.Config()) == nil {
			return errors.New("a second Configure succeeds")
		}
		return e.works(ctx, i, "still")
	})
}

func openOffline(ctx context.Context, e *Env) error {
	err := e.withConfigured(ctx, func(i Instance) error { return noConnections(i, "Configure") })
	if err != nil {
		return err
	}
	config, err := e.elsewhere()
	if err != nil {
		return err
	}
	return e.withInstance(ctx, 0, func(i Instance) error {
		if err := i.Configure(ctx, config); err != nil {
			return fmt.Errorf("configure with a store that is away: %w", err)
		}
		soon, cancel := context.WithTimeout(ctx, 3*answersSoon)
		defer cancel()
		_, _, err := get(soon, i, whole(e.key("nowhere")))
		return wantCode(err, sdk.Unavailable, "get from a store that is away")
	})
}

// noConnections looks at the process from outside. Where that cannot be done it is left at that: what follows is seen everywhere.
func noConnections(i Instance, after string) error {
	open, err := i.Connections()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the plugin's connections: %w", err)
	}
	if len(open) > 0 {
		return fmt.Errorf("after %s the plugin holds network connections: %s", after, strings.Join(open, ", "))
	}
	return nil
}

// noAway is why the case of a store that is away is not run for one that the exam cannot take away.
const noAway = "the exam cannot take this store away, for no setting is a URL (http://… or https://…) that it could change; " +
	"name settings with which the store is away (cairn plugin check --away NAME=VALUE), or test it yourself"

// elsewhere is Env.Away or, without it, the configuration with each address of a store replaced by one where nobody listens.
func (e *Env) elsewhere() (config []byte, err error) {
	if e.Away != nil {
		return e.Away, nil
	}
	settings, err := e.settings()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a port where nobody listens: %w", err)
	}
	if err := listener.Close(); err != nil {
		return nil, err
	}
	moved := false
	address := regexp.MustCompile(`(https?://)[^/;,\s"]+`)
	for name, value := range settings {
		if text, ok := value.(string); ok && address.MatchString(text) {
			settings[name] = address.ReplaceAllString(text, "${1}"+listener.Addr().String())
			moved = true
		}
	}
	if !moved {
		return nil, skipped(noAway)
	}
	return json.Marshal(settings)
}

func spoolUnproven(ctx context.Context, e *Env) error {
	return e.withInstance(ctx, 0, func(i Instance) error {
		proven, err := i.ConfigureUnseen(ctx, e.Process.Config())
		switch {
		case err != nil:
			return fmt.Errorf("configure with a spool that the plugin cannot see: %w; want success without the proof", err)
		case proven:
			return errors.New("the plugin says that it has read a nonce that is not there")
		}
		return e.works(ctx, i, "without-spool")
	})
}

// secretsKept has the plugin do, and refuse, a little of everything, and reads all that it has said meanwhile.
func secretsKept(ctx context.Context, e *Env) error {
	settings, err := e.settings()
	if err != nil {
		return err
	}
	return e.withConfigured(ctx, func(i Instance) error {
		about, err := i.Describe(ctx)
		if err != nil {
			return err
		}
		if err := e.works(ctx, i, "quiet"); err != nil {
			return err
		}
		refusal, err := changed(settings, "attribute_of_the_exam", "x")
		if err != nil {
			return err
		}
		_, _, absent := get(ctx, i, whole(e.key("absent")))
		answers := errors.Join(absent, i.Validate(ctx, refusal), i.Configure(ctx, e.Process.Config()))
		// Its last words count as well.
		if err := i.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		e.ends(i, endsWhenTold)
		for _, secret := range valuesOf(settings, about.Schema) {
			if mentions(answers, secret) {
				return errors.New("an error of the plugin holds a secret of its configuration")
			}
			for _, line := range i.Said() {
				if strings.Contains(line, secret) {
					return errors.New("a line that the plugin has written holds a secret of its configuration")
				}
			}
		}
		return nil
	})
}

// mentions looks for text in everything that an error carries.
func mentions(err error, text string) bool {
	for _, one := range leaves(err) {
		var e *sdk.Error
		if errors.As(one, &e) && strings.Contains(strings.Join([]string{e.Op, e.Key, e.Attribute, e.Provider, e.Hint}, " "), text) {
			return true
		}
	}
	return err != nil && strings.Contains(err.Error(), text)
}

// presentable fails unless an error is fit for a log line and a screen.
func presentable(err error, what string) error {
	const limit = 64 << 10
	switch text := err.Error(); {
	case !utf8.ValidString(text):
		return fmt.Errorf("the error of %s is not valid UTF-8: %.200q", what, text)
	case len(text) > limit:
		return fmt.Errorf("the error of %s is %d bytes long; at most %d are of use", what, len(text), limit)
	}
	return nil
}
