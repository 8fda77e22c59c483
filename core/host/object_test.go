package host

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk/client"
)

func TestACheckpointOfObjectStorageIsCommittedBeforeItCounts(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{object: true}).up()
	first.insert(0, 9)
	committed := first.rows()
	id := first.checkpoint()
	view := first.view("p")
	remote, err := first.RemoteCheckpoints(t.Context(), "p", "")
	must(t, err)
	equal(t, "committed", remote[len(remote)-1].UUID.String(), id)
	equal(t, "published", view.Checkpoint.UUID.String(), id)
	equal(t, "target holds", view.Targets[0].Committed.UUID.String(), id)
	equal(t, "trigger of its job", view.Targets[0].Jobs[0].Trigger, "checkpoint")
	first.insert(9, 12)
	first.kill()

	// On another machine, and on the same one: the newest commit is what there is, whatever lies in the folder.
	for _, data := range []string{"elsewhere", "data"} {
		next := w.start(conf{data: data, object: true, strict: true})
		if next.view("p").DesiredState == "stopped" {
			next.begin()
		}
		equal(t, "rows from "+data, next.up().rows(), committed)
		contains(t, next.view("p").StartedFrom, id, `target "t"`)
		next.kill()
	}
}

func TestWaitingForACheckpointOfObjectStorageIsWaitingForTheTarget(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{object: true, checkpoint: "100ms"}).up()
	_, err := first.Ingest(t.Context(), "p", "rows", "", 0, "checkpoint", rows(0, 5))
	must(t, err)
	safe := first.rows()
	first.kill()
	second := w.start(conf{data: "elsewhere", object: true, strict: true}).up()
	equal(t, "rows", second.rows(), safe)
}

// A client that repeats its last batch was answered from memory, though the bucket had been put back to an older copy.
//
// CASES A17
func TestABatchThatIsRepeatedToObjectStorageIsLookedForOnTheTarget(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{object: true, checkpoint: "100ms"}).up()
	send := func(seq uint64) (client.Ingested, error) {
		return h.Ingest(t.Context(), "p", "rows", "it", seq, "commit", rows(int(seq)*5, int(seq)*5+5))
	}
	_, err := send(1)
	must(t, err)
	must(t, os.CopyFS(w.path("backup"), os.DirFS(w.target)))
	got, err := send(2)
	must(t, err)
	equal(t, "wait error", got.WaitError, "")
	safe := h.rows()
	must(t, os.RemoveAll(w.path("target", "p")))
	must(t, os.CopyFS(w.path("target", "p"), os.DirFS(w.path("backup", "p"))))

	got, err = send(2)
	must(t, err)
	equal(t, "duplicate", got.Duplicate, true)
	contains(t, got.WaitError, "put back to an earlier state")
	got, err = send(2)
	must(t, err)
	equal(t, "wait error of the third", got.WaitError, "")
	h.kill()
	again := w.start(conf{data: "elsewhere", object: true, strict: true}).up()
	equal(t, "rows", again.rows(), safe)
}

func TestACheckpointThatCannotBeCommittedWasNeverPublished(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{object: true}).up()
	h.insert(0, 5)
	damagedFormat(w)
	err := h.CheckpointAndWait(t.Context(), "p")
	if err == nil || !strings.Contains(err.Error(), "FORMAT.json") {
		t.Fatalf("a checkpoint over a damaged repository: %v", err)
	}
	local, err := h.Checkpoints(t.Context(), "p")
	must(t, err)
	equal(t, "checkpoints in the folder", len(local), 0)
	if v := h.view("p"); v.Checkpoint != nil || v.Targets[0].State != "refused" {
		t.Errorf("got %+v, %+v", v.Checkpoint, v.Targets[0])
	}

	must(t, os.RemoveAll(w.path("target", "p"))) // the operator mends it
	id := h.checkpoint()
	equal(t, "published", h.view("p").Checkpoint.UUID.String(), id)
}

func TestAnOldHostOfObjectStoragePublishesNothingMore(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{object: true}).up()
	first.insert(0, 5)
	before := first.checkpoint()

	second := w.start(conf{data: "elsewhere", object: true, strict: true}).up()
	second.insert(5, 9)
	taken := second.rows()
	second.checkpoint()

	first.insert(50, 55)
	for range 2 {
		err := first.CheckpointAndWait(t.Context(), "p")
		if err == nil || !strings.Contains(err.Error(), "epoch 2 was claimed") {
			t.Fatalf("a checkpoint after the takeover: %v", err)
		}
	}
	equal(t, "published by the old host", first.view("p").Checkpoint.UUID.String(), before)
	equal(t, "state of its target", first.view("p").Targets[0].State, "fenced")
	local, err := first.Checkpoints(t.Context(), "p")
	must(t, err)
	equal(t, "checkpoints in its folder", len(local), 1)
	first.kill()
	second.stop()

	third := w.start(conf{data: "third", object: true, strict: true}).up()
	equal(t, "rows", third.rows(), taken)
}

func TestObjectStorageStartsOnlyFromWhatIsProven(t *testing.T) {
	w := newWorld(t)
	empty := w.start(conf{object: true, strict: true})
	contains(t, empty.failed(), "fail_if_no_checkpoint")
	empty.stop()
	damagedFormat(w)
	unknown := w.start(conf{data: "elsewhere", object: true})
	contains(t, unknown.failed(), "no state to start from", `target "t"`)
}

func TestABatchOfObjectStorageCanWaitForItsCommit(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{object: true, checkpoint: "100ms"}).up()
	got, err := first.Ingest(t.Context(), "p", "rows", "", 0, "commit", rows(0, 5))
	must(t, err)
	equal(t, "waited", got.Waited, "commit")
	if v := first.view("p"); v.Targets[0].Committed.Step < got.Step {
		t.Errorf("step %d is not committed: %+v", got.Step, v)
	}
}

// A wait for what cannot come burned its whole timeout, and the answer did not say why.
func TestABatchDoesNotWaitForAFencedTarget(t *testing.T) {
	for _, kind := range []conf{{object: true, checkpoint: "100ms"}, {checkpoint: "100ms", push: "100ms", from: "latest"}} {
		t.Run(fmt.Sprintf("object storage %v", kind.object), func(t *testing.T) {
			w := newWorld(t)
			first := w.start(kind).up()
			_, err := first.Ingest(t.Context(), "p", "rows", "", 0, "commit", rows(0, 5))
			must(t, err)
			kind.data = "elsewhere"
			second := w.start(kind).up()
			_, err = second.Ingest(t.Context(), "p", "rows", "", 0, "commit", rows(5, 9))
			must(t, err)
			for range 2 { // the first is there when the old host finds out
				status, _, body := first.call(http.MethodPost, ingress+"?wait=commit&timeout=5m", `{"id": 1}`)
				equal(t, "status", status, http.StatusAccepted)
				contains(t, body, `"step":`, `"wait_error":"waiting is of no use: target \"t\"`, "was claimed by host")
			}
		})
	}
}
