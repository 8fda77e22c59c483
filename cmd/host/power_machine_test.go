//go:build torture

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/checkpoint"
)

// machine is a world on two disks of its own: one has the data folder, one the folder of the target. Both lose their power at once.
type machine struct {
	*world

	home, vault *disk
	batch       uint64    // the last one that an asker sent
	committed   string    // the checkpoint that was last told as committed
	deafness    *deafness // nil = the kernel makes every sync
}

func newMachine(t *testing.T, plugins string, s settings) *machine {
	t.Helper()
	shelf := tmpfs(t, "size=512m")
	m := &machine{home: newDisk(t, shelf, "home"), vault: newDisk(t, shelf, "vault")}
	s.target = m.vault.path("target")
	m.world = newWorld(t, plugins, s)
	m.data = m.home.path("data")
	t.Cleanup(m.close) // before the disks are unmounted
	return m
}

// burn takes the data folder away, as a machine that is lost does.
func (m *machine) burn() {
	m.t.Helper()
	m.home.burn()
	m.sender.forget()
}

// ground is what lies on the two disks, by final names.
type ground struct {
	record      string            // pipeline.json
	state       map[string]string // the live state
	checkpoints []string          // published, as their folders are named
	objects     map[string]string // of the target, by key
}

func (m *machine) ground() ground {
	m.t.Helper()
	storage := filepath.Join(m.data, pipe)
	record, _ := os.ReadFile(filepath.Join(storage, "pipeline.json")) // there may be none yet
	entries, _ := os.ReadDir(filepath.Join(storage, "checkpoints"))   // likewise
	g := ground{
		record:  string(record),
		state:   objects(m.t, filepath.Join(storage, "state"), func(name string) bool { return strings.HasSuffix(name, "-shm") }),
		objects: objects(m.t, m.target, func(name string) bool { return strings.Contains(name, "~") }),
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			g.checkpoints = append(g.checkpoints, e.Name())
		}
	}
	return g
}

// cutPower ends both disks after the present host has ended at a point, and says what is lost or damaged
// of what it and its plugin had written.
func (m *machine) cutPower(point string) (faults []string) {
	m.t.Helper()
	m.pluginsGone()
	written := m.ground()
	m.home.cut()
	m.vault.cut()
	return append(lost(point, written, m.ground()), m.damaged()...)
}

// pluginsGone waits for the plugins of a host that was killed: they run from copies in its data folder, or in its temporary one.
func (m *machine) pluginsGone() {
	m.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for m.pluginRuns() {
		select {
		case <-limit.C:
			m.t.Fatal("a plugin outlives its host")
		case <-tick.C:
		}
	}
}

func (m *machine) pluginRuns() bool {
	programs, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is right
	return slices.ContainsFunc(programs, func(exe string) bool {
		program, _ := os.Readlink(exe) // it may have ended
		return strings.HasPrefix(program, m.temp()+"/") || strings.HasPrefix(program, m.data+"/")
	})
}

// lost says what a cut at a point has taken that it must not take. A point is the name of a crash point, or "answered" for the moment after somebody
// was answered; at any other moment a change may be on its way.
func lost(point string, written, left ground) (faults []string) {
	if written.record != left.record {
		faults = append(faults, fmt.Sprintf("pipeline.json was %q and is %q", written.record, left.record))
	}
	for _, id := range written.checkpoints {
		if !slices.Contains(left.checkpoints, id) && publishedBy(point) {
			faults = append(faults, fmt.Sprintf("published checkpoint %s is gone", id))
		}
	}
	for name, content := range written.state {
		if restoredBy(point) && left.state[name] != content {
			faults = append(faults, fmt.Sprintf("the live state's %s had %d bytes and has %d, or others", name, len(content), len(left.state[name])))
		}
	}
	for key, content := range written.objects {
		if got, ok := left.objects[key]; storedBy(point) && (!ok || got != content) {
			faults = append(faults, fmt.Sprintf("object %s had %d bytes and has %d (there: %t), or others", key, len(content), len(got), ok))
		}
	}
	return faults
}

// publishedBy: the publication that comes to this point is done, and no other is on its way.
func publishedBy(point string) bool {
	return point == "answered" || point != "publish.renamed" && !strings.HasPrefix(point, "push.") && point != ""
}

// restoredBy: the restored state has its place, and nobody has opened it yet.
func restoredBy(point string) bool { return point == "start.swapped" }

// storedBy: what the plugin was given is stored, and no Put is on its way.
func storedBy(point string) bool {
	return slices.Contains([]string{"answered", "push.epoch.done", "push.commit.begin", "push.commit.done"}, point)
}

// damaged reads every published checkpoint that is left, to the last byte, and says what is wrong.
func (m *machine) damaged() (faults []string) {
	m.t.Helper()
	storage := filepath.Join(m.data, pipe)
	if _, err := os.Stat(storage); err != nil {
		return nil // nothing was promised yet
	}
	dir, err := checkpoint.OpenDir(storage, checkpoint.Options{Now: time.Now})
	check(m.t, err)
	defer func() { check(m.t, dir.Close()) }()
	all, err := dir.Checkpoints().List(m.t.Context())
	if err != nil {
		return []string{err.Error()}
	}
	for _, found := range all {
		files := filepath.Join(storage, "checkpoints", found.ID.String(), "files")
		if err := checkpoint.Verify(m.t.Context(), files, found); err != nil {
			faults = append(faults, err.Error())
		}
	}
	return faults
}
