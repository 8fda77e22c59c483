package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk/client"
)

// CASES E9
func TestASecondPipelineWithTheSamePrefixIsRefusedAndTheOwnerGoesOn(t *testing.T) {
	w := newWorld(t)
	owner := w.start(conf{}).up()
	owner.insert(0, 5)
	owner.checkpoint()
	owner.push()

	other := w.start(conf{data: "other"}).up()
	other.insert(0, 3)
	other.checkpoint()
	_, err := other.SyncCheckpoint(t.Context(), "p", true)
	if err == nil {
		t.Fatal("another pipeline pushed into the repository")
	}
	contains(t, err.Error(), owner.view("p").ID.String(), other.view("p").ID.String(), "another prefix", `start_from_checkpoint = "latest"`)
	equal(t, "state of the other", other.view("p").Targets[0].State, "refused")

	owner.insert(5, 8)
	id := owner.checkpoint()
	equal(t, "pushed by the owner", owner.push(), id)
}

// A record of a pipeline, without its state, does not pull another pipeline's data in.
func TestAStartDoesNotTakeTheStateOfAnotherPipeline(t *testing.T) {
	w := newWorld(t)
	other := w.start(conf{data: "other"}).up()
	theirs := other.view("p").ID.String()
	other.kill()
	mustRemove(t, w.path("other", "p", "state"))
	seedTarget(w)

	h := w.start(conf{data: "other", from: "latest"})
	h.begin()
	contains(t, h.failed(), theirs, "owned by")
}

// CASES A43
func TestTheOlderOfTwoHostsOnOneRepositoryIsFenced(t *testing.T) {
	w := newWorld(t)
	older := w.start(conf{}).up()
	older.insert(0, 5)
	older.checkpoint()
	older.push()

	newer := w.start(conf{data: "newer", from: "latest", strict: true}).up()
	newer.insert(5, 9)
	newer.checkpoint()
	newer.push()

	older.insert(100, 103)
	mine := older.checkpoint()
	if _, err := older.SyncCheckpoint(t.Context(), "p", true); err == nil || !strings.Contains(err.Error(), "fenced") {
		t.Fatalf("the older host pushed: %v", err)
	}
	target := older.view("p").Targets[0]
	equal(t, "state", target.State, "fenced")
	contains(t, target.Reason, newer.view("p").Incarnation.String(), newer.host.hostname)
	if by := target.TakenBy; by == nil || by.Epoch != 2 || by.Host != newer.host.hostname || *by.Incarnation != *newer.view("p").Incarnation || by.Writer == nil || by.Since == nil {
		t.Errorf("taken by %+v", by)
	}
	local, err := older.Checkpoints(t.Context(), "p")
	must(t, err)
	equal(t, "newest local checkpoint", local[len(local)-1].UUID.String(), mine)
	equal(t, "state of the pipeline", older.view("p").State, "running")

	newer.insert(9, 10)
	newer.checkpoint()
	newer.push()

	// A restart claims nothing over the other's commits: the older host is held, until an operator decides for its state.
	older.stop()
	again := w.start(conf{}).up()
	if _, err := again.SyncCheckpoint(t.Context(), "p", true); err == nil || !strings.Contains(err.Error(), "held") {
		t.Fatalf("after a restart: %v", err)
	}
	must(t, again.Adopt(t.Context(), "p", "t"))
	equal(t, "pushed after adopt", again.push(), mine)
	newer.insert(10, 11)
	newer.checkpoint()
	if _, err := newer.SyncCheckpoint(t.Context(), "p", true); err == nil || !strings.Contains(err.Error(), "fenced") {
		t.Fatalf("now the other is fenced: %v", err)
	}
}

// CASES A43: a repair is a push, and is refused like one.
func TestAFencedHostRepairsNothingAndSaysWhoTookOver(t *testing.T) {
	w := newWorld(t)
	older := w.start(conf{}).up()
	older.insert(0, 5)
	older.checkpoint()
	older.push()
	newer := w.start(conf{data: "newer", from: "latest", strict: true}).up()
	newer.insert(5, 9)
	newer.checkpoint()
	newer.push()
	must(t, os.RemoveAll(filepath.Join(w.target, "p", "pack")))

	_, err := older.Repair(t.Context(), "p", "t", false)
	equal(t, "code of the refusal", code(err), client.CodeFenced)
	contains(t, err.Error(), newer.host.hostname)
}

func TestTwoPipelinesDoNotDisturbEachOther(t *testing.T) {
	w := newWorld(t)
	seed := w.start(conf{}).up()
	seed.insert(0, 3)
	before := seed.rows()
	seed.stop()

	// Now q is beside it, whose schema does not fit the state it has; p goes on.
	q := conf{schema: "CREATE TABLE t0 (id INTEGER, text TEXT); CREATE TABLE other (id INTEGER)"}
	first := w.start(conf{more: pipelineBlock("q", conf{})}).up()
	first.until("q runs", func() bool { return first.view("q").State == "running" })
	first.stop()
	h := w.start(conf{more: pipelineBlock("q", q)}).up()
	h.until("q fails", func() bool { return h.view("q").State == "failed" })
	equal(t, "rows of p", h.rows(), before)
	h.insert(3, 4)
	h.checkpoint()
	h.push()
	if err := h.host.Ready(); err == nil || !strings.Contains(err.Error(), `"q"`) {
		t.Errorf("Ready: %v", err)
	}
}

func TestAChangedSchemaRefusesToStartAndSaysWhatToDo(t *testing.T) {
	w := newWorld(t)
	changed := "CREATE TABLE t0 (id INTEGER, text TEXT, more TEXT)"
	first := w.start(conf{}).up()
	first.insert(0, 3)
	first.checkpoint()
	first.push()
	first.stop()

	live := w.start(conf{schema: changed})
	contains(t, live.failed(), "schema")
	equal(t, "its local checkpoint is shown", live.view("p").Checkpoint != nil, true)
	live.stop()
	mustRemove(t, w.path("data", "p", "state"))
	local := w.start(conf{schema: changed})
	contains(t, local.failed(), "another schema", "restore with the configuration it was taken from", "another storage path and prefix")
	local.stop()
	remote := w.start(conf{data: "elsewhere", schema: changed, from: "latest"})
	contains(t, remote.failed(), "another schema", "restore with the configuration it was taken from")
	mustBeAbsent(t, w.path("elsewhere", "p", "pipeline.json")) // refused before anything was touched or pulled
	remote.stop()

	unchanged := w.start(conf{}).up()
	equal(t, "rows under the old schema", strings.Count(unchanged.rows(), "\n"), 3)
}

func TestADamagedRecordFailsItsPipelineOnly(t *testing.T) {
	w := newWorld(t)
	both := conf{more: pipelineBlock("q", conf{})}
	first := w.start(both).up()
	first.until("q runs", func() bool { return first.view("q").State == "running" })
	first.stop()
	truncate(t, w.path("data", "p", "pipeline.json"))

	h := w.start(both)
	contains(t, h.failed(), "pipeline.json", "put the file back")
	h.until("q runs", func() bool { return h.view("q").State == "running" })
	before := read(t, w.path("data", "p", "pipeline.json"))
	must(t, h.Stop(t.Context(), "p", true))
	equal(t, "the damaged record after a stop", read(t, w.path("data", "p", "pipeline.json")), before)
	equal(t, "code of a pause", code(h.Pause(t.Context(), "p")), client.CodeInvalidTransition)
}
