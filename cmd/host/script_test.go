package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cairnsync/cairn/internal/testaddr"
)

// The test binary plays cairn and a plugin that fails: scripts and the torture run them as processes of their own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"cairn": playCairn, faultyPlugin: playFaulty})
}

// TestScripts runs testdata/script: cairn as a person uses it, with the real file plugin.
func TestScripts(t *testing.T) {
	plugins := buildPlugins(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			address, err := testaddr.Reserve(env.Defer)
			if err != nil {
				return err
			}
			second, err := testaddr.Reserve(env.Defer)
			if err != nil {
				return err
			}
			env.Setenv("CAIRN_SECOND", second)
			faulty, err := exec.LookPath(faultyPlugin)
			if err != nil {
				return err
			}
			env.Setenv("FAULTY", faulty)
			env.Setenv("PLUGINS", plugins)
			env.Setenv("CAIRN_ADDRESS", address)
			examples, err := filepath.Abs("../../examples")
			env.Setenv("EXAMPLES", examples)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "until": until, "flip": flip, "drop": drop},
	})
}

// buildPlugins puts first-party plugins into a folder that only this user may write: the file plugin, and those that are named.
func buildPlugins(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append(names, "file") {
		file := filepath.Join(dir, "cairn-plugin-"+name)
		out, err := exec.CommandContext(t.Context(), "go", "build", "-o", file, "github.com/cairnsync/cairn/plugins/"+name).CombinedOutput()
		if err != nil {
			t.Fatalf("build plugin %s: %v\n%s", name, err, out)
		}
		if err := os.Chmod(file, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// exits runs a command and demands its exit code: exits 3 cairn config check …
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s exits with %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// until repeats a command until its output matches: until 'step 20' cairn status. It is bounded by a minute.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND [ARG…]")
	}
	want := regexp.MustCompile("(?m)" + args[0])
	deadline := time.After(time.Minute)
	for {
		err := ts.Exec(args[1], args[2:]...)
		out := ts.ReadFile("stdout") + ts.ReadFile("stderr")
		if err == nil && want.MatchString(out) {
			return
		}
		select {
		case <-deadline:
			ts.Fatalf("%s never matched %q; last: %v\n%s", strings.Join(args[1:], " "), args[0], err, out)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// flip changes one byte in the middle of the one file that a pattern names: flip PATTERN.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	file := only(ts, neg, args)
	content, err := os.ReadFile(file)
	ts.Check(err)
	content[len(content)/2] ^= 0x10
	ts.Check(os.Chmod(file, 0o600))
	ts.Check(os.WriteFile(file, content, 0o600))
}

// drop deletes the one file that a pattern names: drop PATTERN.
func drop(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(os.Remove(only(ts, neg, args)))
}

// only is the one file that the only argument names.
func only(ts *testscript.TestScript, neg bool, args []string) string {
	if neg || len(args) != 1 {
		ts.Fatalf("name one file, or a pattern")
	}
	found, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("%s names %v", args[0], found)
	}
	return found[0]
}

// lifelineVar makes cairn die with the test that started it: when its standard input ends.
const lifelineVar = "CAIRN_LIFELINE"

// playCairn is main, with a crash or a stall where the environment asks for one.
func playCairn() {
	if os.Getenv(lifelineVar) != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // any end means that the test is gone
			os.Exit(1)
		}()
	}
	hook := pointOf("CAIRN_CRASH_AT", crash)
	if hook == nil {
		hook = pointOf("CAIRN_STALL_AT", stall)
	}
	os.Exit(mainWith(hook))
}

// pointOf is a hook at the point that a variable names, the nth time that it is passed: "publish.renamed:3". It is how tests hit windows that
// are microseconds wide. Nil when the variable names none.
func pointOf(variable string, do func()) func(string) {
	setting := os.Getenv(variable)
	name, count, _ := strings.Cut(setting, ":")
	if name == "" {
		return nil
	}
	nth, err := strconv.Atoi(count)
	if err != nil {
		panic(fmt.Sprintf("%s=%s: %v", variable, setting, err))
	}
	return atPoint(name, nth, do)
}
