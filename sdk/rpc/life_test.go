package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/sdk"
)

type lifeConfig struct {
	Bucket string   `cairn:"bucket,required" doc:"where"`
	Part   sdk.Size `cairn:"part" default:"1MiB"`
}

func lifePlugin(opened *atomic.Int64, target sdk.Target) sdk.Plugin[lifeConfig] {
	return sdk.Plugin[lifeConfig]{
		Name: "life", Version: "1.0.0", Doc: "lives",
		Validate: func(cfg lifeConfig) error {
			if cfg.Bucket == "bad" {
				return errors.Join(
					&sdk.Error{Attribute: "bucket", Err: errors.New("is bad"), Hint: "take a good one"},
					&sdk.Error{Code: sdk.InvalidConfig, Attribute: "part", Err: errors.New("does not fit a bad bucket")},
				)
			}
			return nil
		},
		Open: func(_ context.Context, env sdk.Env, cfg lifeConfig) (sdk.Target, error) {
			if env.Target != "offsite" || env.Log == nil || cfg.Part != 1<<20 {
				return nil, fmt.Errorf("opened with %+v, %+v", env, cfg)
			}
			opened.Add(1)
			return target, nil
		},
	}
}

func TestDescribeWorksUnconfiguredAndOpensNothing(t *testing.T) {
	var opened atomic.Int64
	client := start(t, lifePlugin(&opened, newStore()), Clocks{})
	got, err := client.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	schema, err := sdk.SchemaOf[lifeConfig]()
	if err != nil {
		t.Fatal(err)
	}
	want := sdk.Description{Name: "life", Version: "1.0.0", SDK: "go/" + sdk.Version, Doc: "lives", Schema: schema}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("described as %+v; want %+v", got, want)
	}
	if opened.Load() != 0 {
		t.Error("describing has opened the target")
	}
}

