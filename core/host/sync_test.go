package host

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

func TestSyncStatusSurvivesARestartExactly(t *testing.T) {
	w := newWorld(t)
	more := "target \"u\" {\n plugin = \"file\"\n config {\n path = \"" + w.path("u") + "\"\n create = true\n }\n}\n"
	both := conf{more: more, sync: "sync \"t\" { push_interval = \"100ms\" }\nsync \"u\" {}\n", checkpoint: "1h"}
	first := w.start(both).up()
	first.insert(0, 5)
	pushed := first.checkpoint()
	first.until("the periodic push", func() bool { return first.syncs().Periodic != nil })
	first.push() // returns at once where the periodic push was enough; the request is served all the same
	first.until("the requested push", func() bool { return first.syncs().Success != nil })
	before := first.syncs()
	equal(t, "success", text(before.Success), pushed)
	equal(t, "periodic", text(before.Periodic), pushed) // of the one target that has an interval
	must(t, first.Stop(t.Context(), "p", false))
	first.until("p is stopped", func() bool { return first.view("p").State == "stopped" })
	same(t, "when stopped", first.syncs(), before)
	first.stop()

	second := w.start(both)
	same(t, "after a restart, before a run", second.syncs(), before)
	if second.syncs().Incarnation != nil {
		t.Error("an incarnation before the first run")
	}
	second.begin()
	same(t, "in the new run", second.up().syncs(), before)
	id, err := second.LastSuccessfulCheckpointSync(t.Context(), "p")
	must(t, err)
	equal(t, "last successful sync", id.String(), pushed)
}

func TestAFailedSyncIsRememberedUntilItIsAskedForAgain(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	if _, err := first.LastSuccessfulCheckpointSync(t.Context(), "p"); !errors.Is(err, client.ErrNoneSynced) {
		t.Errorf("got %v", err)
	}
	if _, err := first.SyncCheckpoint(t.Context(), "p", true); code(err) != client.CodeNothingToSync {
		t.Errorf("a sync without a checkpoint: %v", err)
	}
	damagedFormat(w)
	first.insert(0, 5)
	failed := first.checkpoint()
	if _, err := first.SyncCheckpoint(t.Context(), "p", true); err == nil {
		t.Fatal("no error")
	}
	before := first.syncs()
	if before.Failure == nil || before.Failure.UUID.String() != failed || before.Failure.FailedAt.IsZero() || before.Success != nil {
		t.Fatalf("got %+v", before)
	}
	first.stop()

	second := w.start(conf{}).up()
	same(t, "after a restart", second.syncs(), before)
	mustRemove(t, w.path("target", "p"))
	equal(t, "pushed", second.push(), failed)
	if got := second.syncs(); got.Failure != nil || text(got.Success) != failed {
		t.Errorf("got %+v", got)
	}
}

// same compares what sync status says of all targets.
func same(t *testing.T, when string, got, want client.SyncStatus) {
	t.Helper()
	equal(t, when+": success", text(got.Success), text(want.Success))
	equal(t, when+": periodic", text(got.Periodic), text(want.Periodic))
	for _, pair := range [][2]*client.SyncFailure{{got.Failure, want.Failure}, {got.PeriodicFailure, want.PeriodicFailure}} {
		if (pair[0] == nil) != (pair[1] == nil) || pair[0] != nil && *pair[0] != *pair[1] {
			t.Errorf("%s: failure %+v, want %+v", when, pair[0], pair[1])
		}
	}
}

func text(id *uuid.UUID) string {
	if id == nil {
		return "null"
	}
	return id.String()
}

func TestTheTargetsRecordsFillInWhatACrashKeptFromBeingSaved(t *testing.T) {
	id := func(n byte) uuid.UUID { return uuid.UUID{6: 0x70, 15: n} }
	blocks := []config.Sync{{Target: "a", PushInterval: 1}, {Target: "b"}, {Target: "c", PushInterval: 1}}
	pushed := func(n byte) syncer.Status { return syncer.Status{Success: id(n), Periodic: id(n)} }
	fenced := syncer.Status{Condition: syncer.Fenced}
	for _, row := range []struct {
		name              string
		saved             circuit.SyncSummary
		workers           []syncer.Status
		success, periodic uuid.UUID
	}{
		{"nothing anywhere", circuit.SyncSummary{}, nil, uuid.Nil, uuid.Nil},
		{"what is saved stands", circuit.SyncSummary{Success: id(3), Periodic: id(2)}, []syncer.Status{{}, {}, {}}, id(3), id(2)},
		{"what all targets have is newer", circuit.SyncSummary{Success: id(1)}, []syncer.Status{pushed(2), pushed(2), pushed(2)}, id(2), id(2)},
		{"what one target lacks is not safe", circuit.SyncSummary{Success: id(1)}, []syncer.Status{pushed(2), pushed(2), {}}, id(1), uuid.Nil},
		{"periodic does not ask targets without an interval", circuit.SyncSummary{}, []syncer.Status{pushed(2), {}, pushed(2)}, uuid.Nil, id(2)},
		{"a fenced target is not asked", circuit.SyncSummary{}, []syncer.Status{pushed(2), pushed(2), fenced}, id(2), id(2)},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := lastSync(row.saved, blocks, row.workers)
			equal(t, "success", got.Success, row.success)
			equal(t, "periodic", got.Periodic, row.periodic)
		})
	}
}

func TestWhatARestoreHasSeenOnTheTargetIsShownAsCommitted(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	first.insert(0, 5)
	first.checkpoint()
	pushed := first.push()
	first.kill()

	second := w.start(conf{data: "elsewhere", from: "latest", push: "1h"}).up()
	target := second.view("p").Targets[0]
	if target.Committed == nil || target.Committed.UUID.String() != pushed || *target.Behind != 0 {
		t.Fatalf("got %+v", target)
	}
	second.insert(5, 6)
	second.until("it is one step behind", func() bool { return *second.view("p").Targets[0].Behind == 1 })
	if len(target.Jobs) != 0 || second.syncs().Success != nil {
		t.Error("a push is claimed that was not made")
	}
	second.checkpoint()
	second.push() // on top of what was seen
}
