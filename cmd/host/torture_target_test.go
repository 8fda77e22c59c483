//go:build torture

package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTortureAFailingTarget runs against a target of whose calls 30% fail: half of them never happen, of the others only the reply is lost.
// Every fourth host begins on an empty data folder, so restores have to get through too.
func TestTortureAFailingTarget(t *testing.T) {
	t.Parallel()
	const hosts = 12
	plugins := buildPlugins(t)
	chance := draw(t)
	s := settings{file: 20_000, http: 20_000}
	want := undisturbed(t, plugins, s)

	s.plugin, s.config = "faulty", "percent = 30\n"
	w := newWorld(t, plugins, s)
	observer, seen := observe(t, w.url, w.target)
	end := w.send()
	requests, repeated := int64(0), 0
	for i := range hosts {
		w.upTo(float64(i+1) / hosts)
		if i%4 == 3 {
			w.freshData()
		}
		w.start("")
		w.eventually("the pipeline runs", w.running)
		commits := 1 + chance.IntN(3)
		w.eventually("some pushes", func() bool { return succeeded(w) >= commits })
		for _, job := range w.offsite().Jobs {
			requests += job.Requests
			if job.Attempts > 1 {
				repeated++
			}
		}
		if i%2 == 0 {
			w.stop()
		} else {
			w.kill()
		}
	}
	t.Logf("%d calls to the target; %d jobs had to repeat one", requests, repeated)
	if repeated == 0 {
		t.Error("no call was repeated: the target did not fail")
	}
	end()
	w.start("")
	w.eventually("the pipeline runs", w.running)
	w.finish(want)
	seen()
	t.Logf("failures that status told of: %v", observer.failures)
}

// succeeded are the pushes that the present data folder remembers as good.
func succeeded(w *world) (n int) {
	for _, job := range w.offsite().Jobs {
		if job.State == "succeeded" {
			n++
		}
	}
	return n
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
	w.eventually("status says that there is no space left", func() bool {
		status, err := w.api.Syncs(w.t.Context(), pipe)
		if err != nil || status.PeriodicFailure == nil {
			return false
		}
		told = status.PeriodicFailure.Error
		return strings.Contains(told, "no space left")
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
