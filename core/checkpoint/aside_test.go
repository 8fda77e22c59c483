package checkpoint

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

const aside = "20260102T120000Z"

// aboutToRestore is a storage path with live state, three checkpoints of which the newest cannot be read, and the note of a restore of the first.
func aboutToRestore(t *testing.T) (*Dir, *recorder, Manifest) {
	t.Helper()
	d, r := openRecorded(t)
	chosen := publish(t, d.Checkpoints(), 1, map[string]string{"a": "one"})
	publish(t, d.Checkpoints(), 2, map[string]string{"a": "two"})
	damaged := publish(t, d.Checkpoints(), 3, map[string]string{"a": "three"})
	file := filepath.Join(d.store.dir(published, damaged.ID), manifestName)
	if err := errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, []byte("{"), 0o600), os.Mkdir(d.State(), 0o700)); err != nil {
		t.Fatal(err)
	}
	write(t, d.State(), map[string]string{"state.db": "live"})
	if err := d.SavePipeline(Pipeline{ID: uuid.UUID{1}, Desired: Running, Restoring: &Restoring{Checkpoint: chosen.ID, Aside: aside}}); err != nil {
		t.Fatal(err)
	}
	r.take()
	return d, r, chosen
}

// isAlone demands that the checkpoint is all that can start, and that everything else is in the folder beside.
func isAlone(t *testing.T, d *Dir, chosen Manifest) {
	t.Helper()
	if got := steps(list(t, d.Checkpoints())); !slices.Equal(got, []uint64{chosen.Step}) {
		t.Errorf("the steps here are %v", got)
	}
	if there, err := exists(d.State()); there || err != nil {
		t.Errorf("there is live state (%v)", err)
	}
	if got := entries(t, d.AsidePath(aside)); !slices.Equal(got, []string{"checkpoints", "pipeline.json", "state"}) {
		t.Errorf("set aside: %v", got)
	}
	if got := entries(t, filepath.Join(d.AsidePath(aside), "checkpoints")); len(got) != 2 {
		t.Errorf("checkpoints that were set aside: %v", got)
	}
	if text, err := os.ReadFile(filepath.Join(d.AsidePath(aside), "state", "state.db")); string(text) != "live" || err != nil {
		t.Errorf("the live state that was set aside is %q (%v)", text, err)
	}
}

func TestWhatIsSetAsideIsKeptWithWhatItTakesToBringItBack(t *testing.T) {
	d, r, chosen := aboutToRestore(t)
	greatest := d.store.last
	if err := d.KeepOnly(chosen.ID, aside); err != nil {
		t.Fatal(err)
	}
	isAlone(t, d, chosen)
	events := r.take()
	if last := events[len(events)-1]; last != "sync dir p" {
		t.Errorf("the last of %q is not the sync of the storage path", events)
	}
	there := &Dir{path: d.AsidePath(aside), disk: d.disk, store: d.store}
	p, err := there.Pipeline()
	if err != nil || p.ID != (uuid.UUID{1}) || p.Restoring != nil {
		t.Errorf("pipeline.json beside it says %+v (%v)", p, err)
	}
	path := d.path
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, path)
	if next := publish(t, again.Checkpoints(), 2, map[string]string{"a": "another two"}); compareIDs(next.ID, greatest) <= 0 {
		t.Errorf("the next id is %s, one that was set aside is %s", next.ID, greatest)
	}
}

// Whatever step the disk refuses, the next call ends it, and nothing is lost on the way.
func TestSettingAsideThatWasCutOffIsGoneOnWith(t *testing.T) {
	for nth := 0; ; nth++ {
		d, r, chosen := aboutToRestore(t)
		r.fail = failNth(nth)
		err := d.KeepOnly(chosen.ID, aside)
		r.fail = nil
		if err == nil {
			if nth < 8 {
				t.Fatalf("it consists of only %d steps", nth)
			}
			return // past the last step
		}
		if err := d.KeepOnly(chosen.ID, aside); err != nil {
			t.Fatalf("after step %d failed: %v", nth, err)
		}
		isAlone(t, d, chosen)
	}
}

// A run that was killed synced nothing from some step on. What the next one finds renamed may be undone by a power cut until that has synced the folders
// of both names; and before it moves anything it makes sure of the names that it goes by, the note's and the checkpoint's.
func TestWhatAKilledRunOnlyRenamedIsDurableWhenTheNextOneReturns(t *testing.T) {
	for nth := 0; ; nth++ {
		d, r, chosen := aboutToRestore(t)
		seen := 0
		r.fail = func(string) error {
			if seen++; seen > nth {
				return errors.New("killed")
			}
			return nil
		}
		killed := d.KeepOnly(chosen.ID, aside) != nil
		first := r.take()[:nth]
		if !killed {
			return // past the last step
		}
		r.fail = nil
		if err := d.KeepOnly(chosen.ID, aside); err != nil {
			t.Fatal(err)
		}
		second := r.take()
		if len(second) < 2 || !slices.Contains(second[:2], "sync dir p") || !slices.Contains(second[:2], "sync dir p/checkpoints") {
			t.Errorf("killed after %d steps: the next run begins with %q", nth, second)
		}
		for _, folder := range unsynced(append(first, second...)) {
			t.Errorf("killed after %d steps: of %s a rename is not durable when the next run returns", nth, folder)
		}
	}
}

// unsynced are the folders that were not synced after the last rename into them or out of them.
func unsynced(events []string) (folders []string) {
	dirty := map[string]bool{}
	for _, event := range events {
		if names, ok := strings.CutPrefix(event, "rename "); ok {
			from, to, _ := strings.Cut(names, " ")
			dirty[filepath.Dir(from)], dirty[filepath.Dir(to)] = true, true
		}
		delete(dirty, strings.TrimPrefix(event, "sync dir "))
	}
	return slices.Sorted(maps.Keys(dirty))
}

func TestNothingIsSetAsideForACheckpointThatIsNotHere(t *testing.T) {
	d, r, _ := aboutToRestore(t)
	if err := d.KeepOnly(pulledID(), aside); !errors.Is(err, ErrNone) {
		t.Errorf("error %v", err)
	}
	if got := r.take(); len(got) != 0 {
		t.Errorf("it has done %q", got)
	}
}

func TestWhereThereIsNothingElseNoFolderIsMade(t *testing.T) {
	d, _ := openRecorded(t)
	only := publish(t, d.Checkpoints(), 1, map[string]string{"a": "one"})
	if err := d.KeepOnly(only.ID, aside); err != nil {
		t.Fatal(err)
	}
	if there, err := exists(d.AsidePath(aside)); there || err != nil {
		t.Errorf("a folder was made (%v)", err)
	}
}

func TestANoteOfARestoreThatCouldHarmIsRefused(t *testing.T) {
	d, _ := openRecorded(t)
	for _, name := range []string{"", ".", "..", "a/b", "/etc", "../x"} {
		p := Pipeline{ID: uuid.UUID{1}, Desired: Running, Restoring: &Restoring{Checkpoint: pulledID(), Aside: name}}
		if err := d.SavePipeline(p); err == nil {
			t.Errorf("a folder %q is accepted", name)
		}
	}
	if err := d.SavePipeline(Pipeline{ID: uuid.UUID{1}, Desired: Running, Restoring: &Restoring{Aside: aside}}); err == nil {
		t.Error("a restore of no checkpoint is accepted")
	}
}
