package teststore

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// shell is a recipe that runs a script in the folder that is to be filled.
func shell(script string) recipe {
	return recipe{
		name: "program", version: "v1", takes: "no time",
		prepare: func(dir string) error { return os.WriteFile(filepath.Join(dir, "prepared"), nil, 0o600) },
		into: func(ctx context.Context, dir string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, "sh", "-c", script)
			cmd.Dir = dir
			return cmd
		},
	}
}

func TestManyWhoWantAProgramInstallItOnce(t *testing.T) {
	root := filepath.Join(t.TempDir(), "stores")
	t.Setenv("CAIRN_TEST_STORES", root)
	count := filepath.Join(t.TempDir(), "count")
	r := shell("test -f prepared && echo x >>" + count + " && touch done")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			dir, err := r.ensure(t.Context(), t.Logf)
			if err != nil {
				t.Error(err)
			} else if _, err := os.Stat(filepath.Join(dir, "done")); err != nil {
				t.Errorf("answered before it was whole: %v", err)
			}
		})
	}
	wg.Wait()
	if times, err := os.ReadFile(count); err != nil || string(times) != "x\n" {
		t.Errorf("installed %q times (%v)", times, err)
	}
}

func TestAnInstallationThatFailsLeavesNothingAndSaysWhatItPrinted(t *testing.T) {
	root := t.TempDir()
	t.Setenv("CAIRN_TEST_STORES", root)
	_, err := shell("touch half; echo no network; exit 3").ensure(t.Context(), t.Logf)
	if err == nil || !strings.Contains(err.Error(), "no network") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v; want what the command printed and how it ended", err)
	}
	left, err := filepath.Glob(filepath.Join(root, "program-v1"))
	temps, _ := filepath.Glob(filepath.Join(root, ".tmp-*")) // the pattern is right
	if err != nil || len(left)+len(temps) > 0 {
		t.Errorf("%v %v are left (%v)", left, temps, err)
	}
	if _, err := shell("true").ensure(t.Context(), t.Logf); err != nil {
		t.Errorf("the next attempt: %v", err)
	}
}

func TestWhoWaitsForAnotherInstallationSaysSoAndEndsWithItsTest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder, err := takeLock(t.Context(), path, func() { t.Error("a free lock makes nobody wait") })
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	ctx, cancel := context.WithCancel(t.Context())
	waited := 0
	lock, err := takeLock(ctx, path, func() { waited++; cancel() })
	if err == nil {
		lock.Close()
		t.Fatal("two have the lock")
	}
	if waited != 1 || !strings.Contains(err.Error(), path) {
		t.Errorf("told %d times; error %v", waited, err)
	}
}
