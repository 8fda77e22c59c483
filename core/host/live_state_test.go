package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/sdk/client"
)

const putThere = "was put there from elsewhere"

// copied puts a copy of one folder in the place of another.
func (w *world) copied(from, to string) {
	w.t.Helper()
	must(w.t, os.RemoveAll(to))
	must(w.t, os.CopyFS(to, os.DirFS(from)))
}

// A live state that is ahead of the newest checkpoint would be started from and overrule what is committed, whatever line it is of.
//
// CASES A45
func TestALiveStateThatWasPutThereFromElsewhereIsNotStartedFrom(t *testing.T) {
	for name, put := range map[string]func(w *world, state string){
		"of a copy of the storage path that has run on": func(w *world, state string) {
			w.copied(w.path("data"), w.path("copy"))
			h := w.start(conf{data: "copy", sync: " "}).up()
			h.insert(50, 60)
			h.stop()
			w.copied(w.path("copy", "p", "state"), state)
		},
		"of another pipeline": func(w *world, state string) {
			h := w.start(conf{data: "other", sync: " "}).up()
			for i := range 20 {
				h.insert(100+i, 101+i)
			}
			h.stop()
			w.copied(w.path("other", "p", "state"), state)
		},
		"of the pipeline itself, as it once was": func(w *world, state string) {
			w.copied(w.path("once"), state)
		},
		"that does not say whose it is": func(_ *world, state string) {
			must(t, os.Remove(filepath.Join(state, checkpoint.OpenedByName)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			state := w.path("data", "p", "state")
			h := w.start(conf{}).up()
			h.insert(0, 3)
			h.stop()
			w.copied(state, w.path("once"))
			h = w.start(conf{}).up()
			h.insert(3, 6)
			h.checkpoint()
			h.push()
			before := h.rows()
			h.stop()

			put(w, state)
			lies := tree(t, state)
			h = w.start(conf{})
			contains(t, h.failed(), putThere, state, "move "+state+" away", "newest checkpoint")
			h.stop()
			equal(t, "what lies there", tree(t, state), lies)
			w.notNow(conf{}, InPlaceRequest{}, "the live state may hold more", putThere, "--replace-newer")

			must(t, os.Rename(state, w.path("away")))
			h = w.start(conf{}).up()
			equal(t, "rows", h.rows(), before)
			h.insert(6, 8)
			h.checkpoint()
			h.push()
		})
	}
}

// What a former primary never pushed lies beside. Moved back once the host has been activated again, it is of another history.
func TestTheStateOfBeforeAStandbyIsNotStartedFrom(t *testing.T) {
	p := newPair(t)
	p.outage.packs.Store(false)
	p.standby.activate(client.ActivateOptions{})
	p.fenced()
	p.primary.insert(1000, 1050) // never pushed
	p.standby.insert(300, 305)
	p.standby.checkpoint()
	p.standby.push()
	must(t, p.primary.Standby(t.Context(), "p"))
	p.primary.pulledStep(p.standby.view("p").Step)
	before := p.standby.rows()
	p.standby.kill()
	p.primary.activate(client.ActivateOptions{})
	p.primary.stop()

	state := p.w.path("data", "p", "state")
	must(t, os.Rename(state, p.w.path("kept")))
	must(t, os.Rename(state+".before-standby", state))
	h := p.w.start(conf{pull: "100ms"})
	contains(t, h.failed(), putThere, "which is not the last run of this pipeline here")
	h.stop()
	must(t, os.RemoveAll(state))
	must(t, os.Rename(p.w.path("kept"), state))
	again := p.w.start(conf{pull: "100ms"}).up()
	equal(t, "rows", again.rows(), before)
}

// A storage path from before it was noted which run opened the live state starts, and is tied to it from then on.
func TestAStoragePathThatDoesNotKnowItsLastRunStarts(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{}).up()
	h.insert(0, 3)
	before := h.rows()
	h.stop()
	mark := w.path("data", "p", "state", checkpoint.OpenedByName)
	must(t, os.Remove(mark))
	dir, err := checkpoint.OpenDir(w.path("data", "p"), checkpoint.Options{Now: time.Now})
	must(t, err)
	record, err := dir.Pipeline()
	must(t, err)
	record.Openers = nil
	must(t, dir.SavePipeline(record))
	must(t, dir.Close())

	h = w.start(conf{}).up()
	equal(t, "rows", h.rows(), before)
	h.stop()
	must(t, os.Remove(mark))
	contains(t, w.start(conf{}).failed(), "does not say which run opened it last")
}
