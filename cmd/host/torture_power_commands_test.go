//go:build torture

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/repository"
)

// restoreCommand runs `cairn checkpoint restore` and cuts the power when it has ended. crash is CAIRN_CRASH_AT, or "" for a command that answers.
func (m *machine) restoreCommand(crash string, flags ...string) {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), "cairn", append([]string{"checkpoint", "restore", pipe, "--config", m.configFile(), "--data-dir", m.data}, flags...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+m.temp(), "CAIRN_CRASH_AT="+crash)
	said, err := cmd.CombinedOutput()
	if killed := (&hostProcess{err: err}).killedItself(); crash == "" && err != nil || killed != (crash != "") {
		m.t.Fatalf("cairn checkpoint restore, to crash at %q: %v\n%s", crash, err, said)
	}
	m.pluginsGone()
}

func (m *machine) powerOff() {
	m.home.cut()
	m.vault.cut()
}

// content is every file below a folder.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	return objects(t, dir, func(name string) bool { return name == "lock" || strings.HasSuffix(name, "-shm") })
}

// hold is a life that leaves one commit, of all that the callers were told is taken.
func (m *machine) hold() {
	m.t.Helper()
	m.start("")
	m.eventually("the pipeline runs", m.running)
	check(m.t, pushed(m.t.Context(), m))
	m.stop()
	m.pluginsGone()
}

// restoreToFolder restores the one commit into a folder, cuts the power when that is answered, and says what of it is lost.
func (m *machine) restoreToFolder() (faults []string) {
	m.t.Helper()
	if m.batch == 0 {
		hears := m.hears("")
		m.hold()
		m.hears(hears)
	}
	to := m.home.path("restored/files")
	m.restoreCommand("", "--to", to)
	written := content(m.t, to)
	m.powerOff()
	left := content(m.t, to)
	for name, was := range written {
		if now, ok := left[name]; !ok || now != was {
			faults = append(faults, fmt.Sprintf("the restored %s had %d bytes and has %d (there: %t), or others", name, len(was), len(now), ok))
		}
	}
	if len(written) == 0 {
		m.t.Error("nothing was restored")
	}
	return faults
}

// hears changes what the kernel is deaf to, where it may be.
func (m *machine) hears(pattern string) (before string) {
	if m.deafness == nil {
		return ""
	}
	return m.deafness.to(pattern)
}

// TestTorturePowerIsCutInAndAfterARestore cuts the power when `cairn checkpoint restore` has answered, and at each of its named points. What was answered is
// there, byte for byte; a destination that is there is whole; and the same command again restores it.
// CASES A4, A54
func TestTorturePowerIsCutInAndAfterARestore(t *testing.T) {
	t.Parallel()
	m := newMachine(t, buildPlugins(t), quiet())
	for _, fault := range m.restoreToFolder() {
		t.Error(fault)
	}
	to := m.home.path("restored/files")
	whole := content(t, to)
	for _, point := range pointsOfAnOfflineRestore() {
		check(t, os.RemoveAll(to))
		m.restoreCommand(point+":1", "--to", to)
		m.powerOff()
		if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
			if left := content(t, to); !maps.Equal(left, whole) {
				t.Errorf("after a cut at %s the destination holds %d files, not those of the commit", point, len(left))
			}
			check(t, os.RemoveAll(to))
		}
		for _, fault := range m.restoreToFolder() {
			t.Errorf("after a cut at %s and the command again: %s", point, fault)
		}
	}
}

// TestTorturePowerIsCutInAndAfterARestoreInPlace does the same to one into the pipeline itself: the next host starts, with all that callers were told is taken; what was set
// aside is there.
// CASES A4, A45
func TestTorturePowerIsCutInAndAfterARestoreInPlace(t *testing.T) {
	t.Parallel()
	m := newMachine(t, buildPlugins(t), quiet())
	m.hold()
	m.restoreCommand("", "--in-place")
	aside := filepath.Join(m.data, pipe, "set-aside")
	written := content(t, aside)
	m.powerOff()
	if left := content(t, aside); len(left) == 0 || !maps.Equal(left, written) {
		t.Errorf("of %d files that were set aside %d are left, or others", len(written), len(left))
	}
	if !strings.Contains(m.startsAgain("the answer"), m.committed) {
		t.Errorf("after an answered restore the host starts from %q, not from checkpoint %s", m.view().StartedFrom, m.committed)
	}
	m.stop()
	m.pluginsGone()
	for _, point := range []string{"inplace.noted", "inplace.pulled", "aside.copied", "aside.moved", "inplace.settled"} {
		m.restoreCommand(point+":1", "--in-place")
		m.powerOff()
		m.startsAgain(point)
		m.stop()
		m.pluginsGone()
	}
}

