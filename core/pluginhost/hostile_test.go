package pluginhost

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

// The tail is bounded in lines too: a line without a letter costs memory all the same.
func TestTheTailIsBoundedHoweverShortTheLinesAre(t *testing.T) {
	var tail tail
	for range 3 * tailBytes {
		tail.add("")
	}
	tail.add("the last")
	if n := len(tail.lines); n > tailLines {
		t.Errorf("%d lines are kept", n)
	}
	if last := tail.last(2); strings.Join(last, "|") != "|the last" {
		t.Errorf("the last lines: %q", last)
	}
}

// go-plugin brings two streams of its own. Of the messages on one it would make goroutines, of those on the other nothing.
func TestAFloodOnTheStreamsOfGoPluginTakesNothingFromTheHost(t *testing.T) {
	for _, behaviour := range []string{"broker", "stdio"} {
		opts, _ := testOptions(t)
		s := open(t, rogueSpec(t, behaviour), opts)
		for range 20 {
			if err := put(t.Context(), s, "k"); err != nil {
				t.Errorf("%s: %v", behaviour, err)
			}
		}
		if n := runtime.NumGoroutine(); n > 200 {
			t.Errorf("%s: %d goroutines", behaviour, n)
		}
		s.Close(t.Context())
	}
}

// A private directory goes with its process, though that has made a nest in it for which the host has too few descriptors, or closed it to its owner.
func TestAPrivateDirectoryIsRemovedWhateverThePluginMadeOfIt(t *testing.T) {
	opts, _ := testOptions(t)
	spec := testSpec(t, "good")
	spec.Path = planted(t, "cairn-plugin-nest", "#!/bin/sh\nmkdir -p a/b/c && chmod 0 a/b a\n(i=0; while [ $i -lt 200 ]; do mkdir d && cd d && i=$((i+1)); done)\nexec "+spec.Path+"\n", 0o700)
	spec.Env["PATH"] = "/bin:/usr/bin"
	if _, err := Describe(t.Context(), spec, opts); err != nil {
		t.Error(err)
	}
	wantEmpty(t, opts.RuntimeDir)
}

// A text that was cut to its bound may end in the middle of a secret.
func TestASecretIsMaskedWhereATextWasCutAndInASchema(t *testing.T) {
	m := newMask([]string{"hunter2hunter2"})
	const half = "a long message with hunter2hunt…"
	err := m.error(&sdk.Error{Hint: half, Provider: half, Err: errors.New(half)})
	var e *sdk.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	about := m.description(sdk.Description{Doc: half, Features: []string{"hunter2hunter2"}, Schema: sdk.Schema{Attributes: []sdk.Attribute{
		{Name: "a", Type: sdk.TypeString, Default: "hunter2hunter2", Doc: half, Enum: []string{"hunter2hunter2"}},
	}}})
	if text := fmt.Sprint(err, e.Hint, about); strings.Contains(text, "hunter2") || strings.Count(text, dots) != 8 {
		t.Errorf("%s", text)
	}
	if a := about.Schema.Attributes[0]; a.Name != "a" || a.Type != sdk.TypeString {
		t.Errorf("got %+v", a)
	}
}
