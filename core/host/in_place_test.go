package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// offline opens pipeline p without a host.
func (w *world) offline(c conf, hook func(string)) *Offline {
	w.t.Helper()
	file := w.path("offline.hcl")
	must(w.t, os.WriteFile(file, []byte(w.hcl(c)), 0o600))
	o, _, err := OpenOffline(w.t.Context(), file, "p", WithCircuit, quiet().Log, LoadOptions{Now: time.Now, Hook: hook})
	must(w.t, err)
	return o
}

func (w *world) inPlace(c conf, req InPlaceRequest) RestoredInPlace {
	w.t.Helper()
	done, err := w.offline(c, nil).RestoreInPlace(w.t.Context(), req)
	must(w.t, err)
	return done
}

// past is a pipeline that has pushed three states and then gone on; no host runs it.
type past struct {
	*world

	commits []client.CheckpointView
	rows    []string // of each
	live    string   // rows of the live state
}

func newPast(t *testing.T) *past {
	t.Helper()
	p := &past{world: newWorld(t)}
	h := p.start(conf{}).up()
	for i := range 3 {
		h.insert(i*5, i*5+5)
		h.checkpoint()
		h.push()
		p.rows = append(p.rows, h.rows())
	}
	var err error
	p.commits, err = h.RemoteCheckpoints(t.Context(), "p", "t")
	must(t, err)
	h.insert(15, 17)
	p.live = h.rows()
	h.kill()
	return p
}

// next starts the pipeline, which was left stopped.
func (p *past) next() *liveHost {
	p.t.Helper()
	h := p.start(conf{})
	h.begin()
	return h.up()
}

func (p *past) number(i int) InPlaceRequest {
	return InPlaceRequest{From: Selection{Number: p.commits[i].Number}, ReplaceNewer: true}
}

// notNow demands that a restore in place is refused in the present state, and that nothing was changed by it.
func (w *world) notNow(c conf, req InPlaceRequest, parts ...string) {
	w.t.Helper()
	_, err := w.offline(c, nil).RestoreInPlace(w.t.Context(), req)
	if _, ok := errors.AsType[*NotNowError](err); !ok {
		w.t.Fatalf("error %v", err)
	}
	contains(w.t, err.Error(), parts...)
	if found, err := filepath.Glob(w.path("*", "p", "set-aside")); len(found) > 0 || err != nil {
		w.t.Errorf("something was set aside: %v (%v)", found, err)
	}
}

// CASES A45: going back is done when it is asked for by name, keeps what was there, and overrules nothing on the target.
func TestAPipelineThatIsRestoredInPlaceStartsFromExactlyThatAndLosesNothing(t *testing.T) {
	p := newPast(t)
	p.notNow(conf{}, InPlaceRequest{From: Selection{Number: p.commits[0].Number}},
		"the live state (step", "local checkpoint", "holds what came after step "+fmt.Sprint(p.commits[0].Step), "--replace-newer")
	done := p.inPlace(conf{}, p.number(0))
	equal(t, "restored", done.UUID, p.commits[0].UUID)
	equal(t, "targets that hold more", len(done.Held), 1)
	equal(t, "newest commit there", done.Held[0].Number, p.commits[2].Number)
	if len(done.Ahead) < 2 {
		t.Errorf("left behind: %v", done.Ahead)
	}

	equal(t, "desired", done.Desired, "stopped")
	h := p.next()
	equal(t, "rows", h.rows(), p.rows[0])
	contains(t, h.view("p").StartedFrom, "newest local checkpoint "+done.UUID.String())
	h.insert(100, 103)
	h.checkpoint()
	if _, err := h.SyncCheckpoint(t.Context(), "p", true); err == nil {
		t.Fatal("a push on top of what the restored state does not hold went through")
	}
	contains(t, h.view("p").Targets[0].Reason, "cairn pipeline adopt")
	must(t, h.Adopt(t.Context(), "p", "t"))
	h.push()
	want := h.rows()
	h.stop()

	elsewhere := p.start(conf{data: "elsewhere", from: "latest", strict: true}).up()
	equal(t, "rows elsewhere", elsewhere.rows(), want)
	elsewhere.stop()
	bringBack(t, p.path("data", "p"), done.SetAside)
	equal(t, "rows that were set aside", p.next().rows(), p.live)
}

