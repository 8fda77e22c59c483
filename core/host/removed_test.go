package host

import (
	"os"
	"strings"
	"testing"
)

// Whoever removes the storage path of a running pipeline is told so by every call that meets it, with a way on that works.
func TestAStoragePathThatIsRemovedWhileTheHostRunsIsNamedWithAWayOnThatWorks(t *testing.T) {
	w := newWorld(t)
	c := conf{from: "latest"}
	h := w.start(c).up()
	h.insert(0, 5)
	before := h.rows()
	h.checkpoint()
	h.push()
	folder := w.path("data", "p")
	mustRemove(t, folder)
	for _, row := range []struct {
		name string
		call func() error
	}{
		{"a query", func() error { return h.Query(t.Context(), "p", "SELECT * FROM t0", &strings.Builder{}) }},
		{"a list", func() error {
			_, err := h.Checkpoints(t.Context(), "p")
			return err
		}},
		{"a pause", func() error { return h.Pause(t.Context(), "p") }},
		{"a stop", func() error { return h.Stop(t.Context(), "p", false) }},
		{"a start", func() error {
			h.until("it has stopped", func() bool { return h.view("p").State == "stopped" })
			return h.Start(t.Context(), "p")
		}},
	} {
		err := row.call()
		if err == nil {
			t.Errorf("%s: no error", row.name)
			continue
		}
		contains(t, row.name+": "+err.Error(), folder+" was removed while the host runs on it", "end the host and start it again", `start_from_checkpoint = "latest"`)
	}
	h.stop()
	_, err := os.Stat(folder)
	equal(t, "the folder is made anew by nobody", os.IsNotExist(err), true)

	again := w.start(c).up()
	equal(t, "rows", again.rows(), before)
	equal(t, "target", again.view("p").Targets[0].State, "ready")
	again.insert(5, 9)
	again.checkpoint()
	again.push()
}
