//go:build torture

package main

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// TestTortureEachSyncIsMissedWhenItIsLeftOut proves that the power cuts cut, and that no sync is there in vain: the kernel answers one kind of sync
// with success and does nothing, and then what the sync was for is seen to be lost.
func TestTortureEachSyncIsMissedWhenItIsLeftOut(t *testing.T) {
	plugins := buildPlugins(t)
	for _, c := range []struct {
		without string // syncs of files and folders on whose path this pattern matches
		moment  func(m *machine) (faults []string)
		missed  string
	}{
		{`/state/state\.db-wal$`, batchTaken, "the caller stands at 0"},
		{`/checkpoints/[^/]+/files/`, (*machine).publication, "verify checkpoint"},
		{`/checkpoint\.json$`, (*machine).publication, "checkpoint.json"},
		{`/checkpoints$`, (*machine).publication, "published checkpoint"},
		{`/\.pipeline\.json\.tmp-`, (*machine).pausing, "pipeline.json was"},
		{`/home/data/torture$`, (*machine).pausing, "pipeline.json was"},
		{`/vault/target/.*~`, (*machine).push, "object torture/commit/00000000000000000001"},
		{`/vault/target/torture/commit$`, (*machine).push, "object torture/commit/00000000000000000001"},
		{`/state\.new/`, (*machine).restore, "the live state's state.db had"},
		{`/home/data/torture$`, (*machine).restore, "the live state's state.db had"},
	} {
		t.Run(c.without+" "+c.missed, func(t *testing.T) {
			m := newMachine(t, plugins, quiet())
			m.deafness = deafThread(t)
			m.deafness.to(c.without)
			if faults := strings.Join(c.moment(m), "\n"); !strings.Contains(faults, c.missed) {
				t.Errorf("%q is not among what is missed:\n%s", c.missed, faults)
			}
			if m.deafness.deaf.Load() == 0 {
				t.Error("no such sync was asked for")
			}
		})
	}
}

// TestTortureEveryNameIsSyncedIntoItsFolder holds a first life to what POSIX promises, which is less than a journal gives: a name is durable when its
// folder was synced while it was there.
// CASES A4
func TestTortureEveryNameIsSyncedIntoItsFolder(t *testing.T) {
	m := newMachine(t, buildPlugins(t), quiet())
	m.deafness = deafThread(t)
	m.start("")
	m.eventually("the pipeline has begun", m.begun)
	check(t, pushed(t.Context(), m))
	m.kill()
	m.pluginsGone()
	scratch := []string{"lost+found", "spool", "run", "lock", "state.db-shm", "state.db.base"}
	for _, d := range []*disk{m.home, m.vault} {
		for _, path := range m.deafness.fleeting(t, d.dir, func(name string) bool { return slices.Contains(scratch, name) }) {
			t.Errorf("no sync of its folder has seen %s", path)
		}
	}
}

func batchTaken(m *machine) []string { return m.broken(promise{ask: ingest, state: "running"}) }

// publication dies when a checkpoint has just been published.
func (m *machine) publication() []string { return m.dieAsking("publish.synced", published) }

// push dies when a commit has just been stored.
func (m *machine) push() []string { return m.dieAsking("push.commit.done", pushed) }

func (m *machine) pausing() []string {
	return m.cutAfter(func(ctx context.Context, m *machine) error { return m.api.Pause(ctx, pipe) })
}

// restore dies when a restored state has just got its place. What it restores was made with every sync.
func (m *machine) restore() []string {
	hears := m.deafness.to("")
	m.start("")
	m.eventually("the pipeline has begun", m.begun)
	check(m.t, pushed(m.t.Context(), m))
	m.stop()
	m.pluginsGone()
	m.burn()
	m.deafness.to(hears)
	return m.dieAt("start.swapped")
}

// dieAsking is a life that ends at a point that a question leads to.
func (m *machine) dieAsking(point string, ask func(context.Context, *machine) error) []string {
	m.t.Helper()
	m.start(point + ":1")
	m.eventually("the pipeline has begun", m.begun)
	ctx, cancel := context.WithCancel(m.t.Context())
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_ = ask(ctx, m) // nobody is left to answer
	}()
	if !m.ended(patience) || !m.host.killedItself() {
		m.t.Fatalf("the host did not come to %s", point)
	}
	m.host = nil
	cancel()
	<-asked
	return m.cutPower(point)
}
