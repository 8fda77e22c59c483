package syncer

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// publish makes a local checkpoint of the files.
func publish(t *testing.T, local *checkpoint.Store, step uint64, files content) checkpoint.Manifest {
	t.Helper()
	d, err := local.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for path, b := range files {
		put(t, filepath.Join(d.Dir(), path), b)
		if err := os.Chmod(filepath.Join(d.Dir(), path), files.mode(path)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := d.Publish(t.Context(), checkpoint.Meta{
		Step: step, Created: startOfTime(), Incarnation: idOf(4), Kind: "sql", Fingerprint: [32]byte{7},
		History: checkpoint.History{{Lineage: idOf(50), UpTo: step}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestWhatIsPushedHereIsPulledThere(t *testing.T) {
	t.Parallel()
	mem, spool := sdktest.NewMem(), spoolOf(t)
	_, here := localOf(t)
	_, there := localOf(t)
	w, err := Open(Config{
		Target: "offsite", Prefix: testPrefix, Store: Direct(mem), Pipeline: idOf(2), PipelineName: "strikes",
		Writer: repository.Writer{ID: idOf(3), Incarnation: idOf(4)}, Host: "db-1", WrittenBy: "cairn 0.1.0",
		Local: here, Spool: spool, StateFile: filepath.Join(t.TempDir(), "offsite.json"), Now: startOfTime,
	})
	if err != nil {
		t.Fatal(err)
	}
	files := everything()
	for step := uint64(1); step <= 3; step++ {
		files["state.db"] = bytes.Clone(files["state.db"])
		copy(files["state.db"][step*mib:], noise(step, mib/2))
		pushed := publish(t, here, step, files)
		if err := w.Push(t.Context(), Job{Checkpoint: pushed.ID, Trigger: Requested}); err != nil {
			t.Fatal(err)
		}
		pulled, err := readerOf(t, mem).Pull(t.Context(), PullRequest{Local: there, Spool: spool})
		if err != nil {
			t.Fatal(err)
		}
		got, want := pulled.Manifest, pushed
		for i := range got.Files {
			got.Files[i].Inode, want.Files[i].Inode = checkpoint.Inode{}, checkpoint.Inode{}
			if !sameContent(got.Files[i], want.Files[i]) || got.Files[i].Path != want.Files[i].Path || got.Files[i].Mode != want.Files[i].Mode {
				t.Errorf("file %q differs", want.Files[i].Path)
			}
		}
		if got.ID != want.ID || got.Step != want.Step || got.Fingerprint != want.Fingerprint || got.History[0] != want.History[0] {
			t.Errorf("pulled %+v, pushed %+v", got, want)
		}
		sameFiles(t, pinOf(t, there, uuid.UUID(want.ID)).Dir(), files)
	}
	list, err := readerOf(t, mem).ListCommits(t.Context())
	if err != nil || len(list) != 3 || list[2].Checkpoint.Step != 3 {
		t.Fatalf("list %+v, %v", list, err)
	}
}
