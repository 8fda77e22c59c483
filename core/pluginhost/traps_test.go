package pluginhost

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

func TestAFloodOfLinesReachesTheCrashReportAndNotTheLog(t *testing.T) {
	opts, log := testOptions(t)
	s := open(t, testSpec(t, "good"), opts)
	if err := put(t.Context(), s, "x/flood"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all is read", func() bool { return strings.Contains(strings.Join(s.session.lastWords(), "|"), "the last line") })
	if err := put(t.Context(), s, "k"); err != nil {
		t.Errorf("the next call: %v", err)
	}
	if n := log.count("all is lost"); n < 100 || n > 50_000 || log.count("lines are dropped") == 0 {
		t.Errorf("%d of 100,000 lines are in the log", n)
	}
}

func TestStandardOutputIsReadForAsLongAsThePluginWritesIt(t *testing.T) {
	opts, log := testOptions(t)
	s := open(t, rogueSpec(t, "spews"), opts)
	for range 2 {
		if err := put(t.Context(), s, "k"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the long line is cut", func() bool { return log.count("more bytes of this line)") == 2 })
	eventually(t, "the second handshake is a line like any other", func() bool { return log.count("1|1|unix|/tmp/evil|grpc|") == 2 })
}

func TestTwoHundredChildrenDieWithThePlugin(t *testing.T) {
	opts, _ := testOptions(t)
	spec := testSpec(t, "good")
	spec.Env["LOCK"] = planted(t, "lock", "", 0o600)
	s := open(t, spec, opts)
	if err := put(t.Context(), s, "x/forks"); err != nil {
		t.Fatal(err)
	}
	if lives(t, spec.Env["LOCK"]) == false {
		t.Fatal("there are no children")
	}
	s.Close(t.Context())
	eventually(t, "all children end", func() bool { return !lives(t, spec.Env["LOCK"]) })
}

// lives tells that some process holds a lock.
func lives(t *testing.T, lock string) bool {
	t.Helper()
	f, err := os.OpenFile(lock, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return !tryLock(f)
}

const plantedSecret = "Tr0ub4dor&3 /+correct\"horse"

func TestASecretThatAPluginPrintsIsSeenNowhere(t *testing.T) {
	opts, log := testOptions(t)
	spec := testSpec(t, "good")
	spec.Env["PLANTED"] = plantedSecret
	spec.Secrets = []string{plantedSecret}
	s, _ := supervised(t, spec, opts)
	err := put(t.Context(), s, "leak")
	var e *sdk.Error
	if !errors.As(err, &e) || e.Code != sdk.PermissionDenied {
		t.Fatalf("got %v", err)
	}
	crash := put(t.Context(), s, "x/leak")
	if !errors.Is(crash, sdk.PluginGone) {
		t.Fatalf("got %v", crash)
	}
	eventually(t, "it is started again", func() bool { return s.Status().Restarts == 1 && s.Status().State == StateReady })
	seen := map[string]string{
		"the error": fmt.Sprintf("%v %s %s", err, e.Hint, e.Provider), "the error of the crash": crash.Error(),
		"the status": fmt.Sprintf("%+v", s.Status()), "the log": log.String(),
	}
	for where, text := range seen {
		if !strings.Contains(text, dots) && where != "the error of the crash" { // which shows the last lines only
			t.Errorf("%s shows nothing masked: %.2000s", where, text)
		}
		for _, form := range formsOf(plantedSecret) {
			if strings.Contains(text, form) {
				t.Errorf("%s holds %q", where, form)
			}
		}
	}
}

func TestASecretInARefusedConfigurationIsSeenNowhere(t *testing.T) {
	opts, _ := testOptions(t)
	spec := testSpec(t, "good")
	spec.Config, spec.Secrets = []byte(`{"mark":"hunter2hunter2"}`), []string{"hunter2hunter2"}
	if err := Validate(t.Context(), spec, opts); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), dots) {
		t.Errorf("got %v", err)
	}
	_, _, err := Open(t.Context(), spec, opts)
	wantStartError(t, err, CauseConfig, dots)
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

// spooled puts content into the spool as the host does.
func spooled(t *testing.T, spool string, content []byte) *os.File {
	t.Helper()
	f, err := os.CreateTemp(spool, "part-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	return f
}

// All plugins see one spool. What one of them does to the files of another is noticed by whoever reads them: nothing damaged is stored.
func TestABodyThatAnotherPluginSpoiledIsNotStored(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), sdk.MaxInline/16+1)
	for behaviour, want := range map[string]sdk.Code{"spoils": sdk.Corrupt, "empties": sdk.Internal} {
		opts, _ := testOptions(t)
		honest := testSpec(t, "good")
		spoiler := rogueSpec(t, behaviour)
		spoiler.Spool, spoiler.Env["SPOOL"] = honest.Spool, honest.Spool
		good, bad := open(t, honest, opts), open(t, spoiler, opts)

		f := spooled(t, honest.Spool, content)
		if err := put(t.Context(), bad, "k"); err != nil {
			t.Fatal(err)
		}
		_, err := good.Put(t.Context(), sdk.PutRequest{Key: "big", Body: bodyOf(f, content)})
		if err == nil || sdk.CodeOf(err) != want {
			t.Errorf("%s: the put ends with %v", behaviour, err)
		}
		if _, err := good.Get(t.Context(), sdk.GetRequest{Key: "big", Length: -1}); !errors.Is(err, sdk.NotFound) {
			t.Errorf("%s: the object: %v", behaviour, err)
		}
		f = spooled(t, honest.Spool, content)
		if _, err := good.Put(t.Context(), sdk.PutRequest{Key: "big", Body: bodyOf(f, content)}); err != nil {
			t.Errorf("%s: the next put: %v", behaviour, err)
		}
	}
}

func TestALinkInThePlaceOfTheNonceHarmsNoFileOfTheOperators(t *testing.T) {
	for _, behaviour := range []string{"links-nonce", "deletes-nonce"} {
		opts, _ := testOptions(t)
		spec := rogueSpec(t, behaviour)
		victim := planted(t, "victim", "of value", 0o600)
		spec.Env["VICTIM"] = victim
		if store, _, err := Open(t.Context(), spec, opts); err == nil {
			store.Close(t.Context())
		}
		if content, err := os.ReadFile(victim); err != nil || string(content) != "of value" {
			t.Errorf("%s: %q, %v", behaviour, content, err)
		}
		if names := namesIn(t, spec.Spool); len(names) != 0 {
			t.Errorf("%s: left in the spool: %v", behaviour, names)
		}
	}
}

func TestAPluginThatNeedsMoreMemoryThanItMayEndsByItself(t *testing.T) {
	opts, _ := testOptions(t)
	spec := testSpec(t, "good")
	spec.MemoryLimit = 128 << 20
	spec.Path = planted(t, "cairn-plugin-eater", "#!/bin/sh\nx=xxxxxxxxxxxxxxxx\nwhile :; do x=$x$x; done\n", 0o700)
	_, err := Describe(t.Context(), spec, opts)
	wantStartError(t, err, CauseExited, "before the handshake")
}

func TestWhatAPluginLeavesBehindInItsFolderGoesWithIt(t *testing.T) {
	opts, _ := testOptions(t)
	spec := testSpec(t, "good")
	spec.Path = planted(t, "cairn-plugin-litter", "#!/bin/sh\necho x > here && echo x > \"$TMPDIR/there\" && mkdir -p a/b && ln -s /etc a/c && exec "+spec.Path+"\n", 0o700)
	spec.Env["PATH"] = "/bin:/usr/bin"
	s := open(t, spec, opts)
	dir := s.session.dir.path
	for _, name := range []string{"here", "there", "a/b", "a/c"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	s.Close(t.Context())
	wantEmpty(t, opts.RuntimeDir)
}
