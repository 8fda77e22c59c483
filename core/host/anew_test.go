package host

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk/client"
)

// heldByAnEmptyDisk is a host whose target lies on a disk that is not mounted any more; back mounts it.
func heldByAnEmptyDisk(t *testing.T, c conf) (h *liveHost, back func()) {
	t.Helper()
	w := newWorld(t)
	h = w.start(c).up()
	h.insert(0, 5)
	h.checkpoint()
	if !c.object {
		h.push()
		h.stop()
	}
	repository, away := w.path("target", "p"), w.path("away")
	must(t, os.Rename(repository, away))
	if !c.object {
		h = w.start(c).up()
	}
	h.until("it is held", func() bool {
		if c.object && h.CheckpointAndWait(t.Context(), "p") == nil {
			h.insert(5, 6)
		}
		return h.view("p").Targets[0].State == "held"
	})
	return h, func() {
		must(t, os.RemoveAll(repository))
		must(t, os.Rename(away, repository))
	}
}

func TestAHeldTargetIsAskedAnewByWhoeverWantsSomethingOfIt(t *testing.T) {
	for name, row := range map[string]struct {
		conf conf
		asks func(ctx context.Context, h *liveHost) error
	}{
		"a push": {conf{}, func(ctx context.Context, h *liveHost) error {
			_, err := h.SyncCheckpoint(ctx, "p", true)
			return err
		}},
		"a list": {conf{}, func(ctx context.Context, h *liveHost) error {
			_, err := h.RemoteCheckpoints(ctx, "p", "t")
			return err
		}},
		"a verification": {conf{}, func(ctx context.Context, h *liveHost) error {
			_, err := h.Verify(ctx, "p", client.VerifyOptions{})
			return err
		}},
		"a checkpoint on object storage": {conf{object: true}, func(ctx context.Context, h *liveHost) error { return h.CheckpointAndWait(ctx, "p") }},
	} {
		t.Run(name, func(t *testing.T) {
			h, back := heldByAnEmptyDisk(t, row.conf)
			must(t, ignoreAnswer(row.asks(t.Context(), h)))
			equal(t, "nothing was mended", h.view("p").Targets[0].State, "held")
			back()
			must(t, row.asks(t.Context(), h))
			target := h.view("p").Targets[0]
			if target.State != "ready" || target.Reason != "" || target.Committed == nil {
				t.Errorf("%s (%s), committed %+v", target.State, target.Reason, target.Committed)
			}
		})
	}
}

// ignoreAnswer lets pass what the host answers of a target that is held.
func ignoreAnswer(err error) error {
	if err == nil || strings.Contains(err.Error(), "nothing is there now") {
		return nil
	}
	return err
}

func TestATargetThatIsAwayAtTheStartIsNotCalledReady(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	first.insert(0, 5)
	first.checkpoint()
	first.push()
	first.stop()
	away := w.target + ".away"
	must(t, os.Rename(w.target, away))
	h := w.start(conf{}, quick).up()
	h.until("it is unavailable", func() bool { return h.view("p").Targets[0].State == "unavailable" })
	contains(t, h.view("p").Targets[0].Reason, `target "t"`, w.target)
	equal(t, "the status of syncs", h.syncs().Targets[0].State, "unavailable")
	must(t, os.Rename(away, w.target))
	h.until("it is ready", func() bool { return h.view("p").Targets[0].State == "ready" })
	equal(t, "reason", h.view("p").Targets[0].Reason, "")
}
