package sdktest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// processFault is one defect of a plugin as a process.
type processFault struct {
	name    string
	plant   func(p *fakeProcess)
	catches []string
	endless bool // what should happen never does: the exam is not to wait for it as long as it would
}

func processFaults() []processFault {
	var all []processFault
	for _, some := range [][]processFault{describeFaults(), configureFaults(), lifeFaults(), killFaults(), wireFaults()} {
		all = append(all, some...)
	}
	return all
}

func TestEveryPlantedFaultOfAProcessFailsTheCasesThatNameIt(t *testing.T) {
	for _, f := range processFaults() {
		t.Run(f.name, func(t *testing.T) {
			for _, name := range f.catches {
				soon := time.Minute
				if f.endless {
					soon = time.Second
				}
				if err := runOne(t, name, newFake(t, soon, f.plant)); err == nil {
					t.Errorf("the case %q passes", name)
				}
			}
		})
	}
}

// A store that its first process locks fails every case that starts another. One of them says so, and the others do not blame something else.
func TestAStoreThatOneProcessLocksFailsOneCase(t *testing.T) {
	env := newFake(t, time.Second, func(p *fakeProcess) {
		p.configure = func(context.Context, []byte) error { return sdk.Unavailable }
	})
	env.Levels = []sdktest.Level{sdktest.Process}
	var failed []string
	for i, r := range sdktest.RunCases(t.Context(), env) {
		if r.Err != nil {
			failed = append(failed, r.Case.Name)
		}
		if i > 0 && !strings.Contains(r.Skipped, "a second process does not work beside the first") {
			t.Errorf("%s: %v, skipped %q; want it skipped", r.Case.Name, r.Err, r.Skipped)
		}
	}
	if len(failed) != 1 || failed[0] != "a second process with the same configuration works beside the first" {
		t.Errorf("failed: %q; want the case of the second process alone", failed)
	}
	if env.Skip != nil {
		t.Error("the caller's Env has changed")
	}
}

// fakeNoURL is a fake whose configuration has no URL, so that the exam cannot take its store away.
type fakeNoURL struct{ sdktest.Starter }

func (fakeNoURL) Config() []byte {
	return fmt.Appendf(nil, `{"endpoint":"shelf 7","key":%q}`, fakeSecret)
}

func TestTheCaseOfAStoreThatIsAwayIsSkippedWhereTheExamCannotTakeItAway(t *testing.T) {
	const away = "Open does no network I/O: it works while the store is away, and then the calls say Unavailable"
	config := func(endpoint string) []byte {
		return fmt.Appendf(nil, `{"endpoint":%q,"key":%q}`, endpoint, fakeSecret)
	}
	for _, c := range []struct {
		name         string
		away         []byte
		skip, failed bool
	}{
		{"there is no URL to change", nil, true, false},
		{"the caller knows how", config("shelf 8"), false, false},
		{"what the caller says leaves the store where it is", config(fakeEndpoint), false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := newFake(t, time.Minute, nil)
			env.Process, env.Away = fakeNoURL{env.Process}, c.away
			cases := sdktest.Cases()
			result := sdktest.RunCase(t.Context(), cases[slices.IndexFunc(cases, func(c sdktest.Case) bool { return c.Name == away })], env)
			if (result.Err != nil) != c.failed || strings.Contains(result.Skipped, "--away") != c.skip {
				t.Errorf("%v, skipped %q; want failed: %v, skipped: %v", result.Err, result.Skipped, c.failed, c.skip)
			}
		})
	}
}