// bringBack does what docs/restore.md says: the folder takes the place of what is there now.
func bringBack(t *testing.T, path, aside string) {
	t.Helper()
	for _, name := range []string{"state", "checkpoints", "pipeline.json"} {
		must(t, os.RemoveAll(filepath.Join(path, name)))
		must(t, os.Rename(filepath.Join(aside, name), filepath.Join(path, name)))
	}
}

func TestANewerCommitIsRestoredInPlaceWithoutAWordAndIsGoneOnWith(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	first.insert(0, 5)
	first.checkpoint()
	first.push()
	first.stop()
	other := w.start(conf{data: "elsewhere", from: "latest"}).up()
	other.insert(5, 9)
	other.checkpoint()
	other.push()
	want := other.rows()
	other.stop()

	done := w.inPlace(conf{}, InPlaceRequest{})
	if len(done.Ahead) > 0 || len(done.Held) > 0 || done.SetAside == "" {
		t.Errorf("%+v", done)
	}
	h := w.start(conf{}).up()
	equal(t, "rows", h.rows(), want)
	equal(t, "known to be committed", h.view("p").Targets[0].Committed.UUID, done.UUID)
	h.insert(9, 12)
	h.checkpoint()
	h.push()
}

// A disk that was put back to an earlier state is held; the newest commit restored in place is the way to go on with it.
func TestADataFolderThatWasPutBackGoesOnOnceTheNewestCommitIsRestoredInPlace(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{}).up()
	h.insert(0, 5)
	h.checkpoint()
	h.push()
	h.stop()
	must(t, os.CopyFS(w.path("backup"), os.DirFS(w.path("data", "p"))))
	h = w.start(conf{}).up()
	h.insert(5, 9)
	h.checkpoint()
	h.push()
	want := h.rows()
	h.stop()
	must(t, os.RemoveAll(w.path("data", "p")))
	must(t, os.Rename(w.path("backup"), w.path("data", "p")))

	h = w.start(conf{}).up()
	h.insert(50, 60)
	h.checkpoint()
	if _, err := h.SyncCheckpoint(t.Context(), "p", true); err == nil {
		t.Fatal("a push from a disk that was put back went through")
	}
	h.stop()
	w.notNow(conf{}, InPlaceRequest{}, "--replace-newer")
	done := w.inPlace(conf{}, InPlaceRequest{ReplaceNewer: true})
	equal(t, "targets that hold more", len(done.Held), 0)
	h = w.start(conf{}).up()
	equal(t, "rows", h.rows(), want)
	h.insert(9, 12)
	h.checkpoint()
	h.push()
}

func TestAnEmptyDataFolderTakesTheIdentityOfWhatIsRestoredIntoIt(t *testing.T) {
	w := newWorld(t)
	_, want := seedTarget(w)
	foretold, err := w.offline(conf{data: "elsewhere"}, nil).PreviewInPlace(t.Context(), InPlaceRequest{})
	must(t, err)
	mustBeAbsent(t, w.path("elsewhere", "p"))
	done := w.inPlace(conf{data: "elsewhere"}, InPlaceRequest{})
	if done.SetAside != "" || done.FetchedBytes != foretold.FetchedBytes || done.FetchedBytes == 0 || done.UUID != foretold.UUID || !foretold.Preview {
		t.Errorf("foretold %+v, done %+v", foretold, done)
	}
	h := w.start(conf{data: "elsewhere"}).up() // without start_from_checkpoint
	equal(t, "rows", h.rows(), want)
	h.insert(7, 9)
	h.checkpoint()
	h.push()
}

