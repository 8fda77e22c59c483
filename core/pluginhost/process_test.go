package pluginhost

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// begun starts a role without go-plugin and sees to its end.
func begun(t *testing.T, spec Spec) *process {
	t.Helper()
	img, err := copyImage(t.Context(), spec, shortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	p := newProcess(spec.Path, img, newOutput(hclog.NewNullLogger(), nil, time.Now))
	p.env = environment(nil, "/nowhere", spec)
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(context.Background()); err != nil {
			t.Error(err)
		}
		wait(t, "the killed process is reaped", p.exited)
		wait(t, "its output ends", p.drained)
	})
	return p
}

// said waits for a line that begins with text and answers the rest of it.
func said(t *testing.T, p *process, text string) (rest string) {
	t.Helper()
	eventually(t, "the process says "+text, func() bool {
		for _, line := range p.out.tail.last(1000) {
			var ok bool
			if rest, ok = strings.CutPrefix(line, text); ok {
				return true
			}
		}
		return false
	})
	return rest
}

func TestAPluginGetsTheProtocolTheOperatorsEnvironmentAndNothingOfTheHosts(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "of the host")
	spec := testSpec(t, "env")
	spec.Env["HTTPS_PROXY"] = "http://proxy:3128"
	p := begun(t, spec)
	said(t, p, "arguments:")
	want := []string{roleVar + "=env", "GORACE=atexit_sleep_ms=0", "HTTPS_PROXY=http://proxy:3128", "PLUGIN_UNIX_SOCKET_DIR=/nowhere", "TMPDIR=/nowhere", "arguments: 0"}
	if got := p.out.tail.last(100); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("the environment is %q", got)
	}
}

func TestTheEndOfStdinTellsAPluginThatItsHostIsGone(t *testing.T) {
	p := begun(t, testSpec(t, "env"))
	said(t, p, "PLUGIN_UNIX_SOCKET_DIR")
	p.stdin.Close()
	said(t, p, "stdin ended: <nil>")
	wait(t, "the process ends by itself", p.exited)
	if got := p.exit(); got != "exited with code 0" {
		t.Errorf("it %s", got)
	}
}

func TestAStoppedProcessThatIgnoresSIGTERMIsKilled(t *testing.T) {
	p := begun(t, testSpec(t, "deaf"))
	said(t, p, "deaf")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGSTOP, syscall.SIGKILL} {
		if err := p.signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, "the process is reaped", p.exited)
	if got := p.exit(); got != "was ended by signal 9 (killed)" {
		t.Errorf("it %s", got)
	}
}

// Its own group is empty then: ESRCH of that one must not pass for its end.
func TestAProcessThatWentOverToTheHostsGroupIsKilledAndTheHostIsNot(t *testing.T) {
	p := begun(t, testSpec(t, "deserter"))
	said(t, p, "deaf")
	if group, err := syscall.Getpgid(p.number()); err != nil || group != syscall.Getpgrp() {
		t.Fatalf("it is in group %d, this test in %d: %v", group, syscall.Getpgrp(), err)
	}
	if err := errors.Join(p.signal(syscall.SIGTERM), p.Kill(t.Context())); err != nil {
		t.Fatal(err)
	}
	wait(t, "the process is reaped", p.exited)
}

