package pluginhost

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

// playHost is a host in a process of its own: it starts one plugin, says its number and ends as it is told to, by a panic or by kill -9.
func playHost() {
	spec := Spec{
		Target: "t", Plugin: "test", Path: os.Getenv("PLUGIN"), Dev: true,
		Env: map[string]string{roleVar: os.Getenv("PLUGIN_ROLE")}, Config: []byte("{}"),
	}
	fmt.Println(startForHost(spec, os.Getenv("RUNTIME_DIR")))
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err == nil {
		panic("as asked")
	}
	time.Sleep(time.Hour)
}

func startForHost(spec Spec, dir string) int {
	ctx := context.Background()
	if spec.Env[roleVar] == "good" {
		store, _, err := Open(ctx, spec, Options{RuntimeDir: dir, Now: time.Now})
		if err != nil {
			panic(err)
		}
		return store.PID()
	}
	d, err := newRuntimeDir(dir)
	if err != nil {
		panic(err)
	}
	img, err := copyImage(ctx, spec, d.path)
	if err != nil {
		panic(err)
	}
	p := newProcess(spec.Path, img, newOutput(hclog.NewNullLogger(), nil, time.Now))
	p.env = environment(nil, d.path, spec)
	if err := p.Start(ctx); err != nil {
		panic(err)
	}
	return p.number()
}

func TestAPluginDoesNotOutliveItsHostAndTheNextHostSweeps(t *testing.T) {
	for _, row := range []struct {
		name, role string
		end        func(host *exec.Cmd, stdin *os.File) error
	}{
		{"killed, a plugin of the SDK", "good", kill9},
		{"killed, a plugin that hears nothing", "deaf", kill9},
		{"panicked, a plugin of the SDK", "good", panicNow},
		{"panicked, a plugin that hears nothing", "deaf", panicNow},
	} {
		t.Run(row.name, func(t *testing.T) {
			spec := testSpec(t, row.role)
			opts, _ := testOptions(t)
			host, stdin, pid := startHost(t, spec, opts.RuntimeDir)
			pidfd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				t.Fatalf("the plugin %d is not running: %v", pid, err)
			}
			defer unix.Close(pidfd)
			if err := row.end(host, stdin); err != nil {
				t.Fatal(err)
			}
			if err := host.Wait(); err == nil {
				t.Error("the host ended in peace")
			}
			waitPidfd(t, pidfd)

			if names := namesIn(t, opts.RuntimeDir); len(names) != 2 {
				t.Fatalf("the dead host left %v, want a directory and its lock", names)
			}
			if _, err := Describe(t.Context(), testSpec(t, "good"), opts); err != nil {
				t.Fatal(err)
			}
			wantEmpty(t, opts.RuntimeDir)
		})
	}
}

func kill9(host *exec.Cmd, _ *os.File) error { return host.Process.Kill() }

func panicNow(_ *exec.Cmd, stdin *os.File) error {
	_, err := stdin.WriteString("\n")
	return err
}

func startHost(t *testing.T, spec Spec, dir string) (host *exec.Cmd, stdin *os.File, pid int) {
	t.Helper()
	r, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	t.Cleanup(func() { stdin.Close() })
	host = exec.Command(spec.Path)
	host.Args[0] = filepath.Base(spec.Path)
	host.Env = []string{roleVar + "=host", "PLUGIN=" + spec.Path, "PLUGIN_ROLE=" + spec.Env[roleVar], "RUNTIME_DIR=" + dir}
	host.Stdin = r
	stdout, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		pid, err = strconv.Atoi(strings.TrimSpace(line))
	}
	if err != nil {
		t.Fatalf("the host says %q: %v", line, err)
	}
	return host, stdin, pid
}

// waitPidfd waits until the process behind the descriptor has ended; its number may be anybody's by then.
func waitPidfd(t *testing.T, pidfd int) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(bound.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if err != nil || n != 1 {
			t.Fatalf("the plugin outlived its host by %v: %v", bound, err)
		}
		return
	}
}

func playOnLinux(role string) {
	switch role {
	case "host":
		playHost()
	case "concealed":
		playConcealed()
	case "descriptors":
		names, err := os.ReadDir("/proc/self/fd")
		for _, name := range names {
			if to, err := os.Readlink("/proc/self/fd/" + name.Name()); err == nil && !ofTheRuntime(to) {
				fmt.Fprintln(os.Stderr, name.Name())
			}
		}
		fmt.Fprintln(os.Stderr, "that is all:", err)
	}
}

// ofTheRuntime tells what the process opened itself: its poller, its CPU limit, and the directory that was just read.
func ofTheRuntime(link string) bool {
	return strings.HasPrefix(link, "anon_inode:") || strings.HasPrefix(link, "/sys/fs/cgroup/") || strings.HasPrefix(link, "/proc/")
}

func TestAPluginGetsThreeDescriptorsAndNoneOfTheHosts(t *testing.T) {
	want := []string{"0", "1", "2"}
	for _, fd := range namesIn(t, "/proc/self/fd") {
		n, err := strconv.Atoi(fd)
		if err != nil {
			t.Fatal(err)
		}
		// What whoever started the tests left open for every descendant is not the host's to close.
		if flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 && n > 2 {
			want = append(want, fd)
		}
	}
	slices.Sort(want)
	p := begun(t, testSpec(t, "descriptors"))
	said(t, p, "that is all")
	if got := p.out.tail.last(100); strings.Join(got, " ") != strings.Join(append(want, "that is all: <nil>"), " ") {
		t.Errorf("it has %s, want %s", got, want)
	}
}

// onThreadOfItsOwn runs f in the background on a thread that ends with it. The main thread never ends: when f would be there, that goroutine
// keeps it until another has begun elsewhere.
func onThreadOfItsOwn(f func()) {
	go func() {
		runtime.LockOSThread() // and not unlocked on the way to the end of f: the thread ends with the goroutine
		if unix.Gettid() != os.Getpid() {
			f()
			return
		}
		defer runtime.UnlockOSThread()
		begun := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(begun)
			f()
		}()
		<-begun
	}()
}

// The kernel sends the parent-death signal when the thread that forked ends; threads come and go in a Go program.
func TestAPluginOutlivesTheThreadThatAskedForIt(t *testing.T) {
	tids, started := make(chan int, 1), make(chan *process, 1)
	spec := testSpec(t, "env")
	img, err := copyImage(t.Context(), spec, shortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	onThreadOfItsOwn(func() {
		p := newProcess(spec.Path, img, newOutput(hclog.NewNullLogger(), nil, time.Now))
		p.env = environment(nil, "/nowhere", spec)
		if err := p.Start(context.Background()); err != nil {
			t.Error(err)
		}
		tids <- unix.Gettid()
		started <- p
	})
	task := fmt.Sprintf("/proc/self/task/%d", <-tids)
	p := <-started
	eventually(t, "the thread ends", func() bool {
		_, err := os.Stat(task)
		return err != nil
	})
	p.stdin.Close()
	said(t, p, "stdin ended: <nil>")
	wait(t, "the process is reaped", p.exited)
	wait(t, "its output ends", p.drained)
	if got := p.exit(); got != "exited with code 0" {
		t.Errorf("it %s", got)
	}
}
