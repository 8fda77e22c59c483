package teststore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// installLimit bounds an installation, and the wait for one that another process is at: a cold compilation of fake-gcs-server takes
// five minutes on two idle cores, and a quarter of an hour on busy ones.
const installLimit = 40 * time.Minute

// recipe is how a pinned program gets onto this machine.
type recipe struct {
	name, version string
	takes         string // for the one who waits
	into          func(ctx context.Context, dir string) *exec.Cmd
	prepare       func(dir string) error // before into; nil = nothing
}

// install answers the folder that holds the program, and puts it there when it is missing. Processes that want the same one at the
// same time wait for the first.
func install(t testing.TB, r recipe) string {
	t.Helper()
	dir, err := r.ensure(t.Context(), t.Logf)
	if err != nil {
		t.Fatalf("install %s %s for tests: %v", r.name, r.version, err)
	}
	return dir
}

// cacheDir is where the programs of all users of this package lie.
func cacheDir() (string, error) {
	if dir := os.Getenv("CAIRN_TEST_STORES"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w; name one with CAIRN_TEST_STORES", err)
	}
	return filepath.Join(dir, "cairn-test-stores"), nil
}

func (r recipe) ensure(ctx context.Context, logf func(string, ...any)) (string, error) {
	root, err := cacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, r.name+"-"+r.version)
	if exists(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	lock, err := takeLock(ctx, dir+".lock", func() { logf("%s %s: another process installs it (%s); waiting", r.name, r.version, r.takes) })
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if exists(dir) {
		return dir, nil
	}
	logf("%s %s: installing into %s, once; this takes %s", r.name, r.version, dir, r.takes)
	return dir, r.installAt(ctx, dir)
}

func exists(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

// installAt fills a folder beside dir and renames it, so that dir is whole or missing.
func (r recipe) installAt(ctx context.Context, dir string) error {
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".tmp-"+r.name+"-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }() // after the rename there is nothing of that name, after a fault a leftover does no harm
	if r.prepare != nil {
		if err := r.prepare(temp); err != nil {
			return err
		}
	}
	cmd := r.into(ctx, temp)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	return os.Rename(temp, dir)
}

// takeLock locks a file for this process until it is closed. It tells waiting when another process has it.
func takeLock(ctx context.Context, path string, waiting func()) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for told := false; ; told = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		if !told {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, context.Cause(ctx)), f.Close())
		case <-tick.C:
		}
	}
}