// startsAgain is a life after a cut; it answers what it started from.
func (m *machine) startsAgain(after string) (from string) {
	m.t.Helper()
	m.start("")
	m.eventually("the pipeline runs", m.running)
	if at, err := m.api.Position(m.t.Context(), pipe, "calls", "caller"); err != nil || at != m.batch {
		m.t.Errorf("after a cut at %s the caller stands at %d (%v), want %d", after, at, err, m.batch)
	}
	return m.view().StartedFrom
}

// TestTorturePowerIsCutWhenAStandbyHasItsCopy cuts the power when a standby says that it has a commit. It has it in the next life, whole, though the target is gone.
// CASES A4
func TestTorturePowerIsCutWhenAStandbyHasItsCopy(t *testing.T) {
	t.Parallel()
	m := newMachine(t, buildPlugins(t), quiet())
	m.hold()
	m.burn()
	m.cfg.standby, m.cfg.pull = true, "1h"
	m.rewrite()
	m.start("")
	holds := func() bool {
		s := m.view().Standby
		return s != nil && s.Pulled != nil && s.Pulled.UUID.String() == m.committed
	}
	m.eventually("the standby has the commit", holds)
	m.kill()
	for _, fault := range m.cutPower("answered") {
		t.Error(fault)
	}
	if kept := m.ground().checkpoints; !slices.Contains(kept, m.committed) {
		t.Errorf("the copy of %s is not among %v", m.committed, kept)
	}
	check(t, os.Rename(m.target, m.target+".gone"))
	m.start("")
	m.eventually("the standby knows what it has, without its target", holds)
	m.kill()
}

// sweeping are settings under which every push leaves something to delete.
func sweeping() settings {
	s := quiet()
	s.retention = repository.Retention{MinCount: 1}
	return s
}

// sweep is a life whose host dies when it has just deleted packs, and the power with it. It says what is lost, and what is back.
func (m *machine) sweep() (faults []string) {
	m.t.Helper()
	m.cfg.retention = sweeping().retention
	m.rewrite()
	hears := m.hears("")
	m.hold()
	m.hears(hears)
	m.start("delete.pack.done:1")
	m.eventually("the pipeline runs", m.running)
	for !m.ended(0) {
		_ = pushed(m.t.Context(), m) // the last one has nobody left to answer
	}
	if !m.host.killedItself() {
		m.t.Fatalf("the host ended by itself: %v", m.host.err)
	}
	m.host = nil
	m.pluginsGone()
	written := m.ground()
	m.powerOff()
	for key := range m.ground().objects {
		if _, ok := written.objects[key]; !ok {
			faults = append(faults, fmt.Sprintf("object %s, which was deleted, is back", key))
		}
	}
	return append(faults, m.damaged()...)
}

// TestTorturePowerCutsInUpkeep cuts the power at each named point of retention and sweep. What was deleted stays deleted, whatever is listed is whole, and the next host
// goes on with both.
// CASES A4, A36
func TestTorturePowerCutsInUpkeep(t *testing.T) {
	t.Parallel()
	m := newMachine(t, buildPlugins(t), sweeping())
	for _, fault := range m.sweep() {
		t.Errorf("power cut when packs were deleted: %s", fault)
	}
	for _, point := range pointsOfUpkeep() {
		m.start(point + ":1")
		m.eventually("the pipeline runs", m.running)
		for !m.ended(0) {
			_ = pushed(t.Context(), m) // likewise
		}
		if !m.host.killedItself() {
			t.Fatalf("the host did not come to %s: %v", point, m.host.err)
		}
		m.host = nil
		m.pluginsGone()
		m.powerOff()
		m.cairn("remote", "verify", pipe, "--deep", "--config", m.configFile())
	}
	m.start("")
	m.eventually("the pipeline runs", m.running)
	check(t, pushed(t.Context(), m))
	if newest := m.newestRemote(); newest != m.committed {
		t.Errorf("the newest is %s, told as committed was %s", newest, m.committed)
	}
	m.stop()
}
