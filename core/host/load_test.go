package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/pluginhost"
	"github.com/cairnsync/cairn/sdk"
)

// silentPlugin is a configuration whose target's plugin says nothing, as one that gets no time of a busy machine; it makes the file "started".
func (w *world) silentPlugin() (file string) {
	w.t.Helper()
	path := w.path("cairn-plugin-silent")
	must(w.t, os.WriteFile(path, []byte("#!/bin/sh\n: > \"$STARTED\"\nexec /bin/sleep 1000\n"), 0o700))
	plugin := fmt.Sprintf("plugin \"silent\" {\n  path = %q\n  env  = { STARTED = %q }\n}\ntarget \"s\" {\n  plugin = \"silent\"\n}\n", path, w.path("started"))
	file = w.path("cairn.hcl")
	must(w.t, os.WriteFile(file, []byte(w.hcl(conf{more: plugin})), 0o600))
	return file
}

func TestAPluginThatIsTooSlowIsNoFaultOfTheConfiguration(t *testing.T) {
	w := newWorld(t)
	_, found := Load(t.Context(), w.silentPlugin(), LoadOptions{Now: time.Now, timeouts: pluginhost.Timeouts{Start: 2 * time.Second}})
	if !found.HasErrors() || found.HasFaults() {
		t.Errorf("errors %v, faults %v", found.HasErrors(), found.HasFaults())
	}
	contains(t, found.Error(), "unchecked: ", `plugin "silent" gave no answer`, "did not connect within 2s of its start", "try again")
}

func TestACheckThatIsCutOffSaysSoAndNamesNoFault(t *testing.T) {
	w := newWorld(t)
	file := w.silentPlugin()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for ctx.Err() == nil { // the script makes the file before it falls silent
			if _, err := os.Stat(w.path("started")); err == nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	cfg, found := Load(ctx, file, LoadOptions{Now: time.Now})
	if cfg != nil || found.HasFaults() || len(found) != 1 || !found.HasErrors() {
		t.Errorf("got %v and\n%v", cfg, found)
	}
	contains(t, found.Error(), "the check was interrupted")
}

// A diagnostic without a message names its attribute, if that.
func TestAPluginThatDoesNotSayWhyIsNotQuotedAsNothing(t *testing.T) {
	if got := reason(&sdk.Error{Code: sdk.InvalidConfig, Attribute: "dir"}); got != "its plugin refuses the configuration and does not say why" {
		t.Errorf("got %q", got)
	}
	if got := reason(&sdk.Error{Code: sdk.InvalidConfig, Err: errors.New("no such folder")}); got != "no such folder" {
		t.Errorf("got %q", got)
	}
}

func TestWhatAFailedStartSaysOfTheConfiguration(t *testing.T) {
	fault := map[pluginhost.Cause]bool{
		pluginhost.CauseOther: false, pluginhost.CauseTimeout: false,
		pluginhost.CauseNotFound: true, pluginhost.CauseNotRunnable: true, pluginhost.CauseInsecure: true, pluginhost.CauseChecksum: true,
		pluginhost.CauseNoExec: true, pluginhost.CauseFormat: true, pluginhost.CauseInterpreter: true, pluginhost.CauseExited: true,
		pluginhost.CauseHandshake: true, pluginhost.CauseConfig: true, pluginhost.CauseLibrary: true,
		pluginhost.CauseBreach: true,
	}
	for cause, want := range fault {
		err := outsideFile(t.Context(), fmt.Errorf("wrapped: %w", &pluginhost.StartError{Cause: cause, Path: "p", What: "w"}))
		if _, outside := err.(*config.NoAnswerError); outside == want {
			t.Errorf("cause %d is a fault of the configuration: %v, want %v", cause, !outside, want)
		}
		if !strings.Contains(err.Error(), "start plugin p: w") {
			t.Errorf("cause %d: %v", cause, err)
		}
	}
	if err := outsideFile(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// A look at a hard NFS mount whose server is away comes back when that does.
func TestALookThatDoesNotComeBackIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := make(chan struct{})
		defer close(back)
		if lookUnder(t.Context())(func() { <-back }) {
			t.Error("a look that is stuck has ended")
		}
		ended := false
		if !lookUnder(t.Context())(func() { ended = true }) || !ended {
			t.Error("a look that ends has not")
		}
	})
}