func TestAfterAProcessIsReapedNobodyIsSignalled(t *testing.T) {
	p := begun(t, testSpec(t, "exit7"))
	wait(t, "the process ends", p.exited)
	p.mu.Lock()
	p.pid = syscall.Getpgrp() // as if the kernel had given the number to another: this very test would be killed
	p.mu.Unlock()
	if err := errors.Join(p.signal(syscall.SIGTERM), p.Kill(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestAKillBeforeTheStartIsNotLost(t *testing.T) {
	spec := testSpec(t, "deaf")
	img, err := copyImage(t.Context(), spec, shortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	p := newProcess(spec.Path, img, newOutput(hclog.NewNullLogger(), nil, time.Now))
	p.env = environment(nil, "/nowhere", spec)
	if err := errors.Join(p.Kill(t.Context()), p.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	wait(t, "the process is reaped", p.exited)
	wait(t, "its output ends", p.drained)
}

func TestAChildInTheGroupDiesWithItsParent(t *testing.T) {
	p, childLives := begunWithChild(t, "")
	wait(t, "the parent is reaped", p.exited)
	wait(t, "nobody holds stderr any more", p.drained)
	eventually(t, "the child ends", func() bool { return !childLives() })
}

func TestAChildThatLeftTheGroupAndHoldsStderrDelaysNobody(t *testing.T) {
	p, childLives := begunWithChild(t, "1")
	wait(t, "the parent is reaped", p.exited)
	wait(t, "reading its output is given up", p.drained)
	if !childLives() { // it would have slept for two minutes
		t.Error("the child was waited for")
	}
	endChild(t, p)
}

// begunWithChild starts a process that leaves a child and answers a way to ask whether the child lives, that is, holds a lock. Its
// number would not do: it may belong to a zombie that nobody reaps.
func begunWithChild(t *testing.T, setsid string) (p *process, lives func() bool) {
	t.Helper()
	spec := testSpec(t, "parent")
	name := planted(t, "lock", "", 0o600)
	spec.Env["SETSID"], spec.Env["LOCK"] = setsid, name
	p = begun(t, spec)
	said(t, p, "child ")
	return p, func() bool {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return !tryLock(f)
	}
}

// endChild ends the child that left; its number is fresh, for the child still sleeps.
func endChild(t *testing.T, p *process) {
	t.Helper()
	var pid int
	for _, c := range said(t, p, "child ") {
		pid = 10*pid + int(c-'0')
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

func TestEachThingThatCannotBeExecutedHasItsOwnMessage(t *testing.T) {
	aarch64 := "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00\xb7\x00\x01\x00\x00\x00" + strings.Repeat("\x00", 24) +
		"\x00\x00\x00\x00\x40\x00\x38\x00\x00\x00\x40\x00\x00\x00\x00\x00"
	for _, row := range []struct {
		name, content string
		cause         Cause
		says          string
	}{
		{"built for another machine", aarch64, CauseFormat, "ELF program for aarch64"},
		{"a script whose interpreter is missing", "#!/nowhere/python3 -u\n", CauseInterpreter, "its interpreter /nowhere/python3 does not exist"},
		{"a script with Windows line ends", "#!/bin/sh\r\necho\r\n", CauseInterpreter, "Windows line ends"},
		{"a script without a #! line", "echo hello\n", CauseFormat, "neither a program nor a script with a #! line"},
		{"a Windows program", "MZ\x90\x00", CauseFormat, "is a Windows program"},
		{"empty", "", CauseFormat, "is empty"},
	} {
		t.Run(row.name, func(t *testing.T) {
			spec := Spec{Path: planted(t, "cairn-plugin-x", row.content, 0o700)}
			img, err := copyImage(t.Context(), spec, shortDir(t))
			if err != nil {
				t.Fatal(err)
			}
			p := newProcess(spec.Path, img, newOutput(hclog.NewNullLogger(), nil, time.Now))
			err = p.Start(t.Context())
			if err == nil {
				t.Fatal("it runs")
			}
			if p.ID() != "" {
				t.Errorf("it has the number %s", p.ID())
			}
			wantStartError(t, explainExec(spec.Path, img, false, err), row.cause, row.says)
		})
	}
}

func TestAHostThatMayOpenNoMoreFilesSaysSo(t *testing.T) {
	spec := Spec{Path: planted(t, "cairn-plugin-x", "#!/bin/sh\n", 0o700)}
	img, err := copyImage(t.Context(), spec, shortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	p := newProcess(spec.Path, img, newOutput(hclog.NewNullLogger(), nil, time.Now))
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	none := syscall.Rlimit{Cur: 0, Max: was.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	err = p.Start(t.Context())
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err == nil || p.refused() == nil {
		t.Fatalf("start: %v; it is said to be refused because of %v", err, p.refused())
	}
	wantStartError(t, explainExec(spec.Path, img, false, p.refused()), CauseOther, "may open no more files", "too many open files", "ulimit -n")
	wantStartError(t, explainExec(spec.Path, img, false, syscall.ENFILE), CauseOther, "this machine has no room", "fs.file-max")
}

func TestANoexecFileSystemIsNamedAsTheReason(t *testing.T) {
	img := image{path: "/data/run/abcdefgh/cairn-plugin-x"}
	err := explainExec("/opt/cairn-plugin-x", img, true, syscall.EACCES)
	wantStartError(t, err, CauseNoExec, "/data/run/abcdefgh,", "noexec", "data_dir", "TMPDIR")
}

func TestAnAddressThatIsNotThePluginsOwnIsRefused(t *testing.T) {
	p := &process{image: image{path: "/run/x/cairn-plugin-test"}}
	for address, ok := range map[string]bool{
		"unix /run/x/plugin1": true, "unix /run/y/plugin1": false, "unix /run/x/../y/plugin1": false, "unix plugin1": false, "unix @x": false,
		"tcp 127.0.0.1:1234": true, "tcp [::1]:1234": true,
		"tcp 10.0.0.1:1234": false, "tcp example.com:1": false, "tcp localhost": false, "udp 127.0.0.1:1": false,
	} {
		network, addr, _ := strings.Cut(address, " ")
		if _, _, err := p.PluginToHost(network, addr); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAProcessIsNamedAfterItsPluginNotItsCopy(t *testing.T) {
	p := begun(t, testSpec(t, "deaf"))
	if filepath.Base(p.image.path) != "cairn-plugin-test" || p.Name() == p.image.path {
		t.Errorf("%s runs as %s", p.Name(), p.image.path)
	}
}