func describeFaults() []processFault {
	return []processFault{
		{
			name: "each process tells another version",
			plant: func(p *fakeProcess) {
				p.describe = func(d sdk.Description) sdk.Description {
					d.Version = "1.0." + strings.Repeat("1", p.number)
					return d
				}
			},
			catches: []string{"Describe works before Configure and after it, and answers the same each time"},
		},
		{
			name: "the version is a word",
			plant: func(p *fakeProcess) {
				p.describe = func(d sdk.Description) sdk.Description {
					d.Version = "latest"
					return d
				}
			},
			catches: []string{"a description has a name, a semantic version and a schema that the host can use"},
		},
		{
			name: "the schema has a type of its own",
			plant: func(p *fakeProcess) {
				p.describe = func(d sdk.Description) sdk.Description {
					d.Schema.Attributes = append(d.Schema.Attributes, sdk.Attribute{Name: "extra", Type: "object", Doc: "more"})
					return d
				}
			},
			catches: []string{"a description has a name, a semantic version and a schema that the host can use"},
		},
		{
			name: "Validate wants the store",
			plant: func(p *fakeProcess) {
				p.connections = func() ([]string, error) { return []string{"to store.test:9000"}, nil }
			},
			catches: []string{
				"Validate works before Configure, takes the configuration that works, and touches nothing",
				"Open does no network I/O: it works while the store is away, and then the calls say Unavailable",
			},
		},
		{
			name: "Validate refuses everything",
			plant: func(p *fakeProcess) {
				p.validate = func(context.Context, []byte) error { return &sdk.Error{Code: sdk.InvalidConfig} }
			},
			catches: []string{"Validate works before Configure, takes the configuration that works, and touches nothing"},
		},
		{
			name: "nothing of the configuration is checked",
			plant: func(p *fakeProcess) {
				good := p.configure
				p.validate = func(context.Context, []byte) error { return nil }
				p.configure = func(ctx context.Context, _ []byte) error { return good(ctx, p.plugin.Config()) }
			},
			catches: []string{
				"an attribute that the schema does not know is InvalidConfig and named",
				"a value of another type than the schema's is InvalidConfig and named, and is not repeated",
				"a required attribute that is missing is InvalidConfig and named",
				"a value outside an enum is InvalidConfig and named",
			},
		},
		{
			name: "a fault of the configuration names no attribute",
			plant: func(p *fakeProcess) {
				good := p.validate
				p.validate = func(ctx context.Context, config []byte) error {
					if err := good(ctx, config); err != nil {
						return &sdk.Error{Code: sdk.InvalidConfig, Err: errors.New("something is wrong")}
					}
					return nil
				}
			},
			catches: []string{
				"an attribute that the schema does not know is InvalidConfig and named",
				"a required attribute that is missing is InvalidConfig and named",
				"a value outside an enum is InvalidConfig and named",
			},
		},
		{
			name: "a fault of the configuration repeats the value",
			plant: func(p *fakeProcess) {
				good := p.validate
				p.validate = func(ctx context.Context, config []byte) error {
					err := good(ctx, config)
					var fault *sdk.Error
					if errors.As(err, &fault) {
						fault.Hint = string(config)
					}
					return err
				}
			},
			catches: []string{"a value of another type than the schema's is InvalidConfig and named, and is not repeated"},
		},
	}
}

func configureFaults() []processFault {
	return []processFault{
		{
			name: "a process that is not configured has an empty store",
			plant: func(p *fakeProcess) {
				good := p.get
				p.get = func(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
					res, err := good(ctx, req)
					if errors.Is(err, sdk.Unsupported) {
						err = sdk.NotFound
					}
					return res, err
				}
			},
			catches: []string{"a call before Configure is refused and harms nothing"},
		},
		{
			name: "Configure may come again",
			plant: func(p *fakeProcess) {
				good := p.configure
				p.configure = func(ctx context.Context, config []byte) error {
					if err := good(ctx, config); !errors.Is(err, sdk.Unsupported) {
						return err
					}
					return nil
				}
			},
			catches: []string{"Configure makes the target once; a second one is refused and harms nothing"},
		},
		{
			name: "Open wants the store",
			plant: func(p *fakeProcess) {
				good := p.configure
				p.configure = func(ctx context.Context, config []byte) error {
					var cfg struct{ Endpoint string }
					if json.Unmarshal(config, &cfg) == nil && cfg.Endpoint != fakeEndpoint {
						return sdk.Unavailable
					}
					return good(ctx, config)
				}
			},
			catches: []string{"Open does no network I/O: it works while the store is away, and then the calls say Unavailable"},
		},
		{
			name:    "a store that is away is nobody's error",
			plant:   func(p *fakeProcess) { p.away = sdk.Internal },
			catches: []string{"Open does no network I/O: it works while the store is away, and then the calls say Unavailable"},
		},
		{
			name: "every spool is seen",
			plant: func(p *fakeProcess) {
				good := p.unseen
				p.unseen = func(ctx context.Context, config []byte) (bool, error) {
					_, err := good(ctx, config)
					return true, err
				}
			},
			catches: []string{"a plugin that cannot read the nonce does not say that it sees the spool"},
		},
		{
			name: "a spool that is not seen is an error of Configure",
			plant: func(p *fakeProcess) {
				p.unseen = func(context.Context, []byte) (bool, error) { return false, sdk.Internal }
			},
			catches: []string{"a plugin that cannot read the nonce does not say that it sees the spool"},
		},
		{
			name:    "each process has a store of its own",
			plant:   func(p *fakeProcess) { p.mem = sdktest.NewMem() },
			catches: []string{"a second process with the same configuration works beside the first"},
		},
		{
			name:    "the configuration is logged",
			plant:   func(p *fakeProcess) { p.said = []string{"opened with " + string(p.plugin.Config())} },
			catches: []string{"a secret of the configuration is in nothing that the plugin writes or answers"},
		},
		{
			name: "an error shows the request, and with it the secret",
			plant: func(p *fakeProcess) {
				good := p.get
				p.get = func(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
					res, err := good(ctx, req)
					if errors.Is(err, sdk.NotFound) {
						err = &sdk.Error{Code: sdk.NotFound, Provider: "key=" + fakeSecret}
					}
					return res, err
				}
			},
			catches: []string{"a secret of the configuration is in nothing that the plugin writes or answers"},
		},
	}
}

