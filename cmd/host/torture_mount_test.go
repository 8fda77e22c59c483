//go:build torture

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk/client"
)

// attempt runs a command of the program, and answers its exit code and all that it said.
func (w *world) attempt(args ...string) (code int, said string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "cairn", args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+w.temp())
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		w.t.Fatalf("cairn %s: %v", strings.Join(args, " "), err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// refuses demands that a command fails with that code and says why, and what to do.
func (w *world) refuses(code int, args []string, parts ...string) {
	w.t.Helper()
	got, said := w.attempt(args...)
	w.t.Logf("cairn %s: exit code %d: %s", strings.Join(args, " "), got, said)
	if got != code {
		w.t.Errorf("cairn %s exits with %d, want %d", strings.Join(args, " "), got, code)
	}
	for _, part := range parts {
		if !strings.Contains(said, part) {
			w.t.Errorf("cairn %s does not say %q", strings.Join(args, " "), part)
		}
	}
}

// restoresTo demands a restore of the newest checkpoint that is whole.
func (w *world) restoresTo(to, data string) {
	w.t.Helper()
	if code, said := w.attempt("checkpoint", "restore", pipe, "--config", w.configFile(), "--data-dir", data, "--to", to); code != 0 {
		w.t.Errorf("restore to %s: exit code %d: %s", to, code, said)
	}
	if _, err := os.Stat(filepath.Join(to, "state.db")); err != nil {
		w.t.Error(err)
	}
	check(w.t, os.RemoveAll(to))
}

// TestTortureMountsThatCannotBeWrittenOrHoldNoPrograms puts the destination of a restore, the data folder and the folder of a target on mounts that are
// read-only or noexec. What can be done is done; what cannot is refused with the reason and the remedy, and leaves nothing behind.
func TestTortureMountsThatCannotBeWrittenOrHoldNoPrograms(t *testing.T) {
	t.Parallel()
	s := settings{file: 400, http: 400, target: tmpfs(t, "size=64m")}
	plugins := buildPlugins(t)
	want := undisturbed(t, plugins, s)
	w := newWorld(t, plugins, s)
	end := w.send()
	w.start("")
	w.upTo(0.5)
	w.eventually("a first commit", func() bool { return w.offsite().Committed != nil })
	w.readOnlyTarget()
	end()
	w.stop()

	frozen, bare := tmpfs(t, "size=64m"), tmpfs(t, "size=64m,noexec")
	for _, disk := range []string{frozen, bare} {
		check(t, os.Mkdir(filepath.Join(disk, "data"), 0o700))
	}
	remount(t, frozen, "ro")
	config := []string{"--config", w.configFile(), "--data-dir"}
	restore := append([]string{"checkpoint", "restore", pipe}, config...)
	frozenData, bareData := filepath.Join(frozen, "data"), filepath.Join(bare, "data")
	remedy := "name a folder on a file system, and below a folder, that this user may write to"

	w.refuses(1, append(restore, w.data, "--to", filepath.Join(frozen, "files")), "nothing can be written there", "read-only file system", remedy)
	w.restoresTo(filepath.Join(bare, "files"), w.data)
	w.restoresTo(filepath.Join(w.dir, "files"), frozenData) // a machine whose disk has gone read-only can be restored elsewhere
	w.refuses(1, append(restore, frozenData, "--in-place"), "nothing can be written there", "read-only file system", remedy)
	w.refuses(3, append([]string{"run"}, append(config, frozenData)...), frozenData+" lies on a file system that is mounted read-only")
	w.refuses(3, append([]string{"run"}, append(config, filepath.Join(frozen, "not", "yet"))...), "mounted read-only")
	w.refuses(3, append([]string{"run"}, append(config, bareData)...), "which lies on a file system mounted noexec", "choose a directory that may hold programs: data_dir decides where it lies")
	if left, err := os.ReadDir(frozenData); err != nil || len(left) > 0 {
		t.Errorf("on the read-only data folder lies %v (%v)", left, err)
	}
	w.start("")
	w.finish(want)
}

// TestTortureABindMountOfAFolderIsThatFolder names one folder by two mounts: as two targets, as target and data folder, and as target and spool.
func TestTortureABindMountOfAFolderIsThatFolder(t *testing.T) {
	t.Parallel()
	disk := tmpfs(t, "size=64m")
	w := newWorld(t, buildPlugins(t), settings{target: filepath.Join(disk, "target")})
	check(t, os.MkdirAll(w.target, 0o700))
	bound := filepath.Join(w.dir, "bound")
	check(t, os.Mkdir(bound, 0o700))
	if out, err := exec.Command("mount", "--bind", disk, bound).CombinedOutput(); err != nil {
		t.Fatalf("bind mount: %v: %s", err, out)
	}
	t.Cleanup(func() { check(t, exec.Command("umount", bound).Run()) })
	run := []string{"run", "--config", w.configFile(), "--data-dir"}

	w.refuses(3, append(run, filepath.Join(bound, "target", "data")), "the folder of target ", " holds data_dir "+filepath.Join(bound, "target", "data"))
	w.refuses(3, append(run, bound), "the folder of target ", " lies in data_dir "+bound)
	hcl := w.hcl(w.address)
	second := fmt.Sprintf("target \"second\" {\n  plugin = \"file\"\n  config {\n    path = %q\n  }\n}\n", filepath.Join(bound, "target"))
	at := strings.Index(hcl, "sync \"")
	check(t, os.WriteFile(w.configFile(), []byte(second+hcl[:at]+"sync \"second\" {}\n"+hcl[at:]), 0o600))
	w.refuses(3, append(run, w.data), "overlaps", "is, by another name,", filepath.Join(bound, "target", pipe))
	check(t, os.WriteFile(w.configFile(), []byte(strings.Replace(hcl, "host {", fmt.Sprintf("host {\n  spool_dir = %q", filepath.Join(bound, "target")), 1)), 0o600))
	w.refuses(3, append(run, w.data), "is, by another name, the spool folder", "emptied at every start")
}

// readOnlyTarget mounts the target's folder read-only under a running host: pushes wait and say why, restores work, and nothing is told as committed
// that is not.
func (w *world) readOnlyTarget() {
	w.t.Helper()
	kept := w.newestRemote()
	w.eventually("the target can be made read-only", func() bool {
		return exec.Command("mount", "-o", "remount,ro", w.target).Run() == nil // not in the middle of a Put
	})
	var told client.SyncStatus
	w.feed.upTo(0.75)
	w.eventually("status says that the target is read-only, and what to do", func() bool {
		status, err := w.api.Syncs(w.t.Context(), pipe)
		told = status
		return err == nil && status.PeriodicFailure != nil && strings.Contains(status.PeriodicFailure.Error, "is it mounted read-only?")
	})
	w.t.Logf("push: %s", told.PeriodicFailure.Error)
	newest := w.newestRemote()
	if committed := w.offsite().Committed; committed == nil || committed.UUID.String() != newest {
		w.t.Errorf("the read-only target holds %s (before it was %s), status says %v", newest, kept, committed)
	}
	w.restoresTo(filepath.Join(w.dir, "files"), w.data)
	remount(w.t, w.target, "rw")
	w.eventually("a push succeeds once it can be written", func() bool {
		at := w.offsite().Committed
		return at != nil && at.UUID.String() != newest
	})
}

// TestTortureTheFolderOfATargetIsSwappedAndItsTimesAreEdited moves the folder of a file target away under a running host and puts an empty one in its place, then puts
// it back; and sets the times of every object to the far past and the far future. No push into the wrong folder is told as a success, nothing is lost, and
// times of files mean nothing.
// CASES A32, A42
func TestTortureTheFolderOfATargetIsSwappedAndItsTimesAreEdited(t *testing.T) {
	t.Parallel()
	s := settings{file: 2000, http: 2000, retention: repository.Retention{MinCount: 4}}
	plugins := buildPlugins(t)
	want := undisturbed(t, plugins, s)
	w := newWorld(t, plugins, s)
	end := w.send()
	w.start("")
	w.upTo(0.2)
	w.eventually("a first commit", func() bool { return w.offsite().Committed != nil })
	for i, part := range []float64{0.4, 0.6, 0.8} {
		w.swapped(part)
		editTimes(t, w.target, i)
		before := w.offsite().Committed
		w.upTo(part + 0.1)
		w.eventually("a commit after the times were edited", func() bool { now := w.offsite().Committed; return now != nil && now.UUID != before.UUID })
	}
	end()
	w.finish(want)
	w.cairn("remote", "verify", pipe, "--deep", "--config", w.configFile())
}

// swapped is an empty folder in the target's place for a while.
func (w *world) swapped(part float64) {
	w.t.Helper()
	away := w.target + ".away"
	before := w.newestRemote()
	check(w.t, os.Rename(w.target, away))
	check(w.t, os.Mkdir(w.target, 0o755))
	w.upTo(part)
	w.eventually("the host says that the repository is not there", func() bool { state := w.offsite().State; return state == "held" || state == "refused" })
	at := w.offsite()
	w.t.Logf("swapped: %s, committed %v: %s", at.State, at.Committed, at.Reason)
	if at.Committed != nil {
		w.t.Errorf("while the folder is away, status names %v as committed", at.Committed)
	}
	if code, said := w.attempt("checkpoint", "push", pipe, "--address", w.url); code == 0 {
		w.t.Errorf("a push into an empty folder in the target's place is told as a success: %s", said)
	}
	check(w.t, os.RemoveAll(w.target))
	check(w.t, os.Rename(away, w.target))
	if now := w.newestRemote(); now < before {
		w.t.Errorf("the newest was %s and is %s", before, now)
	}
	if w.offsite().State == "held" {
		w.cairn("pipeline", "adopt", pipe, "offsite")
	}
	w.eventually("a push succeeds once the folder is back", func() bool {
		at := w.offsite()
		return at.Committed != nil && at.Committed.UUID.String() > before && at.State == "ready"
	})
}

// editTimes sets the times of every file and folder below dir far off: to the past, to the future, or one after the other the wrong way round.
func editTimes(t *testing.T, dir string, how int) {
	t.Helper()
	at := []time.Time{time.Unix(1, 0), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}[how]
	check(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // retention has removed it meanwhile
		}
		if how == 2 {
			at = at.Add(-time.Hour)
		}
		_ = os.Chtimes(path, at, at) // likewise
		return nil
	}))
}
