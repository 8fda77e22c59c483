package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"
)

const (
	// lastWords is how long output is still read once a process has ended: what it wrote is in the pipe already, and only a stranger that
	// inherited the pipe could write more.
	lastWords = time.Second
	// A file is "text busy" while some fork of this host still holds the descriptor it was written through: microseconds, on a loaded
	// machine milliseconds. 8 tries, 10 ms and doubling, are 1.3 s.
	busyTries = 8
	busyPause = 10 * time.Millisecond
)

// process runs one image as go-plugin's runner. It signals nobody but the process it started and the group of its number, and never after
// the leader was reaped: until then the kernel cannot give its number to another.
type process struct {
	name   string // the plugin's file, for people
	image  image
	env    []string
	memory int64 // most bytes of data that each of its processes may map; 0 = no bound
	out    *output

	handshake *io.PipeReader // what go-plugin reads as stdout
	feed      *io.PipeWriter
	stdin     *os.File // our end: its closing tells the plugin that the host is gone

	exited  chan struct{} // closed when the leader is reaped and its group killed
	drained chan struct{} // closed when no more output will come

	mu     sync.Mutex
	pid    int
	words  time.Duration // how long its output is read once it has ended
	doomed bool          // killed, perhaps before it began
	reaped bool
	err    error // why it could not be executed
	state  *os.ProcessState
}

var _ runner.Runner = (*process)(nil)

// newProcess starts nothing. env and memory are set before Start.
func newProcess(name string, img image, out *output) *process {
	p := &process{
		name: name, image: img, out: out, words: lastWords,
		exited: make(chan struct{}), drained: make(chan struct{}),
	}
	p.handshake, p.feed = io.Pipe()
	return p
}

// Start forks and returns when the image has been executed or refused.
func (p *process) Start(ctx context.Context) error {
	pipes, err := openPipes()
	if err != nil {
		return p.refuse(err)
	}
	started := make(chan error, 1)
	go p.live(ctx, pipes, started)
	if err := <-started; err != nil {
		return p.refuse(err)
	}
	return nil
}

// refuse remembers why there is no process, and lets nobody wait for its handshake.
func (p *process) refuse(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	return errors.Join(err, p.feed.Close())
}

// live is the process's own goroutine, from the fork until the leader is reaped. It keeps its OS thread all the time: the kernel
// sends the parent-death signal when the thread that forked ends, not when the host does.
func (p *process) live(ctx context.Context, pipes *stdio, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd, err := p.fork(ctx, pipes)
	pipes.closeTheirs()
	if err != nil {
		pipes.closeOurs()
		started <- err
		return
	}
	p.adopt(cmd.Process.Pid, pipes.stdin)
	if err := confine(cmd.Process.Pid, p.memory); err != nil {
		p.out.log.Warn("plugin process not confined", "plugin", p.name, "error", err)
	}
	var readers sync.WaitGroup
	readers.Go(func() { p.out.stdout(pipes.stdout, p.feed) })
	readers.Go(func() { p.out.stderr(pipes.stderr) })
	started <- nil

	awaitExit(cmd.Process.Pid)
	p.reap(cmd)
	giveUp := time.AfterFunc(p.patience(), func() {
		pipes.closeOurs()
		_ = p.handshake.Close() // always nil; nobody may wait to hand over a handshake now
	})
	readers.Wait()
	giveUp.Stop()
	pipes.closeOurs()
	close(p.drained)
}

func (p *process) fork(ctx context.Context, pipes *stdio) (*exec.Cmd, error) {
	for try := 1; ; try++ {
		cmd := &exec.Cmd{
			Path: p.image.path, Args: []string{filepath.Base(p.name)}, Env: p.env, Dir: filepath.Dir(p.image.path),
			Stdin: pipes.theirStdin, Stdout: pipes.theirStdout, Stderr: pipes.theirStderr,
			SysProcAttr: processAttributes(),
		}
		err := cmd.Start()
		if !errors.Is(err, syscall.ETXTBSY) || try == busyTries {
			return cmd, err
		}
		select {
		case <-ctx.Done():
			return cmd, ctx.Err()
		case <-time.After(busyPause << (try - 1)):
		}
	}
}

