package pluginhost

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/rpc"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// roleVar in a Spec's Env makes the test binary play a plugin.
const roleVar = "CAIRN_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		play(role)
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if path, err := testBinary(); err == nil {
			os.RemoveAll(filepath.Dir(path))
		}
		os.Exit(code)
	}))
}

func play(role string) {
	switch role {
	case "good":
		fmt.Println("printed before Serve")
		fmt.Fprintln(os.Stderr, `{"@level":1,"@message":2,"@timestamp":3}`)
		serve()
	case "exit0":
		os.Exit(0)
	case "exit7":
		fmt.Fprintln(os.Stderr, "cannot find my licence")
		os.Exit(7)
	case "deaf": // no handshake, and nothing but SIGKILL ends it
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
		fmt.Fprintln(os.Stderr, "deaf", os.Getpid())
		for { // not select {}: the runtime would call that a deadlock
			time.Sleep(time.Hour)
		}
	case "deserter": // goes over to its host's group and hangs there
		group, err := syscall.Getpgid(os.Getppid())
		if err := errors.Join(err, syscall.Setpgid(0, group)); err != nil {
			panic(err)
		}
		play("deaf")
	case "listener": // takes connections and says nothing
		if _, err := net.Listen("unix", os.Getenv("PLUGIN_UNIX_SOCKET_DIR")+"/s"); err != nil {
			panic(err)
		}
		time.Sleep(time.Hour)
	case "parent": // leaves a child that holds stderr: in its own group, or in another session
		fmt.Fprintln(os.Stderr, "child", startChild(os.Getenv("SETSID") != ""))
		os.Exit(0)
	case "env":
		fmt.Fprintln(os.Stderr, strings.Join(os.Environ(), "\n"))
		fmt.Fprintln(os.Stderr, "arguments:", len(os.Args)-1)
		_, err := io.Copy(io.Discard, os.Stdin)
		fmt.Fprintln(os.Stderr, "stdin ended:", err)
	case "rogue":
		rogue{os.Getenv(behaviourVar)}.serve()
	default:
		playOnLinux(role)
	}
}

type testConfig struct {
	Mark   string     `cairn:"mark" doc:"any text but bad"`
	Secret sdk.Secret `cairn:"secret" doc:"goes nowhere"`
}

func serve() {
	rpc.Serve(sdk.Plugin[testConfig]{
		Name: "test", Version: "1.2.3", Doc: "A plugin that misbehaves on request.",
		Validate: func(cfg testConfig) error {
			if strings.HasPrefix(cfg.Mark, "hunter2") {
				return &sdk.Error{Code: sdk.InvalidConfig, Attribute: "mark", Err: errors.New("must not be " + cfg.Mark), Hint: "change " + cfg.Mark}
			}
			if cfg.Mark == "bad" {
				return &sdk.Error{Code: sdk.InvalidConfig, Attribute: "mark", Err: errors.New("must not be bad")}
			}
			return nil
		},
		Open: func(_ context.Context, env sdk.Env, cfg testConfig) (sdk.Target, error) {
			if cfg.Mark == "die" {
				fmt.Fprintln(os.Stderr, "dying in Open")
				os.Exit(9)
			}
			env.Log.Warn("opened", "mark", cfg.Mark)
			return &sdktest.Faulty{Target: sdktest.NewMem(), Before: misbehave}, nil
		},
	})
}

// misbehave does what the last part of a key says.
func misbehave(ctx context.Context, call sdktest.Call) error {
	switch filepath.Base(call.Key) {
	case "stop":
		err := syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		<-ctx.Done() // the signal may take a moment to stop every thread
		return err
	case "exit":
		fmt.Fprintln(realStderr(), "last words")
		os.Exit(3)
	case "panic":
		go panic("a goroutine of the plugin")
		<-ctx.Done()
	case "deadlock":
		select {}
	case "fork":
		startChild(true)
	case "forks":
		startChildren(200)
	case "flood":
		fmt.Fprint(realStderr(), strings.Repeat("[ERROR] all is lost\n", 100_000)+"the last line\n")
	case "leak":
		return leak(call.Key)
	}
	return nil
}

