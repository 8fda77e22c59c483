package syncer

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cairnsync/cairn/core/repository"
)

// lay writes files below a new folder.
func lay(t *testing.T, files content) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// seen is every path below dir with its size, mode and time.
func seen(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			b.WriteString(strings.Join([]string{path, fs.FormatFileInfo(info), info.ModTime().String()}, " ") + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// CASES A55
func TestADeltaRestoreFetchesOnlyWhatNoDonorHasAndAPreviewTellsSoBefore(t *testing.T) {
	a := newAuthor(t)
	files := everything()
	files["big.db"] = noise(7, 8*mib)
	c := a.commit(10, files)
	changed := bytes.Clone(files["big.db"])
	copy(changed[3*mib:], noise(8, mib))
	donors := []string{
		lay(t, content{"elsewhere/of another name": changed, "short": files["state.db"][:2*mib], "strange": noise(99, 3*mib), "empty": nil}),
		lay(t, content{"tail": files["state.db"][2*mib:]}),
	}
	for _, err := range []error{
		os.Symlink(filepath.Join(donors[0], "short"), filepath.Join(donors[0], "link")),
		os.Symlink("/", filepath.Join(donors[0], "root")),
		syscall.Mkfifo(filepath.Join(donors[1], "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	parent := t.TempDir()
	req := RestoreRequest{Dir: filepath.Join(parent, "restored"), DeltaFrom: donors, Spool: spoolOf(t)}
	before := seen(t, donors[0]) + seen(t, donors[1]) + seen(t, parent)
	var read atomic.Int64
	r := readerOf(t, counting(a.mem, &read))
	told, err := r.PreviewRestore(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if now := seen(t, donors[0]) + seen(t, donors[1]) + seen(t, parent); now != before || read.Load() != 0 {
		t.Errorf("a preview reads %d bytes of packs and leaves\n%sin place of\n%s", read.Load(), now, before)
	}
	done, err := r.RestoreDir(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	sameFiles(t, req.Dir, files)
	if told.Needs != done.Needs || done.Needs.Bytes != read.Load() || told.Commit.Number != c.Number {
		t.Errorf("foretold %+v, done %+v, read %d bytes", told.Needs, done.Needs, read.Load())
	}
	// Two files of state.db's content, and all of big.db but a chunk.
	if want := 2*int64(len(files["state.db"])) + 7*mib; done.Needs.Kept != want {
		t.Errorf("%d bytes kept, want %d", done.Needs.Kept, want)
	}
	if now := seen(t, donors[0]) + seen(t, donors[1]); !strings.HasPrefix(before, now) {
		t.Errorf("the donors are not as they were:\n%s", now)
	}
}

func TestADonorThatChangesWhileItIsUsedLendsNothingWrong(t *testing.T) {
	a := newAuthor(t)
	files := content{"state.db": noise(1, 4*mib)}
	c := a.commit(10, files)
	donor := lay(t, files)
	found, err := readerOf(t, a.mem).donorsIn(t.Context(), []string{donor}, c)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(files["state.db"])
	copy(changed[mib:], noise(2, mib))
	if err := os.WriteFile(filepath.Join(donor, "state.db"), changed[:3*mib], 0o600); err != nil {
		t.Fatal(err)
	}
	from := found.reader()
	defer from.close()
	for j, ch := range c.Files[0].Chunks {
		buf := make([]byte, mib)
		if got, want := from.read(ch.Digest, buf), j == 0 || j == 2; got != want {
			t.Errorf("chunk %d: lent %v, want %v", j, got, want)
		}
	}
}

func TestAPreviewCountsWhatAnInterruptedRestoreHasLeft(t *testing.T) {
	a := newAuthor(t)
	files := content{"a": noise(1, 12*mib), "b": noise(2, 12*mib)}
	a.commit(10, files)
	req := RestoreRequest{Dir: filepath.Join(t.TempDir(), "restored"), Spool: spoolOf(t)}
	staged := lay(t, content{"a": files["a"], "b": files["b"][:2*mib], "stray": noise(3, mib)})
	if err := os.Rename(staged, filepath.Join(filepath.Dir(req.Dir), ".restored.cairn-restore")); err != nil {
		t.Fatal(err)
	}
	r := readerOf(t, a.mem)
	told, err := r.PreviewRestore(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if told.Needs.Kept != 14*mib || told.Needs.Bytes != 10*mib {
		t.Errorf("foretold %+v", told.Needs)
	}
	done, err := r.RestoreDir(t.Context(), req)
	if err != nil || done.Needs != told.Needs {
		t.Errorf("foretold %+v, done %+v, %v", told.Needs, done.Needs, err)
	}
	sameFiles(t, req.Dir, files)
}

func TestADonorFolderThatIsNotThereIsNamedAndNothingIsMade(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, everything())
	parent := t.TempDir()
	req := RestoreRequest{Dir: filepath.Join(parent, "restored"), DeltaFrom: []string{filepath.Join(parent, "nowhere")}, Spool: spoolOf(t)}
	r := readerOf(t, a.mem)
	for _, act := range []func() (Restored, error){
		func() (Restored, error) { return r.PreviewRestore(t.Context(), req) },
		func() (Restored, error) { return r.RestoreDir(t.Context(), req) },
	} {
		if _, err := act(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "leave it out") {
			t.Errorf("%v", err)
		}
	}
	nothingIn(t, parent)
}

func nothingIn(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// CASES A48
func TestARestoreThatIsRefusedLeavesNothingBehind(t *testing.T) {
	newer := func(a *author) {
		a.plant(repository.FormatKey(testPrefix), []byte(`{"format":9,"written_by":"cairn 9.1.0"}`+"\n"))
	}
	for name, tt := range map[string]struct {
		spoil func(*author)
		from  Selector
		say   string
	}{
		"a newer format":                 {spoil: newer, say: "cairn 9.1.0"},
		"a number that is not there":     {spoil: func(*author) {}, from: Selector{Number: 77}, say: "77"},
		"a checkpoint that is not there": {spoil: func(*author) {}, from: Selector{Checkpoint: idOf(9)}, say: idOf(9).String()},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthor(t)
			a.commit(10, everything())
			tt.spoil(a)
			parent := t.TempDir()
			_, err := readerOf(t, a.mem).RestoreDir(t.Context(), RestoreRequest{From: tt.from, Dir: filepath.Join(parent, "new/restored"), Spool: spoolOf(t)})
			if err == nil || !strings.Contains(err.Error(), tt.say) {
				t.Errorf("%v", err)
			}
			nothingIn(t, parent)
		})
	}
}

func TestADestinationBelowAFileIsRefusedWithTheRemedy(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, everything())
	dir := lay(t, content{"file": nil})
	_, err := readerOf(t, a.mem).RestoreDir(t.Context(), RestoreRequest{Dir: filepath.Join(dir, "file/restored"), Spool: spoolOf(t)})
	if err == nil || !strings.Contains(err.Error(), "a file stands where a folder is needed") || !strings.Contains(err.Error(), "name another folder") {
		t.Errorf("%v", err)
	}
}
