//go:build torture

package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cairnsync/cairn/sdk/client"
)

// TestTortureADiskThatFills fills the disk of one thing after the other, on tmpfs mounts that are really full. Each time the pipeline goes on
// with all that can go on, status says what is full and what to do, and when there is room the rest goes on without a restart; a start that
// found no room is started again. Nothing is lost, and nothing counts twice.
func TestTortureADiskThatFills(t *testing.T) {
	t.Parallel()
	plugins := buildPlugins(t)
	s := settings{file: 5000, http: 5000, payload: 400} // about 4 MB that do not compress well
	want := undisturbed(t, plugins, s)
	for name, story := range map[string]func(*testing.T, string, settings, string){
		"of the local storage": fullStorage, "of the spool": fullSpool, "under a start from the target": fullStaging,
	} {
		t.Run(name, func(t *testing.T) { story(t, plugins, s, want) })
	}
}

// fullStorage fills the disk of the data folder, save for a MiB: that is enough for some steps, and for no checkpoint of them.
func fullStorage(t *testing.T, plugins string, s settings, want string) {
	disk := tmpfs(t, "size=64m")
	s.data, s.spool = filepath.Join(disk, "data"), filepath.Join(t.TempDir(), "spool")
	w := newWorld(t, plugins, s)
	_, seen := observe(t, w.url, w.target)
	end := w.send()
	w.start("")
	w.upTo(0.2)
	w.eventually("a first commit", func() bool { return w.offsite().Committed != nil })
	ballast := fill(t, disk, 1<<20)
	w.feed.upTo(1)
	w.sender.hurry()
	var told client.PipelineView
	w.eventually("status says that steps and checkpoints find no room, and what to do", func() bool {
		told = w.view()
		return toldOfSpace(told.StepError, s.data) && toldOfSpace(told.CheckpointError, s.data)
	})
	t.Logf("steps: %s", told.StepError)
	t.Logf("checkpoint: %s", told.CheckpointError)
	if told.State != "running" {
		t.Errorf("the pipeline is %s: %s", told.State, told.Error)
	}
	// A draft of a checkpoint that is given up makes room for a step, so that it does not wait at every moment.
	w.eventually("cairn status says that steps wait", func() bool { return strings.Contains(w.cairn("status", pipe), "steps wait: ") })
	w.eventually("no checkpoint is half-written", func() bool { return len(drafts(t, s.data)) == 0 })

	check(t, os.Remove(ballast))
	w.eventually("steps go on", func() bool { v := w.view(); return v.State == "running" && v.StepError == "" })
	end()
	w.finish(want)
	seen()
}

// fullSpool makes the spool too small for one pack. Steps and checkpoints are none of its business.
func fullSpool(t *testing.T, plugins string, s settings, want string) {
	s.spool = tmpfs(t, "size=1m")
	w := newWorld(t, plugins, s)
	_, seen := observe(t, w.url, w.target)
	end := w.send()
	w.start("")
	w.upTo(0.02)
	w.eventually("a first commit", func() bool { return w.offsite().Committed != nil })
	w.complete()
	w.cairn("checkpoint", "create", pipe)
	var told string
	w.eventually("status says that the spool is full, and what to do", func() bool {
		status, err := w.api.Syncs(t.Context(), pipe)
		if err != nil || status.PeriodicFailure == nil {
			return false
		}
		told = status.PeriodicFailure.Error
		return strings.Contains(told, "the disk of spool_dir is full: free some space, or point host.spool_dir at a larger one")
	})
	t.Logf("push: %s", told)
	view := w.view()
	if view.State != "running" || view.Checkpoint.Step != view.Step || view.CheckpointError != "" {
		t.Errorf("%s at step %d, checkpoint of step %d, %s", view.State, view.Step, view.Checkpoint.Step, view.CheckpointError)
	}
	w.eventually("nothing is left in the spool", func() bool { return len(parts(t, s.spool)) == 0 })

	remount(t, s.spool, "size=64m")
	w.eventually("a push succeeds once there is room", func() bool {
		at := w.offsite()
		return at.Committed != nil && at.Committed.Step == view.Step && at.Failures == 0
	})
	end()
	w.finish(want)
	seen()
}

// fullStaging starts on an empty storage path whose disk is too small for what the target holds.
func fullStaging(t *testing.T, plugins string, s settings, want string) {
	disk := tmpfs(t, "size=2m")
	s.spool = filepath.Join(t.TempDir(), "spool")
	w := newWorld(t, plugins, s)
	end := w.send()
	w.start("")
	w.upTo(1)
	w.complete()
	w.cairn("checkpoint", "create", pipe)
	w.cairn("checkpoint", "push", pipe)
	id := w.newestRemote()
	end()
	w.stop()

	w.freshData()
	check(t, os.Mkdir(w.data, 0o700))
	check(t, os.Symlink(disk, filepath.Join(w.data, pipe))) // the rest of the data folder has room: copies of plugins lie there
	w.start("")
	w.eventually("the start fails", func() bool { return w.view().State == "failed" })
	told := w.view().Error
	t.Logf("start: %s", told)
	if !toldOfSpace(told, w.data) || !strings.Contains(told, "then start the pipeline again") {
		t.Errorf("the pipeline failed with %s", told)
	}
	remount(t, disk, "size=64m")
	w.cairn("pipeline", "start", pipe)
	w.eventually("the pipeline runs", w.running)
	if from := w.view().StartedFrom; !strings.Contains(from, id) {
		t.Errorf("it started from %q, want checkpoint %s", from, id)
	}
	w.finish(want)
}

// toldOfSpace says whether an error names the cause, a place on the disk, and the remedy.
func toldOfSpace(text, place string) bool {
	return strings.Contains(text, "no space left on") && strings.Contains(text, place) && strings.Contains(text, "free some space there")
}

// fill leaves that many bytes free on a file system.
func fill(t *testing.T, dir string, leave int64) (ballast string) {
	t.Helper()
	ballast = filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	check(t, err)
	defer f.Close()
	for {
		var at syscall.Statfs_t
		check(t, syscall.Statfs(dir, &at))
		room := int64(at.Bavail)*at.Bsize - leave
		if room <= 0 {
			return ballast
		}
		if _, err := io.CopyN(f, zeros{}, min(room, 1<<20)); err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// drafts are the folders of checkpoints that are being written.
func drafts(t *testing.T, data string) (found []string) {
	t.Helper()
	check(t, filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed since
			return nil
		case err == nil && strings.HasPrefix(d.Name(), ".tmp-"):
			found = append(found, path)
		}
		return err
	}))
	return found
}

// parts are the spool's files.
func parts(t *testing.T, spool string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(spool, "part-*"))
	check(t, err)
	return found
}
