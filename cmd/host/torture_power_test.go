//go:build torture

package main

import (
	"slices"
	"testing"
)

// TestTorturePowerCuts cuts the power of a machine at each named point of its durable changes: what was written and not synced is gone
// from both its disks. What was promised by then is there after each cut, byte for byte, and at the end every record, once.
// CASES A4, A23
func TestTorturePowerCuts(t *testing.T) {
	t.Parallel()
	plugins := buildPlugins(t)
	s := settings{file: 5000, http: 5000, keep: 3}
	want := undisturbed(t, plugins, s)
	m := newMachine(t, plugins, s)
	_, seen := observe(t, m.url, m.target)
	end := m.send()
	m.commitOnce()
	points := append(pointsOfALife(), pointsOfARestore()...)
	for i, point := range points {
		m.upTo(float64(i+1) / float64(len(points)+1))
		m.cutAt(point)
	}
	end()
	m.start("")
	m.finish(want)
	m.cairn("remote", "verify", pipe, "--deep", "--config", m.configFile())
	seen()
}

// commitOnce lets a first life come to its first commit, so that there is something to restore.
func (m *machine) commitOnce() {
	m.t.Helper()
	m.upTo(0.01)
	m.start("")
	m.eventually("a first commit", func() bool { return m.offsite().Committed != nil })
	m.stop()
}

// cutAt is one life: it ends at that point, and the power with it.
func (m *machine) cutAt(point string) {
	m.t.Helper()
	if slices.Contains(pointsOfARestore(), point) {
		m.burn()
	}
	for _, fault := range m.dieAt(point) {
		m.t.Errorf("power cut at %s: %s", point, fault)
	}
}

// dieAt is a life that ends when it comes to a point for the first time, and the power with it. It says what is lost.
func (m *machine) dieAt(point string) (faults []string) {
	m.t.Helper()
	m.start(point + ":1")
	if !m.ended(patience) || !m.host.killedItself() {
		m.t.Fatalf("the host did not come to %s", point)
	}
	m.host = nil
	return m.cutPower(point)
}
