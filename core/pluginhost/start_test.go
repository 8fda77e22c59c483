package pluginhost

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestAProcessThatDoesNotBecomeAPluginSaysWhy(t *testing.T) {
	script := func(body string) func(*Spec) {
		return func(s *Spec) { s.Path = planted(t, "cairn-plugin-x", "#!/bin/sh\n"+body, 0o700) }
	}
	for _, row := range []struct {
		name  string
		spec  func(*Spec)
		cause Cause
		says  []string
	}{
		{"exits 0 before the handshake", func(s *Spec) { s.Env[roleVar] = "exit0" }, CauseExited, []string{"exited with code 0 before the handshake"}},
		{"exits with a reason", func(s *Spec) { s.Env[roleVar] = "exit7" }, CauseExited, []string{"exited with code 7 before the handshake", "cannot find my licence"}},
		{"kills itself", script("kill -9 $$\n"), CauseExited, []string{"was ended by signal 9"}},
		{"dies in Configure", func(s *Spec) { s.Config = []byte(`{"mark":"die"}`) }, CauseExited, []string{"exited with code 9 during configure"}},
		{"speaks another protocol version", script("echo '1|99|unix|/tmp/x|grpc|'; exec sleep 60\n"), CauseHandshake, []string{"is not a plugin for this Cairn", "99"}},
		{"speaks net/rpc", script("echo \"1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/x|netrpc|\"; exec sleep 60\n"), CauseHandshake, []string{"netrpc"}},
		{"offers a socket elsewhere", script("echo '1|1|unix|/tmp/x|grpc|'; exec sleep 60\n"), CauseHandshake, []string{"/tmp/x", "PLUGIN_UNIX_SOCKET_DIR"}},
		{"offers an address elsewhere", script("echo '1|1|tcp|10.1.2.3:80|grpc|'; exec sleep 60\n"), CauseHandshake, []string{"10.1.2.3"}},
		{"is a script without its interpreter", func(s *Spec) { s.Path = planted(t, "p", "#!/nowhere\n", 0o700) }, CauseInterpreter, []string{"/nowhere"}},
		{"is not there", func(s *Spec) { s.Path = "/nowhere/p" }, CauseNotFound, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			opts, _ := testOptions(t)
			spec := testSpec(t, "good")
			spec.Env["PATH"] = "/bin:/usr/bin"
			row.spec(&spec)
			_, _, err := Open(t.Context(), spec, opts)
			wantStartError(t, err, row.cause, row.says...)
		})
	}
}

func TestAProcessThatNeverShakesHandsIsGivenUp(t *testing.T) {
	opts, _ := testOptions(t)
	opts.Timeouts.Start = 3 * time.Second
	_, err := Describe(t.Context(), testSpec(t, "deaf"), opts)
	wantStartError(t, err, CauseTimeout, "did not connect within 3s")
}

func TestAPluginThatAcceptsAndSaysNothingIsGivenUp(t *testing.T) {
	opts, _ := testOptions(t)
	opts.Timeouts.Start = 5 * time.Second
	spec := testSpec(t, "listener")
	spec.Env["PATH"] = "/bin:/usr/bin"
	spec.Path = planted(t, "cairn-plugin-mute", "#!/bin/sh\n"+spec.Path+` &
until test -S "$PLUGIN_UNIX_SOCKET_DIR/s"; do sleep 0.01; done
echo "1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/s|grpc|"
wait
`, 0o700)
	_, err := Describe(t.Context(), spec, opts)
	wantStartError(t, err, CauseTimeout, "did not connect within 5s")
}

func TestAStartEndsWithItsContext(t *testing.T) {
	opts, log := testOptions(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		eventually(t, "the process runs", func() bool { return log.count("deaf") > 0 })
		cancel()
	}()
	if _, err := Describe(ctx, testSpec(t, "deaf"), opts); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestABinaryReplacedAfterItsCheckIsNotWhatRuns(t *testing.T) {
	opts, _ := testOptions(t)
	spec := testSpec(t, "good")
	original, err := os.ReadFile(spec.Path)
	if err != nil {
		t.Fatal(err)
	}
	spec.Path = planted(t, "cairn-plugin-test", string(original), 0o700)
	if spec.Checksum, err = Hash(t.Context(), spec.Path); err != nil {
		t.Fatal(err)
	}
	spec.Dev = false
	img, err := copyImage(t.Context(), spec, shortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	evil := "#!/bin/sh\necho evil >&2; exit 66\n"
	if err := os.WriteFile(spec.Path, []byte(evil), 0o700); err != nil {
		t.Fatal(err)
	}
	p := newProcess(spec.Path, img, newOutput(opts.Log, nil, time.Now))
	p.env = environment(nil, "/nowhere", Spec{Env: map[string]string{roleVar: "exit7"}})
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait(t, "the old binary ends", p.exited)
	wait(t, "and its output", p.drained)
	if p.exit() != "exited with code 7" {
		t.Errorf("what ran %s", p.exit())
	}
	_, _, err = Open(t.Context(), spec, opts)
	wantStartError(t, err, CauseChecksum, spec.Checksum)
}

func TestAnImageThatIsStillOpenForWritingIsTriedAgain(t *testing.T) {
	spec := testSpec(t, "exit7")
	img, err := copyImage(t.Context(), spec, shortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(img.path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { writer.Close() }) // as a fork elsewhere in the host does when it execs
	p := newProcess(spec.Path, img, newOutput(hclog.NewNullLogger(), nil, time.Now))
	p.env = environment(nil, "/nowhere", spec)
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait(t, "it ran", p.exited)
	wait(t, "and its output ended", p.drained)
}
