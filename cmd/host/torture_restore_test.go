//go:build torture

package main

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/syncer"
)

// restoreHits is how often a restore ends at each of its named points.
const restoreHits = 2

// killedRestore is a target with a history, and `cairn checkpoint restore` processes that are killed.
type killedRestore struct {
	*world

	commits []syncer.CommitInfo
	holds   map[uint64]restored // by commit, its tables
	to      string
}

// newKilledRestore pushes states of several packs.
func newKilledRestore(t *testing.T) *killedRestore {
	t.Helper()
	s := settings{file: 6000, http: 6000, payload: 400, checkpoint: "300ms", push: "300ms"}
	w := newWorld(t, buildPlugins(t), s)
	k := &killedRestore{world: w, holds: map[uint64]restored{}, to: filepath.Join(w.dir, "restored", "files")}
	end := w.send()
	w.sender.hurry()
	w.start("")
	for part := range 3 {
		before := w.offsite().Committed
		w.feed.upTo(float64(part+1) / 3)
		w.eventually("a commit more", func() bool {
			now := w.offsite().Committed
			return now != nil && (before == nil || now.UUID != before.UUID)
		})
	}
	w.complete()
	end()
	w.cairn("checkpoint", "create", pipe)
	w.cairn("checkpoint", "push", pipe)
	w.stop()
	r := newRestorer(t, w.target)
	var err error
	k.commits, err = r.reader.ListCommits(t.Context())
	check(t, err)
	for _, c := range k.commits {
		k.holds[c.Number], err = r.restore(t.Context(), c.Number, []settings{s})
		check(t, err)
	}
	if len(k.commits) < 3 {
		t.Fatalf("%d commits: too few to mix", len(k.commits))
	}
	return k
}

// restore runs the command. crash is CAIRN_CRASH_AT, or "".
func (k *killedRestore) restore(number uint64, crash string) (said string, err error) {
	cmd := exec.CommandContext(k.t.Context(), "cairn", "checkpoint", "restore", pipe, "--config", k.configFile(), "--data-dir", k.data, "--to", k.to,
		"--number", strconv.FormatUint(number, 10))
	cmd.Env = append(os.Environ(), "TMPDIR="+k.temp(), "CAIRN_CRASH_AT="+crash)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// killAt ends a restore at a point, and demands that the destination is there whole, or not at all.
func (k *killedRestore) killAt(point string, number uint64) {
	k.t.Helper()
	said, err := k.restore(number, point+":1")
	if h := (&hostProcess{err: err}); !h.killedItself() {
		k.t.Fatalf("the restore was not killed at %s: %v\n%s", point, err, said)
	}
	if point == "restore.swapped" {
		k.holdsOnly(number)
		return
	}
	if _, err := os.Lstat(k.to); !errors.Is(err, fs.ErrNotExist) {
		k.t.Errorf("after the kill at %s there is something at the destination (%v)", point, err)
	}
}

// holdsOnly demands that the destination holds what that commit holds, and nothing is left beside it.
func (k *killedRestore) holdsOnly(number uint64) {
	k.t.Helper()
	got, err := tablesIn(k.t.Context(), k.to, []settings{k.cfg})
	check(k.t, err)
	if !maps.Equal(got, k.holds[number]) {
		k.t.Errorf("commit %d was restored with %v, it holds %v", number, got, k.holds[number])
	}
	beside, err := os.ReadDir(filepath.Dir(k.to))
	check(k.t, err)
	if len(beside) != 1 {
		k.t.Errorf("beside the restored folder there is more: %v", beside)
	}
}

// TestTortureKillARestore kills `cairn checkpoint restore` at each of its named points. The destination is whole or not there, and the next restore to the same
// place, of the same commit or of another, is of that commit alone.
// CASES A54
func TestTortureKillARestore(t *testing.T) {
	t.Parallel()
	k := newKilledRestore(t)
	newest := k.commits[len(k.commits)-1].Number
	for _, point := range pointsOfAnOfflineRestore() {
		for hit := range restoreHits {
			first := k.commits[len(k.commits)-1-hit%len(k.commits)].Number // the newest, and older ones
			k.killAt(point, first)
			said, err := k.restore(newest, "")
			if point == "restore.swapped" {
				if err == nil || !strings.Contains(said, "not empty") {
					t.Errorf("a restore over a whole one says %q (%v)", said, err)
				}
				check(t, os.RemoveAll(k.to))
				continue
			}
			if err != nil {
				t.Fatalf("restore after the kill at %s: %v\n%s", point, err, said)
			}
			k.holdsOnly(newest)
			check(t, os.RemoveAll(k.to))
		}
	}
	t.Logf("%d kills of a restore of one of %d commits", len(pointsOfAnOfflineRestore())*restoreHits, len(k.commits))
}
