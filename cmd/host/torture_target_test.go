//go:build torture

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk/client"
)

// TestTortureAFailingTarget runs against a target of whose calls 30% fail: half of them never happen, of the others only the reply is lost.
// Every fourth host begins on an empty data folder, so restores have to get through too.
// CASES A7, A66
func TestTortureAFailingTarget(t *testing.T) {
	t.Parallel()
	const hosts = 12
	plugins := buildPlugins(t)
	s := settings{file: 20_000, http: 20_000}
	want := undisturbed(t, plugins, s)

	calls := filepath.Join(t.TempDir(), "calls")
	s.plugin, s.config = "faulty", fmt.Sprintf("percent = 30\n    calls = %q", calls)
	w := newWorld(t, plugins, s)
	observer, looked := observe(t, w.url, w.target)
	end := w.send()
	for i := range hosts {
		if i%4 == 3 {
			w.freshData()
		}
		w.start("")
		w.eventually("the pipeline runs", w.running)
		atWork := i%2 == 1 // when it ends
		var seen client.TargetView
		w.eventually("status tells what is there", func() bool { seen = w.offsite(); return seen.State != "" })
		before := seen.Committed
		w.upTo(float64(i+1) / hosts) // not before: all of it may be committed already
		w.eventually("a commit", func() bool {
			seen = w.offsite()
			return seen.Committed != nil && (before == nil || before.UUID != seen.Committed.UUID) && (atWork || *seen.Behind == 0)
		})
		if atWork {
			w.kill()
		} else {
			w.stop()
		}
	}
	end()
	w.start("")
	w.eventually("the pipeline runs", w.running)
	w.finish(want)
	looked()
	made, failed := lines(t, calls, "call:"), lines(t, calls, "fault:")
	t.Logf("%d calls to the target, %d of them failed (%d%%); failed syncs that status told of: %d", made, failed, 100*failed/made, len(observer.failures))
	if failed*5 < made {
		t.Errorf("only %d of %d calls failed", failed, made)
	}
}

// TestTortureAFullTarget fills a small tmpfs with pushes until it is full, makes room, and goes on.
func TestTortureAFullTarget(t *testing.T) {
	t.Parallel()
	plugins := buildPlugins(t)
	s := settings{file: 10_000, http: 10_000, payload: 400} // about 8 MB that do not compress well
	want := undisturbed(t, plugins, s)

	s.target = tmpfs(t, "size=3m")
	w := newWorld(t, plugins, s)
	_, seen := observe(t, w.url, w.target)
	end := w.send()
	w.start("")
	w.upTo(0.1)
	w.eventually("a first commit", func() bool { return w.offsite().Committed != nil })
	w.upTo(1)
	w.sender.hurry()
	full := w.untilFull()
	t.Logf("status: %s", full)

	kept := w.newestRemote()
	if committed := w.offsite().Committed; committed == nil || committed.UUID.String() != kept {
		t.Errorf("on the full target %s is the newest, status says %v", kept, committed)
	}
	w.restoredFiles(kept)
	w.eventually("what a failed put began is removed", func() bool { return len(temporary(t, w.target)) == 0 })

	remount(t, w.target, "size=64m")
	w.eventually("a push succeeds once there is room", func() bool {
		status, err := w.api.Syncs(t.Context(), pipe)
		return err == nil && status.PeriodicFailure == nil && status.Periodic != nil && status.Periodic.String() > kept
	})
	end()
	w.finish(want)
	seen()
}

// untilFull waits until a push has failed for want of room, and answers what status says.
func (w *world) untilFull() (told string) {
	w.t.Helper()
	w.eventually("status says that there is no space left, and what to do", func() bool {
		status, err := w.api.Syncs(w.t.Context(), pipe)
		if err != nil || status.PeriodicFailure == nil {
			return false
		}
		told = status.PeriodicFailure.Error
		return strings.Contains(told, "no space left") && strings.Contains(told, "free space on the file system of the target")
	})
	return told
}

// tmpfs mounts one until the test ends.
func tmpfs(t *testing.T, options string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tmpfs")
	check(t, err)
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Fatalf("mount a tmpfs: %v: %s(this test needs root; without it nothing here is really full)", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("unmount %s: %v: %s", dir, err, out)
			return
		}
		check(t, os.Remove(dir))
	})
	return dir
}

func remount(t *testing.T, dir, options string) {
	t.Helper()
	if out, err := exec.Command("mount", "-o", "remount,"+options, dir).CombinedOutput(); err != nil {
		t.Fatalf("remount: %v: %s", err, out)
	}
}

// temporary are the files on the target that bear no object's name.
func temporary(t *testing.T, target string) (names []string) {
	t.Helper()
	check(t, filepath.WalkDir(target, func(path string, _ fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed since
			return nil
		case err == nil && strings.Contains(filepath.Base(path), "~"):
			names = append(names, path)
		}
		return err
	}))
	return names
}