// leak prints the secret that a test has planted in the configuration in all ways of a careless program, and dies of it.
func leak(key string) error {
	secret := os.Getenv("PLANTED")
	encoded := base64.StdEncoding.EncodeToString([]byte("user:" + secret))
	fmt.Fprintln(realStderr(), "connecting with "+secret)
	fmt.Fprintf(realStderr(), "{\"@level\":\"error\",\"@message\":%q,\"authorization\":\"Basic %s\",\"deep\":{\"key\":%q}}\n", "key "+secret, encoded, secret)
	fmt.Fprintln(os.Stdout, "GET /?sig="+url.QueryEscape(secret)+" HTTP/1.1")
	if filepath.Dir(key) == "x" {
		go panic("bad credentials " + secret) // the SDK makes an error of a panic in the call itself
		select {}
	}
	return &sdk.Error{Code: sdk.PermissionDenied, Provider: "key " + secret, Hint: "replace " + secret, Err: errors.New("refused: " + secret)}
}

// startChildren leaves processes in the group that hold the lock on the file LOCK together.
func startChildren(n int) {
	f, err := os.OpenFile(os.Getenv("LOCK"), os.O_RDWR, 0)
	if err != nil || !tryLock(f) {
		panic(fmt.Sprint("cannot lock: ", err))
	}
	for range n {
		cmd := exec.Command("/bin/sleep", "120")
		cmd.ExtraFiles = []*os.File{f}
		if err := cmd.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// realStderr is descriptor 2: once a plugin serves, go-plugin has put a stream of the connection in the place of os.Stderr.
func realStderr() *os.File { return os.NewFile(2, "stderr") }

// startChild leaves a process that holds stderr, and the lock on the file LOCK when there is one. It ends when two minutes are over, should
// the test not end it.
func startChild(setsid bool) int {
	cmd := exec.Command("/bin/sleep", "120")
	cmd.Stderr = realStderr()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid}
	if name := os.Getenv("LOCK"); name != "" {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil || !tryLock(f) {
			panic(fmt.Sprint("cannot lock ", name, err))
		}
		cmd.ExtraFiles = []*os.File{f}
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return cmd.Process.Pid
}

// testBinary installs this binary as a plugin file once, without what only a debugger reads: each start copies it.
var testBinary = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "phbin")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "cairn-plugin-test")
	return path, copyLoaded(self, path)
})

// copyLoaded copies of a program what the kernel maps. Of one that is not ELF it copies all.
func copyLoaded(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if program, err := elf.NewFile(bytes.NewReader(content)); err == nil {
		end := uint64(0)
		for _, part := range program.Progs {
			end = max(end, part.Off+part.Filesz)
		}
		content = content[:end]
	}
	return os.WriteFile(to, content, 0o700)
}

func testSpec(t *testing.T, role string) Spec {
	t.Helper()
	path, err := testBinary()
	if err != nil {
		t.Fatal(err)
	}
	return Spec{
		Target: "offsite", Plugin: "test", Path: path, Dev: true, // the umask of whoever runs the tests is not the matter here
		Env: map[string]string{roleVar: role, "GORACE": "atexit_sleep_ms=0"}, Config: []byte(`{"mark":"x"}`), Spool: shortDir(t),
	}
}

// testOptions are generous where a loaded machine needs it and short where a test waits for them to pass.
func testOptions(t *testing.T) (Options, *logged) {
	t.Helper()
	log := &logged{}
	dir := filepath.Join(shortDir(t), "run")
	t.Cleanup(func() {
		if _, err := os.Stat(dir); err == nil {
			wantEmpty(t, dir)
		}
		if t.Failed() {
			for line := range strings.Lines(log.String()) {
				t.Logf("log: %.300s", strings.TrimSuffix(line, "\n"))
			}
		}
	})
	return Options{
		Log:        hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Trace}),
		RuntimeDir: dir,
		Now:        time.Now,
		Timeouts:   Timeouts{Start: time.Minute, Call: time.Minute, Ready: time.Minute, Hung: 30 * time.Second},
		Restart:    RestartPolicy{Min: time.Millisecond, Max: 2 * time.Millisecond, Crashes: 1000},
	}, log
}

// logged is a log that can be read while it is written.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// reset forgets what was logged, so that a long test does not weigh its own log.
func (l *logged) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

func (l *logged) count(text string) int { return strings.Count(l.String(), text) }

// bound is how long a test waits for something that must happen soon: a loaded machine is slow, a broken host waits for ever.
const bound = time.Minute

// eventually waits until done, looking 100 times a second.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(bound)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline.C:
			t.Fatalf("not within %v: %s", bound, what)
		case <-tick.C:
		}
	}
}

func wait(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	if !within(bound, done) {
		t.Fatalf("not within %v: %s", bound, what)
	}
}
