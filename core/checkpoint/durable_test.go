package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
)

// recorder is the disk with a memory: what was synced and renamed, in order, with paths below root. It fails where it is told to.
type recorder struct {
	root string
	fail func(event string) error

	mu     sync.Mutex
	events []string
}

func (r *recorder) note(event string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	event = strings.ReplaceAll(event, r.root+"/", "")
	r.events = append(r.events, event)
	if r.fail != nil {
		return r.fail(event)
	}
	return nil
}

func (r *recorder) Sync(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	what := "sync file "
	if info.IsDir() {
		what = "sync dir "
	}
	if err := r.note(what + f.Name()); err != nil {
		return err
	}
	return f.Sync()
}

func (r *recorder) Rename(from, to string) error {
	if err := r.note("rename " + from + " " + to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}

func openRecorded(t *testing.T) (*Dir, *recorder) {
	t.Helper()
	r := &recorder{root: t.TempDir()}
	d, err := openDir(filepath.Join(r.root, "p"), options(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, r
}

// CASES A4, A23
func TestPublishSyncsFilesThenTheManifestThenRenamesThenSyncsTheDirectory(t *testing.T) {
	d, r := openRecorded(t)
	draft, err := d.Checkpoints().Begin()
	if err != nil {
		t.Fatal(err)
	}
	write(t, draft.Dir(), map[string]string{"a": "1", "b": "2", "sub/deep/c": "3", "empty": ""})
	r.take()
	if _, err := draft.Publish(t.Context(), metaAt(1)); err != nil {
		t.Fatal(err)
	}
	tmp, final := "p/checkpoints/.tmp-"+draft.ID().String(), "p/checkpoints/"+draft.ID().String()
	events := r.take()
	contents, rest := events[:len(events)-4], events[len(events)-4:]
	slices.Sort(contents) // these happen in parallel
	want := []string{
		"sync dir " + tmp + "/files", "sync dir " + tmp + "/files/sub", "sync dir " + tmp + "/files/sub/deep",
		"sync file " + tmp + "/files/a", "sync file " + tmp + "/files/b", "sync file " + tmp + "/files/empty", "sync file " + tmp + "/files/sub/deep/c",
	}
	if !slices.Equal(contents, want) {
		t.Errorf("first %q\nwant %q", contents, want)
	}
	wantRest := []string{"sync file " + tmp + "/checkpoint.json", "sync dir " + tmp, "rename " + tmp + " " + final, "sync dir p/checkpoints"}
	if !slices.Equal(rest, wantRest) {
		t.Errorf("then %q\nwant %q", rest, wantRest)
	}
}

// CASES A4
func TestANewStoragePathIsSyncedIntoItsParents(t *testing.T) {
	r := &recorder{root: t.TempDir()}
	d, err := openDir(filepath.Join(r.root, "x/y"), options(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	want := []string{"sync dir " + r.root, "sync dir x", "sync dir x/y", "sync dir x/y"}
	if got := r.take(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// CASES A4
func TestSavePipelineSyncsThenRenamesThenSyncsTheDirectory(t *testing.T) {
	d, r := openRecorded(t)
	r.take()
	if err := d.SavePipeline(Pipeline{ID: uuid.UUID{1}, Desired: Running}); err != nil {
		t.Fatal(err)
	}
	events := r.take()
	if len(events) != 3 || !strings.HasPrefix(events[0], "sync file p/.pipeline.json.tmp-") ||
		!strings.HasPrefix(events[1], "rename p/.pipeline.json.tmp-") || !strings.HasSuffix(events[1], " p/pipeline.json") || events[2] != "sync dir p" {
		t.Errorf("%q", events)
	}
}

func TestCollectMakesTheRenamesDurableBeforeItRemovesAFile(t *testing.T) {
	d, r := openRecorded(t)
	s := d.Checkpoints()
	old := publish(t, s, 1, map[string]string{"a": "1"})
	publish(t, s, 2, map[string]string{"a": "2"})
	r.take()
	var atSync []string
	r.fail = func(event string) error {
		if event == "sync dir p/checkpoints" {
			atSync = entries(t, filepath.Join(r.root, "p/checkpoints/.old-"+old.ID.String()))
		}
		return nil
	}
	if _, err := s.Collect(1); err != nil {
		t.Fatal(err)
	}
	if len(atSync) != 2 {
		t.Errorf("when the directory was synced, the old checkpoint still held %v", atSync)
	}
	want := []string{"rename p/checkpoints/" + old.ID.String() + " p/checkpoints/.old-" + old.ID.String(), "sync dir p/checkpoints"}
	if got := r.take(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Whatever step of publication the disk refuses, there is no new checkpoint, and the next attempt succeeds.
// CASES A4, A23
func TestAFailedSyncOrRenameIsNeverAPublication(t *testing.T) {
	d, r := openRecorded(t)
	s := d.Checkpoints()
	publish(t, s, 1, map[string]string{"a": "old"})
	refused := errors.New("input/output error")
	for nth := 0; ; nth++ {
		draft, err := s.Begin()
		if err != nil {
			t.Fatal(err)
		}
		write(t, draft.Dir(), map[string]string{"a": fmt.Sprint(nth), "sub/b": "x"})
		count := 0
		r.fail = func(string) error {
			count++
			if count == nth+1 {
				return refused
			}
			return nil
		}
		_, err = draft.Publish(t.Context(), metaAt(2))
		r.fail = nil
		if err == nil {
			if nth < 8 {
				t.Fatalf("publication consists of only %d steps", nth)
			}
			return // past the last step
		}
		if !errors.Is(err, refused) {
			t.Fatalf("step %d: %v", nth, err)
		}
		if got := steps(list(t, s)); !slices.Equal(got, []uint64{1}) {
			t.Fatalf("step %d failed, yet the steps are %v", nth, got)
		}
		if err := draft.Close(); err != nil {
			t.Fatal(err)
		}
		if names := entries(t, filepath.Join(r.root, "p/checkpoints")); len(names) != 1 {
			t.Fatalf("step %d left %v", nth, names)
		}
	}
}

// CASES A40
func TestAFailedCollectionGivesTheNamesBack(t *testing.T) {
	for nth := range 3 {
		d, r := openRecorded(t)
		s := d.Checkpoints()
		for step := range uint64(3) {
			publish(t, s, step, map[string]string{"a": "1"})
		}
		r.fail = failNth(nth)
		if gone, err := s.Collect(1); err == nil || len(gone) > 0 {
			t.Fatalf("step %d: removed %v, %v", nth, gone, err)
		}
		r.fail = nil
		if got := steps(list(t, s)); !slices.Equal(got, []uint64{0, 1, 2}) {
			t.Errorf("step %d failed, and %v stay", nth, got)
		}
	}
}

func failNth(nth int) func(string) error {
	return func(string) error {
		nth--
		if nth == -1 {
			return errors.New("input/output error")
		}
		return nil
	}
}
