package host

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk/client"
)

// again sends the batch of row 0 once more and waits for its commit.
func (r *liveHost) again(patience time.Duration) (status int, got client.Ingested) {
	r.t.Helper()
	status, _, text := r.call("POST", ingress+"?source=me&seq=1&wait=commit&timeout="+patience.String(), `{"id": 0}`)
	must(r.t, json.Unmarshal([]byte(text), &got))
	equal(r.t, "duplicate", got.Duplicate, true)
	return status, got
}

func TestABatchThatIsSentAgainIsNotCalledCommittedOnceItsCommitIsKnownToBeGone(t *testing.T) {
	for name, c := range map[string]conf{"pushed": {}, "committed": {object: true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := w.start(c).up()
			safe := func() {
				h.checkpoint()
				if !c.object {
					h.push()
				}
			}
			_, err := h.Ingest(t.Context(), "p", "rows", "me", 1, "", rows(0, 1))
			must(t, err)
			safe()
			status, got := h.again(testPatience)
			equal(t, "while it is there", status, http.StatusOK)
			equal(t, "waited for", got.Waited, "commit")

			must(t, os.Rename(w.path("target", "p"), w.path("away")))
			h.insert(1, 2)
			if err := h.CheckpointAndWait(t.Context(), "p"); err == nil {
				_, err = h.SyncCheckpoint(t.Context(), "p", true)
				equal(t, "the next push fails", err != nil, true)
			}
			h.until("the host knows", func() bool { return h.view("p").Targets[0].State != "ready" })
			status, got = h.again(time.Millisecond)
			equal(t, "once it is known to be gone", status, http.StatusAccepted)
			equal(t, "waited for", got.Waited, "")
			contains(t, got.WaitError, `target "t"`, "is not there any more")

			must(t, os.RemoveAll(w.path("target", "p")))
			must(t, os.Rename(w.path("away"), w.path("target", "p")))
			must(t, h.Adopt(t.Context(), "p", "t"))
			safe()
			status, got = h.again(testPatience)
			equal(t, "committed anew", status, http.StatusOK)
			equal(t, "waited for", got.Waited, "commit")
		})
	}
}

func TestACommitThatWasSeenToBeGoneIsShownInDoubtUntilAPushIsConfirmed(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{push: "1h"}).up()
	h.insert(0, 1)
	first := h.checkpoint()
	h.push()
	target := func() client.TargetView { return h.view("p").Targets[0] }
	equal(t, "while it is there", target().InDoubt == nil && target().Committed.UUID.String() == first, true)

	mustRemove(t, w.path("target", "p", "commit"))
	h.insert(1, 2)
	second := h.checkpoint()
	_, err := h.SyncCheckpoint(t.Context(), "p", true)
	equal(t, "the next push fails", err != nil, true)
	seen := target()
	equal(t, "nothing is called committed", seen.Committed == nil, true)
	equal(t, "in doubt", seen.InDoubt != nil && seen.InDoubt.UUID.String() == first && seen.InDoubt.Step > 0, true)

	must(t, h.Adopt(t.Context(), "p", "t"))
	h.push()
	equal(t, "once a push is confirmed", target().InDoubt == nil && target().Committed.UUID.String() == second, true)
}

func TestABatchThatIsSentAgainIsNotCalledCommittedWhileItsCommitIsKnownToBeBroken(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{}).up()
	_, err := h.Ingest(t.Context(), "p", "rows", "me", 1, "", rows(0, 1))
	must(t, err)
	h.checkpoint()
	h.push()
	mustRemove(t, w.path("target", "p", "pack"))
	views, err := h.Verify(t.Context(), "p", client.VerifyOptions{})
	must(t, err)
	equal(t, "a problem is found", len(views[0].Problems) > 0, true)
	status, got := h.again(time.Millisecond)
	equal(t, "known to be broken", status, http.StatusAccepted)
	contains(t, got.WaitError, "is known to be broken", "cairn remote repair")
	remote, err := h.RemoteCheckpoints(t.Context(), "p", "")
	must(t, err)
	equal(t, "broken on", strings.Join(remote[0].Broken, " "), "t")

	_, err = h.Repair(t.Context(), "p", "t", false)
	must(t, err)
	status, got = h.again(testPatience)
	equal(t, "repaired", status, http.StatusOK)
	equal(t, "waited for", got.Waited, "commit")
}
