//go:build torture || cloud

package main

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// draw is the test's source of chance: $CAIRN_TORTURE_SEED, or a seed of its own, which it prints.
func draw(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if text := os.Getenv("CAIRN_TORTURE_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		check(t, err)
	}
	t.Logf("CAIRN_TORTURE_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func ready(w *world) bool {
	plugin := w.offsite().Plugin
	return plugin != nil && plugin.State == "ready"
}

// pluginPID is the child of a host that this test started, 0 while it has none.
func pluginPID(host int) int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, name := range stats {
		fields := processStat(name)
		if len(fields) > 1 && fields[1] == strconv.Itoa(host) && fields[0] != "Z" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name))) // the pattern says it is a number
			return pid
		}
	}
	return 0
}

// processStat are the fields of /proc/PID/stat from the third on: state, ppid, and so on. Nil when the process is gone.
func processStat(name string) []string {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')'):]), " ")
	return strings.Fields(rest)
}

// hostProcess is one life of a host.
type hostProcess struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how, once done
}

func (h *hostProcess) pid() int { return h.cmd.Process.Pid }

// start begins a life. crash is CAIRN_CRASH_AT, or "".
func (w *world) start(crash string) {
	w.t.Helper()
	w.startWith("CAIRN_CRASH_AT=" + crash)
}

// startWith begins a life with more variables in its environment.
func (w *world) startWith(env ...string) {
	w.t.Helper()
	check(w.t, emptied(w.temp()))
	cmd := exec.Command("cairn", "run", "--config", w.configFile(), "--data-dir", w.data)
	cmd.Env = append(append(os.Environ(), "TMPDIR="+w.temp(), lifelineVar+"=1"), env...)
	cmd.Stdout, cmd.Stderr = w.log, w.log
	_, err := cmd.StdinPipe() // it is the lifeline; Wait closes it
	check(w.t, err)
	check(w.t, cmd.Start())
	h := &hostProcess{cmd: cmd, done: make(chan struct{})}
	go func() {
		h.err = cmd.Wait()
		close(h.done)
	}()
	w.host = h
}

func emptied(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// kill ends the present life as kill -9 does, and returns when the process is gone.
func (w *world) kill() {
	if w.host == nil {
		return
	}
	_ = w.host.cmd.Process.Kill() // it may have ended by itself
	<-w.host.done
	w.host = nil
}

// ended waits for a life to end by itself, and says whether it did so in time.
func (w *world) ended(within time.Duration) bool {
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case <-w.host.done:
		return true
	case <-limit.C:
		return false
	}
}

// killedItself says whether the life that ended did so at its crash point.
func (h *hostProcess) killedItself() bool {
	var exit *exec.ExitError
	if !errors.As(h.err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// stop ends the present life in order.
func (w *world) stop() {
	w.t.Helper()
	check(w.t, w.host.cmd.Process.Signal(os.Interrupt))
	if !w.ended(patience) {
		w.t.Fatalf("the host does not stop")
	}
	if w.host.err != nil {
		w.t.Errorf("the host stopped with %v", w.host.err)
	}
	w.host = nil
}
