package rpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/cairnsync/cairn/sdk"
)

// stuck is a target whose Put of the key "stuck" ends only with its context.
type stuck struct{ *store }

func (s stuck) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	if req.Key == "stuck" {
		<-ctx.Done()
		return sdk.PutResult{}, ctx.Err()
	}
	return s.store.Put(ctx, req)
}

// playPlugin is the plugin that this test binary plays.
func playPlugin() {
	fmt.Println("a print before Serve")
	Serve(pluginOf(stuck{newStore()}))
}

// launch starts the test binary as a plugin through go-plugin, as a host does.
func launch(t *testing.T, clocks Clocks, env ...string) (*Client, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = env
	host := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: Handshake(), Plugins: Plugins(clocks), Cmd: cmd, AutoMTLS: true, GRPCDialOptions: DialOptions(),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, Logger: hclog.NewNullLogger(),
	})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		host.Kill()
	})
	conn, err := host.Client()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := conn.Dispense(Name)
	if err != nil {
		t.Fatal(err)
	}
	return raw.(*Client), cmd
}

func TestAPluginProcessShakesHandsWhateverItPrintsAndServes(t *testing.T) {
	client, _ := launch(t, Clocks{}, "CAIRN_TEST_NOISE=1")
	if d, err := client.Describe(t.Context()); err != nil || d.Name != "test" {
		t.Fatalf("described as %+v, %v", d, err)
	}
	spool := t.TempDir()
	if err := client.Configure(t.Context(), Configuration{Target: "offsite", Spool: spool}); err != nil {
		t.Fatal(err)
	}
	content := bigContent()
	f, off := spoolFile(t, spool, content)
	body := sdk.FileBody(f, off, int64(len(content)), sdk.SumsOf(content))
	if res, err := client.Put(t.Context(), sdk.PutRequest{Key: "big", Body: body}); err != nil || res.Version != "v1" || res.SHA256 != body.SHA256() {
		t.Fatalf("put: %+v, %v", res, err)
	}
	back, at := spoolFile(t, spool, nil)
	n, err := client.Fetch(t.Context(), sdk.GetRequest{Key: "big", Length: -1}, back, at)
	if err != nil || n != int64(len(content)) {
		t.Fatalf("fetch: %d bytes, %v", n, err)
	}
	got := make([]byte, n)
	if _, err := back.ReadAt(got, at); err != nil || !bytes.Equal(got, content) {
		t.Errorf("fetched other bytes, %v", err)
	}
}

func TestAKilledPluginIsGone(t *testing.T) {
	client, cmd := launch(t, Clocks{})
	if err := client.Configure(t.Context(), Configuration{}); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := client.Put(t.Context(), sdk.PutRequest{Key: "stuck", Body: sdk.BytesBody(nil)})
		failed <- err
	}()
	if _, err := client.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, sdk.PluginGone) {
		t.Errorf("the call in progress: %v", err)
	}
	if _, err := client.Describe(t.Context()); !errors.Is(err, sdk.PluginGone) {
		t.Errorf("a later call: %v", err)
	}
}

func TestAStoppedPluginHangs(t *testing.T) {
	client, cmd := launch(t, Clocks{Hung: 3 * time.Second})
	if err := client.Configure(t.Context(), Configuration{}); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(t.Context(), sdk.PutRequest{Key: "stuck", Body: sdk.BytesBody(nil)}); !errors.Is(err, sdk.PluginHung) {
		t.Errorf("put: %v", err)
	}
}

// bare starts the test binary as a plugin without go-plugin's client, and waits for its handshake.
func bare(t *testing.T, cmd *exec.Cmd) (stdin io.WriteCloser, stdout *bufio.Reader, stderr *bytes.Buffer) {
	t.Helper()
	cmd.Env = append(cmd.Env, cookieKey+"="+cookieValue, "PLUGIN_PROTOCOL_VERSIONS=1")
	stderr = new(bytes.Buffer)
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	stdout = bufio.NewReader(out)
	line, err := stdout.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "1|1|unix|") {
		t.Fatalf("the handshake is %q, %v; standard error: %s", line, err, stderr)
	}
	return stdin, stdout, stderr
}

func TestThePluginEndsWhenItsHostIsGone(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	stdin, _, stderr := bare(t, cmd)
	stdin.Close() // as the kernel does for a host that was killed
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	for _, want := range []string{"a print before Serve", "standard input ended"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("standard error lacks %q: %s", want, stderr)
		}
	}
}

func TestThePluginEndsWhenItsParentIsGoneEvenWithoutALifeline(t *testing.T) {
	// The shell gives its child /dev/null as standard input, waits for the end of its own, and goes.
	cmd := exec.Command("/bin/sh", "-c", `"$0" & cat >/dev/null`, os.Args[0])
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	stdin, stdout, _ := bare(t, cmd)
	stdin.Close()
	if _, err := io.Copy(io.Discard, stdout); err != nil { // ends when the last holder of the pipe has ended: the plugin
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the shell ends with %v", err)
	}
}

func TestThePluginIgnoresSIGINTAndEndsCleanlyOnSIGTERM(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	stdin, _, stderr := bare(t, cmd)
	defer stdin.Close()
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGINT, syscall.SIGTERM} {
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	if text := stderr.String(); !strings.Contains(text, `"reason":"SIGTERM"`) || strings.Contains(text, `"@level":"error"`) {
		t.Errorf("standard error: %s", text)
	}
}

func TestAPluginRunByHandSaysWhatItIs(t *testing.T) {
	cmd := exec.Command(os.Args[0], "--version")
	cmd.Env = []string{"CAIRN_TEST_BY_HAND=1"}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ends with %v", err)
	}
	for _, want := range []string{"test 1.2.3 is a plugin of Cairn: a target for tests", `plugin = "test"`, "cairn plugin info"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q: %s", want, out)
		}
	}
}
