//go:build torture

package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// pointsOfARestoreInPlace are those that `cairn checkpoint restore --in-place` passes, and whether it is carried out when it ends there.
func pointsOfARestoreInPlace() map[string]bool {
	return map[string]bool{
		"inplace.noted:1": false, "fetch.pack.begin:1": false, "fetch.pack.done:1": false, "publish.files-synced:1": false, "publish.manifest-synced:1": false,
		"publish.renamed:1": true, "publish.synced:1": true, "inplace.pulled:1": true, "aside.copied:1": true, "aside.moved:1": true, "aside.moved:2": true,
		"inplace.settled:1": true,
	}
}

// killInPlace ends the restore of a commit in place at a point.
func (k *killedRestore) killInPlace(number uint64, point string) {
	k.t.Helper()
	cmd := exec.CommandContext(k.t.Context(), "cairn", "checkpoint", "restore", pipe, "--config", k.configFile(), "--data-dir", k.data, "--in-place", "--replace-newer",
		"--number", strconv.FormatUint(number, 10))
	cmd.Env = append(os.Environ(), "TMPDIR="+k.temp(), "CAIRN_CRASH_AT="+point)
	said, err := cmd.CombinedOutput()
	if h := (&hostProcess{err: err}); !h.killedItself() {
		k.t.Fatalf("the restore in place was not killed at %s: %v\n%s", point, err, said)
	}
}

// opensWith starts a host, ends it before its circuit has made a step, and demands what the state holds.
func (k *killedRestore) opensWith(want restored, after string) {
	k.t.Helper()
	k.start("start.opened:1")
	if !k.ended(patience) || !k.host.killedItself() {
		k.t.Fatalf("after the kill at %s the host did not come to a state: %v", after, k.host.err)
	}
	k.host = nil
	got, err := tablesIn(k.t.Context(), filepath.Join(k.data, pipe, "state"), []settings{k.cfg})
	check(k.t, err)
	if !maps.Equal(got, want) {
		k.t.Errorf("after the kill at %s a host starts with %v, want %v", after, got, want)
	}
}

// TestTortureKillARestoreInPlace kills `cairn checkpoint restore --in-place` at each of its named points, going back from the newest commit to the first. The next
// host starts from the state as it was, or from exactly that commit; what was there is kept.
// CASES A45, A54
func TestTortureKillARestoreInPlace(t *testing.T) {
	t.Parallel()
	k := newKilledRestore(t)
	first, newest := k.commits[0].Number, k.commits[len(k.commits)-1].Number
	if maps.Equal(k.holds[first], k.holds[newest]) {
		t.Fatal("the first commit holds what the newest holds: nothing can be told apart")
	}
	kept := k.data + ".kept"
	check(t, os.Rename(k.data, kept))
	for point, done := range pointsOfARestoreInPlace() {
		check(t, os.RemoveAll(k.data))
		check(t, os.CopyFS(k.data, os.DirFS(kept)))
		k.killInPlace(first, point)
		want := k.holds[newest]
		if done {
			want = k.holds[first]
		}
		k.opensWith(want, point)
		aside, err := filepath.Glob(filepath.Join(k.data, pipe, "set-aside", "*", "state", "state.db"))
		check(t, err)
		if done != (len(aside) == 1) {
			t.Errorf("after the kill at %s these live states are set aside: %v", point, aside)
		}
	}
}