func TestFaultsOfAConfigurationNameTheirAttribute(t *testing.T) {
	var opened atomic.Int64
	client := start(t, lifePlugin(&opened, newStore()), Clocks{})
	for config, want := range map[string][]string{
		`{"bucket":"b"}`:                   nil,
		`{"bucket":"bad"}`:                 {"bucket", "part"},
		`{"part":"1M","pat":1,"bucket":1}`: {"pat", "bucket", "part"},
	} {
		validated := client.Validate(t.Context(), []byte(config))
		var got []string
		for _, one := range leaves(orNone(validated)) {
			var e *sdk.Error
			if errors.As(one, &e) && e.Code == sdk.InvalidConfig {
				got = append(got, e.Attribute)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: faults of %q, %v; want %q", config, got, validated, want)
		}
		if len(want) == 0 {
			continue
		}
		if err := client.Configure(t.Context(), Configuration{Target: "offsite", Config: []byte(config)}); err == nil || err.Error() != validated.Error() {
			t.Errorf("%s: Configure says %v, Validate %v", config, err, validated)
		}
	}
	if opened.Load() != 0 {
		t.Error("a faulty configuration has opened the target")
	}
	if err := client.Configure(t.Context(), Configuration{Target: "offsite", Config: []byte(`{"bucket":"b"}`)}); err != nil {
		t.Errorf("a good configuration after faulty ones: %v", err)
	}
	if err := client.Configure(t.Context(), Configuration{Target: "offsite", Config: []byte(`{"bucket":"b"}`)}); !errors.Is(err, sdk.Unsupported) {
		t.Errorf("configured twice: %v", err)
	}
}

func orNone(err error) error {
	if err == nil {
		return errors.Join()
	}
	return err
}

func TestACallBeforeConfigureIsRefused(t *testing.T) {
	client := start(t, pluginOf(newStore()), Clocks{})
	for method, err := range callAll(t.Context(), client, "k") {
		if !errors.Is(err, sdk.Unsupported) || !strings.Contains(err.Error(), "not configured") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// panicking is a target with a bug.
type panicking struct{ failing }

func (panicking) Put(context.Context, sdk.PutRequest) (sdk.PutResult, error) { panic("nil map") }

func (panicking) List(context.Context, sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(func(sdk.Object, error) bool) { panic("nil map") }
}

func TestAPanicIsThatCallsErrorAndItsStackIsLogged(t *testing.T) {
	var logged strings.Builder
	log := hclog.New(&hclog.LoggerOptions{Output: &logged, JSONFormat: true})
	client, stop, err := InProcess(t.Context(), pluginOf(panicking{}), log, Clocks{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Configure(t.Context(), Configuration{}); err != nil {
		t.Fatal(err)
	}
	_, putErr := client.Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.BytesBody(nil)})
	var listErr error
	for _, err := range client.List(t.Context(), sdk.ListRequest{}) {
		listErr = err
	}
	for _, err := range []error{putErr, listErr} {
		if err == nil || sdk.CodeOf(err) != sdk.Internal || !strings.Contains(err.Error(), ": nil map") {
			t.Errorf("after a panic: %v", err)
		}
	}
	if _, err := client.Describe(t.Context()); err != nil {
		t.Errorf("the plugin is gone: %v", err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(logged.String(), "panicking.Put") {
		t.Errorf("no stack in the log: %s", logged.String())
	}
}

// slow holds every Put until its context ends, then for as long as the test says.
type slow struct {
	*store
	entered chan struct{}
	linger  chan struct{}
	closed  atomic.Bool
}

func (s *slow) Put(ctx context.Context, _ sdk.PutRequest) (sdk.PutResult, error) {
	s.entered <- struct{}{}
	<-ctx.Done()
	<-s.linger
	return sdk.PutResult{}, ctx.Err()
}

func (s *slow) Close() error {
	s.closed.Store(true)
	return nil
}

func TestDrainCancelsWhatRunsRefusesWhatComesAndClosesTheTarget(t *testing.T) {
	target := &slow{store: newStore(), entered: make(chan struct{}), linger: make(chan struct{})}
	client, _ := serveTarget(t, target, Clocks{})
	failed := make(chan error, 1)
	go func() {
		_, err := client.Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.BytesBody(nil)})
		failed <- err
	}()
	<-target.entered
	if running, err := client.Drain(t.Context(), 0); err != nil || running != 1 {
		t.Errorf("drain without waiting: %d running, %v", running, err)
	}
	if target.closed.Load() {
		t.Error("the target is closed under a running call")
	}
	for method, err := range callAll(t.Context(), client, "k") {
		if !errors.Is(err, sdk.Unavailable) {
			t.Errorf("%s while draining: %v", method, err)
		}
	}
	close(target.linger)
	if running, err := client.Drain(t.Context(), time.Minute); err != nil || running != 0 {
		t.Errorf("drain: %d running, %v", running, err)
	}
	// The host did not give up the call, so it must not be told that it did.
	if err := <-failed; !errors.Is(err, sdk.Unavailable) || errors.Is(err, sdk.Cancelled) {
		t.Errorf("the drained call: %v", err)
	}
	if !target.closed.Load() {
		t.Error("the target is not closed")
	}
}

func TestALivingPluginDoesNotHangHoweverLongItsStoreTakes(t *testing.T) {
	target := &slow{store: newStore(), entered: make(chan struct{}, 1), linger: make(chan struct{})}
	close(target.linger)
	client, _ := serveTarget(t, target, Clocks{Hung: 10 * time.Second, Stall: 11 * time.Second}) // a sign of life comes each 200 ms
	if _, err := client.Put(t.Context(), sdk.PutRequest{Key: "k", Body: sdk.BytesBody(nil)}); !errors.Is(err, sdk.Unavailable) {
		t.Errorf("put: %v; want the verdict of the stall clock", err)
	}
}

func TestACallThatTheCallerGivesUpIsCancelledOnTheFarSide(t *testing.T) {
	target := &slow{store: newStore(), entered: make(chan struct{}), linger: make(chan struct{})}
	close(target.linger)
	client, _ := serveTarget(t, target, Clocks{})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := client.Put(ctx, sdk.PutRequest{Key: "k", Body: sdk.BytesBody(nil)})
		failed <- err
	}()
	<-target.entered
	cancel()
	if err := <-failed; !errors.Is(err, sdk.Cancelled) || !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v", err)
	}
	if running, err := client.Drain(t.Context(), time.Minute); err != nil || running != 0 {
		t.Errorf("the far side still runs %d calls, %v", running, err)
	}
}

func TestTheDeadlineOfACallTravels(t *testing.T) {
	target := &slow{store: newStore(), entered: make(chan struct{}, 1), linger: make(chan struct{})}
	close(target.linger)
	client, _ := serveTarget(t, target, Clocks{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := client.Put(ctx, sdk.PutRequest{Key: "k", Body: sdk.BytesBody(nil)}); !errors.Is(err, sdk.Unavailable) {
		t.Errorf("put: %v", err)
	}
}

// truncating is a store whose connection is cut in the middle, as net/http reports it, and that lies about nothing else.
type truncating struct{ failing }

func (truncating) Get(context.Context, sdk.GetRequest) (sdk.GetResult, error) {
	cut := io.MultiReader(strings.NewReader("half"), readerOf(func([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }))
	return sdk.GetResult{Body: io.NopCloser(cut), Size: 8}, nil
}

type readerOf func([]byte) (int, error)

func (r readerOf) Read(p []byte) (int, error) { return r(p) }

func TestAStoreConnectionThatIsCutIsCorruptOnTheHost(t *testing.T) {
	client, spool := serveTarget(t, truncating{}, Clocks{})
	res, err := client.Get(t.Context(), sdk.GetRequest{Key: "k", Length: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); !errors.Is(err, sdk.Corrupt) {
		t.Errorf("%q, %v", got, err)
	}
	f, off := spoolFile(t, spool, nil)
	if _, err := client.Fetch(t.Context(), sdk.GetRequest{Key: "k", Length: -1}, f, off); !errors.Is(err, sdk.Corrupt) {
		t.Errorf("fetch: %v", err)
	}
}

func TestAPluginThatIsWrittenWrongIsToldSo(t *testing.T) {
	_, _, err := InProcess(t.Context(), sdk.Plugin[int]{Name: "x"}, hclog.NewNullLogger(), Clocks{})
	if err == nil || !strings.Contains(err.Error(), "not a struct") {
		t.Errorf("a configuration that is no struct: %v", err)
	}
	_, _, err = InProcess(t.Context(), sdk.Plugin[struct{}]{Name: "x"}, hclog.NewNullLogger(), Clocks{})
	if err == nil || !strings.Contains(err.Error(), "Open") {
		t.Errorf("a plugin without Open: %v", err)
	}
}