func (p *process) adopt(pid int, stdin *os.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid, p.stdin = pid, stdin
	if p.doomed {
		_ = kill(pid, syscall.SIGKILL) // it cannot have been reaped: this goroutine does that later
	}
}

// kill signals the process and the group of its number: a process may leave its group for another, and leave others behind there. ESRCH means
// that nobody is left when both say so.
func kill(pid int, sig syscall.Signal) error {
	var failed error
	for _, whom := range []int{-pid, pid} {
		if err := syscall.Kill(whom, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// reap kills what is left of the group while the leader, a zombie, still holds the group's number, and only then lets the number go.
func (p *process) reap(cmd *exec.Cmd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = syscall.Kill(-p.pid, syscall.SIGKILL) // ESRCH when nobody is left
	_ = cmd.Wait()                            // its error is in ProcessState
	p.state, p.reaped = cmd.ProcessState, true
	p.stdin.Close()
	close(p.exited)
}

// signal reaches the process, wherever it went, and the whole group, a stopped one too when the signal is SIGKILL. Once the process is reaped it does nothing.
func (p *process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doomed = p.doomed || sig == syscall.SIGKILL
	if p.pid == 0 || p.reaped {
		return nil
	}
	if err := kill(p.pid, sig); err != nil {
		return fmt.Errorf("signal plugin process %d and its group: %w", p.pid, err)
	}
	return nil
}

// exit says how the process ended, "" while it lives.
func (p *process) exit() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.reaped:
		return ""
	case p.state == nil:
		return "ended"
	case p.state.Exited():
		return "exited with code " + strconv.Itoa(p.state.ExitCode())
	}
	if ws, ok := p.state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return "was ended by signal " + strconv.Itoa(int(ws.Signal())) + " (" + ws.Signal().String() + ")"
	}
	return p.state.String()
}

// listenFor bounds how long output is read once the process has ended, if it has not ended yet.
func (p *process) listenFor(words time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.words = words
}

func (p *process) patience() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.words
}

// number is the process number, 0 before the start.
func (p *process) number() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

// refused is why the image could not be executed, nil when it was.
func (p *process) refused() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Kill sends SIGKILL to the process and its group and does not wait.
func (p *process) Kill(context.Context) error { return p.signal(syscall.SIGKILL) }

// Wait returns when the process is reaped; go-plugin calls it when both streams it reads have ended.
func (p *process) Wait(ctx context.Context) error {
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stdout carries the handshake line and then nothing until the process's stdout ends.
func (p *process) Stdout() io.ReadCloser { return p.handshake }

// Stderr is empty: go-plugin's log parser takes a number where it expects a string for a reason to panic, so it sees no plugin's line.
func (p *process) Stderr() io.ReadCloser { return io.NopCloser(eof{}) }

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// Name is the plugin's file.
func (p *process) Name() string { return p.name }

// ID is the process number, empty before the start: go-plugin kills nothing then.
func (p *process) ID() string {
	if pid := p.number(); pid != 0 {
		return strconv.Itoa(pid)
	}
	return ""
}

// Diagnose is empty: a StartError says what went wrong.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost accepts a socket in the plugin's private folder, where nobody else's lie, and ports of the loopback.
func (p *process) PluginToHost(network, address string) (string, string, error) {
	if network == "unix" {
		if filepath.Dir(address) != filepath.Dir(p.image.path) {
			return "", "", fmt.Errorf("plugin address %q is not a socket in the plugin's own folder (PLUGIN_UNIX_SOCKET_DIR)", network+":"+address)
		}
		return network, address, nil
	}
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); network == "tcp" && err == nil && ip != nil && ip.IsLoopback() {
		return network, address, nil
	}
	return "", "", fmt.Errorf("plugin address %q is neither a unix socket nor on loopback", network+":"+address)
}

// HostToPlugin changes nothing: both live on one machine.
func (p *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
