package pluginhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func put(ctx context.Context, s sdk.Target, key string) error {
	_, err := s.Put(ctx, sdk.PutRequest{Key: key, Body: sdk.BytesBody([]byte(key))})
	return err
}

func get(t *testing.T, s sdk.Target, key string) string {
	t.Helper()
	result, err := s.Get(t.Context(), sdk.GetRequest{Key: key, Length: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer result.Body.Close()
	content, err := io.ReadAll(result.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func open(t *testing.T, spec Spec, opts Options) *Store {
	t.Helper()
	store, _, err := Open(t.Context(), spec, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close(context.Background()) })
	return store
}

func TestAPluginIsDescribedWithoutAConfiguration(t *testing.T) {
	opts, log := testOptions(t)
	spec := testSpec(t, "good")
	spec.Config, spec.Spool = nil, ""
	about, err := Describe(t.Context(), spec, opts)
	if err != nil {
		t.Fatal(err)
	}
	if about.Name != "test" || about.Version != "1.2.3" || len(about.Schema.Attributes) != 2 {
		t.Errorf("got %+v", about)
	}
	if log.count("[WARN]  plugin: dev = true") != 1 {
		t.Error("dev is not loud")
	}
}

func TestAPluginValidatesWithoutBeingConfigured(t *testing.T) {
	opts, _ := testOptions(t)
	spec := testSpec(t, "good")
	if err := Validate(t.Context(), spec, opts); err != nil {
		t.Error(err)
	}
	spec.Config = []byte(`{"mark":"bad"}`)
	err := Validate(t.Context(), spec, opts)
	var fault *sdk.Error
	if !errors.As(err, &fault) || fault.Code != sdk.InvalidConfig || fault.Attribute != "mark" {
		t.Errorf("got %v", err)
	}
}

func TestAConfigurationThePluginRefusesIsAFailedStart(t *testing.T) {
	opts, _ := testOptions(t)
	spec := testSpec(t, "good")
	spec.Config = []byte(`{"mark":"bad"}`)
	_, _, err := Open(t.Context(), spec, opts)
	wantStartError(t, err, CauseConfig, "offsite", "must not be bad")
	if !errors.Is(err, sdk.InvalidConfig) {
		t.Error("the code is lost")
	}
}

func TestAStoreServesInlineBodiesSpooledBodiesAndFetch(t *testing.T) {
	opts, log := testOptions(t)
	spec := testSpec(t, "good")
	store := open(t, spec, opts)
	if err := put(t.Context(), store, "a/b"); err != nil {
		t.Fatal(err)
	}
	if got := get(t, store, "a/b"); got != "a/b" {
		t.Errorf("got %q", got)
	}
	content := bytes.Repeat([]byte("0123456789abcdef"), 2*sdk.MaxInline/16)
	f, err := os.Create(filepath.Join(spec.Spool, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), sdk.PutRequest{Key: "big", Body: sdk.FileBody(f, 0, int64(len(content)), sdk.SumsOf(content))}); err != nil {
		t.Fatal(err)
	}
	if n, err := store.Fetch(t.Context(), sdk.GetRequest{Key: "big", Length: -1}, f, 0); err != nil || n != int64(len(content)) {
		t.Errorf("fetched %d, %v", n, err)
	}
	var keys []string
	for object, err := range store.List(t.Context(), sdk.ListRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, object.Key)
	}
	if fmt.Sprint(keys) != "[a/b big]" {
		t.Errorf("listed %v", keys)
	}
	if err := store.Delete(t.Context(), []string{"a/b", "big"}); err != nil {
		t.Error(err)
	}
	eventually(t, "the plugin's own log line is there", func() bool { return log.count("opened") > 0 && log.count("mark=x") > 0 })
}

func TestAPluginInAProcessPassesTheExam(t *testing.T) {
	opts, _ := testOptions(t)
	spec := testSpec(t, "good")
	store := open(t, spec, opts)
	results := sdktest.RunCases(t.Context(), &sdktest.Env{
		Target: store, Spool: spec.Spool,
		Reopen: func(context.Context) (sdk.Target, error) { return store, nil }, // its memory is the store: there is no second instance
	})
	for _, result := range results {
		if result.Err != nil || result.Skipped != "" {
			t.Errorf("%s: %v %s", result.Case.Name, result.Err, result.Skipped)
		}
	}
	if len(results) < 20 {
		t.Errorf("only %d cases", len(results))
	}
}

func TestManyPluginsStartAtOnce(t *testing.T) {
	opts, _ := testOptions(t)
	spec := testSpec(t, "good")
	var starts sync.WaitGroup
	for range 6 {
		starts.Go(func() {
			store, _, err := Open(t.Context(), spec, opts)
			if err != nil {
				t.Error(err)
				return
			}
			defer store.Close(t.Context())
			if err := put(t.Context(), store, "k"); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
}

func TestJunkBeforeTheHandshakeDoesNoHarm(t *testing.T) {
	opts, log := testOptions(t)
	spec := testSpec(t, "good")
	script := `#!/bin/sh
echo "starting up"
echo '{"@level":1,"@message":[],"@timestamp":{}}'
echo '{"@level":1,"@message":[],"@timestamp":{}}' >&2
head -c 1048576 /dev/zero
echo
head -c 1048576 /dev/zero | tr '\000' x >&2
echo >&2
printf '\377\376\033[2J\n' >&2
exec ` + spec.Path + "\n"
	spec.Path = planted(t, "cairn-plugin-script", script, 0o700)
	spec.Env["PATH"] = "/bin:/usr/bin"
	store := open(t, spec, opts)
	if err := put(t.Context(), store, "k"); err != nil {
		t.Error(err)
	}
	eventually(t, "two cut lines are in the log", func() bool { return log.count("more bytes of this line)") == 2 })
	if text := log.String(); strings.ContainsAny(text, "\x00\x1b") || !utf8.ValidString(text) {
		t.Error("raw bytes reach the log")
	}
}

func TestAPluginThatStopsDuringAPutIsHungAndClosingIsBounded(t *testing.T) {
	opts, _ := testOptions(t)
	opts.Timeouts.Hung = 5 * time.Second
	store := open(t, testSpec(t, "good"), opts)
	if err := put(t.Context(), store, "x/stop"); !errors.Is(err, sdk.PluginHung) {
		t.Errorf("got %v, want PluginHung", err)
	}
	store.Close(t.Context())
	wait(t, "the stopped process is reaped", store.Exited())
}

func TestACallThatNeverReturnsDoesNotHoldTheClosing(t *testing.T) {
	opts, _ := testOptions(t)
	opts.Timeouts.Drain, opts.Timeouts.Term = 100*time.Millisecond, 100*time.Millisecond
	store := open(t, testSpec(t, "good"), opts)
	done := make(chan error, 1)
	go func() { done <- put(t.Context(), store, "x/deadlock") }()
	eventually(t, "the call is in the plugin", func() bool {
		return put(t.Context(), store, "probe") == nil
	})
	store.Close(t.Context())
	if err := <-done; err == nil {
		t.Error("the call succeeded")
	}
}

func TestAGrandchildThatHoldsStderrDoesNotHoldTheClosing(t *testing.T) {
	opts, _ := testOptions(t)
	store := open(t, testSpec(t, "good"), opts)
	if err := put(t.Context(), store, "x/fork"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	store.Close(t.Context())
	if took := time.Since(began); took > 100*time.Second { // the grandchild sleeps for 120
		t.Errorf("closing took %v", took)
	}
}

func TestACallThatLosesItsProcessCarriesTheCrashReport(t *testing.T) {
	opts, _ := testOptions(t)
	for key, says := range map[string][]string{
		"x/exit":  {"exited with code 3", "last words"},
		"x/panic": {"exited with code 2", "misbehave"},
	} {
		t.Run(key, func(t *testing.T) {
			store := open(t, testSpec(t, "good"), opts)
			err := put(t.Context(), store, key)
			if !errors.Is(err, sdk.PluginGone) {
				t.Fatalf("got %v, want PluginGone", err)
			}
			for _, text := range says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v does not say %q", err, text)
				}
			}
			wait(t, "the process is reaped", store.Exited())
			if err := put(t.Context(), store, "again"); !errors.Is(err, sdk.PluginGone) {
				t.Errorf("the next call answers %v", err)
			}
		})
	}
}

func TestGoPluginsOwnChatterIsTrace(t *testing.T) {
	opts, log := testOptions(t)
	open(t, testSpec(t, "good"), opts).Close(t.Context())
	for _, line := range strings.Split(log.String(), "\n") {
		if strings.Contains(line, "go_plugin_level") && !strings.Contains(line, "[TRACE]") {
			t.Errorf("not at trace: %s", line)
		}
	}
	if log.count("go_plugin_level") == 0 {
		t.Error("nothing of go-plugin in the log: it cannot be looked into")
	}
}

func TestAnEnvironmentNameOfTheProtocolIsRefused(t *testing.T) {
	opts, _ := testOptions(t)
	for _, name := range []string{"PLUGIN_CLIENT_CERT", "CAIRN_PLUGIN", "", "A=B"} {
		spec := testSpec(t, "good")
		spec.Env[name] = "x"
		if _, err := New(spec, opts); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}
