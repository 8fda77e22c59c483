package teststore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cairnsync/cairn/internal/testaddr"
)

const (
	// readyLimit bounds the time from a server's start to its first answer; a loaded machine takes seconds for Azurite.
	readyLimit = time.Minute
	// graceLimit is how long a server may take to end after SIGTERM before it is killed.
	graceLimit = 5 * time.Second
	// startAttempts are made in all: between asking for a free port and the server's listening on it, another process may take it.
	startAttempts = 3
)

// program is a server to start.
type program struct {
	name string
	// command is its command line and what its environment has beside the test's.
	command func(t testing.TB, address string) (env, args []string)
	server  Server // what is known before it runs
	// create makes the bucket; nil = the server has made it.
	create func(ctx context.Context, s Server) error
}

// start runs a server until the test ends, and returns when it answers and has its bucket.
func start(t testing.TB, p program) Server {
	t.Helper()
	var errs []error
	for range startAttempts {
		server, err := p.attempt(t)
		if err == nil {
			return server
		}
		errs = append(errs, err)
	}
	t.Fatalf("start %s: %v", p.name, errors.Join(errs...))
	return Server{}
}

func (p program) attempt(t testing.TB) (Server, error) {
	t.Helper()
	address, err := testaddr.Reserve(t.Cleanup)
	if err != nil {
		return Server{}, err
	}
	process, err := p.run(t, address)
	if err != nil {
		return Server{}, err
	}
	t.Cleanup(func() { process.end(t) })
	ctx, cancel := context.WithTimeout(t.Context(), readyLimit)
	defer cancel()
	s := p.server
	s.Endpoint, s.Bucket = "http://"+address, bucket
	if err := process.untilReady(ctx, s.Endpoint); err != nil {
		return Server{}, err
	}
	if p.create != nil {
		if err := p.create(ctx, s); err != nil {
			return Server{}, fmt.Errorf("create bucket %s: %w", s.Bucket, err)
		}
	}
	return s, nil
}

// process is a server that was started.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string        // file of its output
	done chan struct{} // closed when it has ended
	err  error         // how, once done
}

func (p program) run(t testing.TB, address string) (*process, error) {
	env, args := p.command(t, address)
	out, err := os.Create(filepath.Join(t.TempDir(), p.name+".log"))
	if err != nil {
		return nil, err
	}
	defer out.Close() // the process has its own descriptor
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = filepath.Dir(out.Name()) // for what a server writes beside its data
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = ownGroup()
	run := &process{name: p.name, cmd: cmd, log: out.Name(), done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The death signal of ownGroup comes when the thread that started the process ends, so that thread waits for it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			run.err = cmd.Wait()
			close(run.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return run, nil
}

// untilReady waits until the server answers HTTP, whatever it answers.
func (p *process) untilReady(ctx context.Context, endpoint string) error {
	transport := &http.Transport{DisableKeepAlives: true}
	httpClient := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
		if err != nil {
			return err
		}
		res, err := httpClient.Do(req)
		if err == nil {
			return res.Body.Close()
		}
		select {
		case <-p.done:
			return fmt.Errorf("it ended before it answered: %w", p.err)
		case <-ctx.Done():
			return fmt.Errorf("no answer at %s: %w", endpoint, err)
		case <-tick.C:
		}
	}
}

// output is the end of what the server printed.
func (p *process) output() string {
	const most = 8 << 10
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// end asks the process to end, and kills it when it does not. A test that failed shows its output.
func (p *process) end(t testing.TB) {
	group := -p.cmd.Process.Pid // its own, so this reaches what it started too
	limit := time.NewTimer(graceLimit)
	defer limit.Stop()
	p.signal(t, group, syscall.SIGTERM)
	select {
	case <-p.done:
	case <-limit.C:
		p.signal(t, group, syscall.SIGKILL)
		<-p.done
	}
	if t.Failed() {
		t.Logf("%s printed:\n%s", p.name, p.output())
	}
}

func (p *process) signal(t testing.TB, group int, sig syscall.Signal) {
	select {
	case <-p.done: // the number may be another's by now
		return
	default:
	}
	if err := syscall.Kill(group, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Errorf("end %s: %v", p.name, err)
	}
}