func TestARestoreInPlaceIsRefusedWhereItCannotBeMeant(t *testing.T) {
	w := newWorld(t)
	seedTarget(w)
	w.notNow(conf{memory: true}, InPlaceRequest{}, `storage "memory"`, "--to")
	w.notNow(conf{object: true}, InPlaceRequest{}, `storage "object"`, "--to")
	w.notNow(conf{data: "fresh", initial: "standby", pull: "1s"}, InPlaceRequest{}, "standby", "pipeline activate")
	running := w.start(conf{data: "elsewhere", from: "latest"}).up()
	w.notNow(conf{data: "elsewhere"}, InPlaceRequest{ReplaceNewer: true}, "must not run", "in use by process")
	running.stop()

	_, err := w.offline(conf{data: "elsewhere", schema: "CREATE TABLE t0 (id INTEGER, text TEXT, more TEXT)"}, nil).RestoreInPlace(t.Context(), InPlaceRequest{})
	if err == nil || !strings.Contains(err.Error(), "another schema") {
		t.Errorf("a checkpoint of another circuit: %v", err)
	}
	must(t, os.RemoveAll(w.path("elsewhere")))
	stranger := w.start(conf{data: "elsewhere", sync: "    sync \"t\" {\n      prefix = \"other\"\n    }\n"}).up()
	stranger.insert(0, 1)
	stranger.stop()
	_, err = w.offline(conf{data: "elsewhere"}, nil).RestoreInPlace(t.Context(), InPlaceRequest{ReplaceNewer: true})
	if _, owned := errors.AsType[*syncer.OwnedError](err); !owned {
		t.Errorf("the repository of another pipeline: %v", err)
	}
	_, err = w.offline(conf{data: "nowhere"}, nil).RestoreInPlace(t.Context(), InPlaceRequest{From: Selection{Number: 99}})
	if !errors.Is(err, ErrNoCommit) {
		t.Errorf("a commit that does not exist: %v", err)
	}
	mustBeAbsent(t, w.path("nowhere", "p", "pipeline.json"))
}

// A checkpoint that is here already is read before anything else is taken out of the way.
func TestADamagedLocalCopyIsPulledAnewBeforeItTakesThePlaceOfTheState(t *testing.T) {
	p := newPast(t)
	truncate(t, p.path("data", "p", "checkpoints", p.commits[2].UUID.String(), "files", "state.db"))
	done := p.inPlace(conf{}, p.number(2))
	if done.FetchedBytes == 0 {
		t.Error("nothing was fetched")
	}
	equal(t, "rows", p.next().rows(), p.rows[2])
}

// CASES A54: wherever a restore in place ends, the next start is from the state before it, or from the checkpoint, and nothing is lost; and the
// same restore again is done.
func TestARestoreInPlaceThatCrashedIsAllOrNothing(t *testing.T) {
	p := newPast(t)
	must(t, os.Rename(p.path("data"), p.path("kept")))
	for _, test := range []struct {
		point string
		hit   int
		done  bool
	}{
		{"inplace.noted", 1, false},
		{"publish.manifest-synced", 1, false},
		{"publish.renamed", 1, true},
		{"inplace.pulled", 1, true},
		{"aside.copied", 1, true},
		{"aside.moved", 1, true},
		{"aside.moved", 2, true},
		{"aside.moved", 3, true},
		{"inplace.settled", 1, true},
	} {
		must(t, os.RemoveAll(p.path("data")))
		must(t, os.CopyFS(p.path("data"), os.DirFS(p.path("kept"))))
		p.crashInPlace(test.point, test.hit)
		want := p.live
		if test.done {
			want = p.rows[0]
		}
		h := p.next()
		equal(t, "rows after a crash at "+test.point, h.rows(), want)
		h.stop()
		p.inPlace(conf{}, p.number(0))
		h = p.start(conf{}).up()
		equal(t, "rows after the restore was done again", h.rows(), p.rows[0])
		h.stop()
	}
}

// crashInPlace ends a restore of the first commit at a point.
func (p *past) crashInPlace(point string, hit int) {
	p.t.Helper()
	var passed atomic.Int64
	o := p.offline(conf{}, func(at string) {
		if at == point && passed.Add(1) == int64(hit) {
			panic("crash at " + at)
		}
	})
	defer func() {
		if recover() == nil {
			p.t.Errorf("no crash at %s", point)
		}
	}()
	_, err := o.RestoreInPlace(p.t.Context(), p.number(0))
	p.t.Errorf("the restore has passed %s: %v", point, err)
}
