package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
)

// failsInPlace demands that a restore in place fails, and answers with what it says.
func (w *world) failsInPlace(c conf, req InPlaceRequest, parts ...string) {
	w.t.Helper()
	_, err := w.offline(c, nil).RestoreInPlace(w.t.Context(), req)
	if err == nil {
		w.t.Fatal("the restore went through")
	}
	contains(w.t, err.Error(), parts...)
}

// record is pipeline.json of p in that data folder.
func (w *world) record(data string) checkpoint.Pipeline {
	w.t.Helper()
	dir, err := checkpoint.OpenDir(w.path(data, "p"), checkpoint.Options{Now: time.Now})
	must(w.t, err)
	defer dir.Close()
	record, err := dir.Pipeline()
	must(w.t, err)
	return record
}

// packsGone takes the packs of the target away until the returned function brings them back.
func (w *world) packsGone() (back func()) {
	w.t.Helper()
	packs := filepath.Join(w.target, "p", "pack")
	must(w.t, os.Rename(packs, packs+".away"))
	return func() { must(w.t, os.Rename(packs+".away", packs)) }
}

// nothingNoted demands that a restore that has failed left nothing for a start to act on.
func (p *past) nothingNoted() {
	p.t.Helper()
	if note := p.record("data").Restoring; note != nil {
		p.t.Errorf("a note stands: %+v", note)
	}
	mustBeAbsent(p.t, p.path("data", "p", "set-aside"))
}

// unchanged demands also that the next start is from the state that stood before.
func (p *past) unchanged() {
	p.t.Helper()
	p.nothingNoted()
	h := p.next()
	equal(p.t, "rows", h.rows(), p.live)
	h.stop()
}

// forge puts a whole checkpoint of another content in the place of a local one, which this machine need not have made.
func (p *past) forge(id uuid.UUID) {
	p.t.Helper()
	dir, err := checkpoint.OpenDir(p.path("data", "p"), checkpoint.Options{Now: time.Now})
	must(p.t, err)
	defer dir.Close()
	pin, err := dir.Checkpoints().Pin(id)
	must(p.t, err)
	m := pin.Manifest()
	pin.Release()
	must(p.t, os.RemoveAll(p.path("data", "p", "checkpoints", id.String())))
	draft, err := dir.Checkpoints().BeginAs(id)
	must(p.t, err)
	must(p.t, os.WriteFile(filepath.Join(draft.Dir(), "state.db"), []byte("of another run"), 0o600))
	_, err = draft.Publish(p.t.Context(), checkpoint.Meta{
		Step: m.Step, Created: m.Created, Incarnation: m.Incarnation, Kind: m.Kind, Fingerprint: m.Fingerprint, History: m.History,
	})
	must(p.t, err)
}

// CASES A54: a start does not act on what a person was told has failed.
func TestARestoreInPlaceThatFailedIsNotCarriedOutThoughItsCheckpointIsHere(t *testing.T) {
	p := newPast(t)
	p.forge(p.commits[2].UUID)
	p.failsInPlace(conf{}, p.number(2), "has other content than the commit", "move the local one away")
	p.unchanged()
}

func TestARestoreInPlaceWhoseFetchFailedLeavesNoWordOfItself(t *testing.T) {
	p := newPast(t)
	back := p.packsGone()
	p.failsInPlace(conf{}, p.number(0), "pack")
	p.unchanged()

	p.failsInPlace(conf{data: "fresh"}, p.number(0), "pack")
	mustBeAbsent(t, p.path("fresh", "p", "pipeline.json"))
	back()
	h := p.start(conf{data: "fresh"}).up()
	equal(t, "rows of a start from nothing", h.rows(), "")
	h.stop()
}

func TestARestoreInPlaceThatCannotBeTakenBackSaysThatItIsUnderWay(t *testing.T) {
	p := newPast(t)
	inTheWay := p.path("data", "p", "set-aside")
	must(t, os.WriteFile(inTheWay, nil, 0o600))
	p.failsInPlace(conf{}, p.number(0), "it is under way", "not a directory", "the next start of a host, or the same command again, does the rest")
	must(t, os.Remove(inTheWay))
	equal(t, "rows", p.next().rows(), p.rows[0])
}

func TestADamagedLocalCopyStaysUntilItsReplacementIsHere(t *testing.T) {
	p := newPast(t)
	id := p.commits[2].UUID.String()
	damaged := p.path("data", "p", "checkpoints", id, "files", "state.db")
	truncate(t, damaged)
	want := read(t, damaged)
	back := p.packsGone()
	p.failsInPlace(conf{}, p.number(2), "pack")
	if read(t, damaged) != want {
		t.Error("the damaged copy was touched")
	}
	back()
	p.nothingNoted()
	done := p.inPlace(conf{}, p.number(2))
	if done.FetchedBytes == 0 {
		t.Error("nothing was fetched")
	}
	if read(t, p.path("data", "p", "checkpoints", "damaged-"+id, "files", "state.db")) != want {
		t.Error("the damaged copy was not kept")
	}
	equal(t, "rows", p.next().rows(), p.rows[2])
}