func lifeFaults() []processFault {
	return []processFault{
		{
			name:    "SIGTERM is ignored",
			endless: true,
			plant:   func(p *fakeProcess) { p.signals[syscall.SIGTERM] = func() {} },
			catches: []string{
				"a plugin ends by itself, with status 0, when it is told to (SIGTERM)",
			},
		},
		{
			name:    "SIGTERM is an error",
			plant:   func(p *fakeProcess) { p.signals[syscall.SIGTERM] = func() { p.exit(1, true) } },
			catches: []string{"a plugin ends by itself, with status 0, when it is told to (SIGTERM)", "a plugin that is told to end while it works ends all the same, and keeps what it has stored"},
		},
		{
			name:    "SIGINT ends the process",
			plant:   func(p *fakeProcess) { p.signals[syscall.SIGINT] = func() { p.exit(0, true) } },
			catches: []string{"SIGINT is not for a plugin: it goes on"},
		},
		{
			name:    "a plugin survives its host",
			endless: true,
			plant:   func(p *fakeProcess) { p.hangUp = func() {} },
			catches: []string{"a plugin ends when its host is gone: when its standard input ends"},
		},
		{
			name:    "a plugin greets on standard output",
			plant:   func(p *fakeProcess) { p.stdout = []string{"welcome"} },
			catches: []string{"standard output holds the handshake and nothing else"},
		},
		{
			name:    "Drain does nothing",
			endless: true,
			plant:   func(p *fakeProcess) { p.drain = func(context.Context, time.Duration) (int, error) { return 0, nil } },
			catches: []string{"Drain ends what is running, refuses what comes and counts what is left"},
		},
		{
			name: "calls are never ended",
			plant: func(p *fakeProcess) {
				good := p.drain
				p.drain = func(ctx context.Context, wait time.Duration) (int, error) {
					_, err := good(ctx, wait)
					return 3, err
				}
			},
			catches: []string{"calls that the host cancels have ended in the plugin soon", "Drain ends what is running, refuses what comes and counts what is left"},
		},
		{
			name: "a call that stood still is given up",
			plant: func(p *fakeProcess) {
				good := p.put
				p.put = func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					if strings.HasSuffix(req.Key, "/stopped") {
						_ = p.awaitRun(ctx)
						return sdk.PutResult{}, sdk.Unavailable
					}
					return good(ctx, req)
				}
			},
			catches: []string{"a plugin that was stopped and goes on finishes its calls"},
		},
		{
			name:    "a call is silent until it is done",
			endless: true,
			plant: func(p *fakeProcess) {
				good := p.put
				p.put = func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					if strings.Contains(req.Key, "/slow-") { // it has taken longer than the patience
						return sdk.PutResult{}, sdk.PluginHung
					}
					return good(ctx, req)
				}
			},
			catches: []string{"a call that takes long says so at least once a second"},
		},
	}
}
