package syncer

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

var update = flag.Bool("update", false, "write the golden repository anew; only for a new format, never for one that was released")

// The golden repository of format 1 as a bucket would hold it, and what its commits restore to: one line a file, "<sha256> <mode> <size> <path>".
const (
	goldenObjects = "testdata/golden/v1/objects"
	goldenWant    = "testdata/golden/v1/want"
)

// goldenContents are the checkpoints of the golden repository. The test that restores them does not use these: it must hold when they
// cannot be made any more.
func goldenContents() []content {
	wal := text("frame of the write-ahead log; ", 2*mib+4321)
	sparse := make([]byte, 3*mib+5)
	copy(sparse[2*mib:], "an island in the sea of zeros")
	first := content{
		"state.db": append(noise(1, mib+200), text("page ", mib)...), "sparse": sparse, "empty": nil, "ro/locked": []byte("read only\n"),
		"dir/a b": []byte("a space\n"), "\xff\xfe": []byte("not UTF-8\n"), "x\ny": []byte("a newline\n"), "u\u0308": []byte("decomposed\n"),
	}
	second := maps.Clone(first)
	second["state.db-wal"] = wal
	second["twin of wal"] = wal
	third := maps.Clone(second)
	delete(third, "dir/a b")
	third["state.db"] = append(slices.Clone(first["state.db"][:mib+300]), text("another page ", mib)...)
	return []content{first, second, third}
}

func TestTheGoldenRepositoryOfFormat1RestoresByteForByteForEver(t *testing.T) {
	if *update {
		writeGolden(t)
	}
	mem := sdktest.NewMem()
	err := filepath.WalkDir(goldenObjects, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		object, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		key, err := filepath.Rel(goldenObjects, p)
		mem.Plant(filepath.ToSlash(key), object)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r := readerOf(t, mem)
	list, err := r.ListCommits(t.Context())
	if err != nil || len(list) != 3 {
		t.Fatalf("%d commits, %v", len(list), err)
	}
	for _, c := range list {
		want, err := os.ReadFile(filepath.Join(goldenWant, fmt.Sprintf("commit-%d", c.Number)))
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "restored")
		if _, err := r.RestoreDir(t.Context(), RestoreRequest{From: Selector{Number: c.Number}, Dir: dir, Spool: spoolOf(t)}); err != nil {
			t.Fatalf("commit %d: %v", c.Number, err)
		}
		if got := inventory(t, dir); got != string(want) {
			t.Errorf("commit %d restores to\n%swant\n%s", c.Number, got, want)
		}
	}
	_, local := localOf(t)
	pulled, err := r.Pull(t.Context(), PullRequest{Local: local, Spool: spoolOf(t)})
	if err != nil || pulled.Manifest.ID.String() != "00000000-041e-7000-8000-00000000041e" || pulled.Manifest.Step != 54 {
		t.Fatalf("the newest is %s at step %d, %v", pulled.Manifest.ID, pulled.Manifest.Step, err)
	}
}

// inventory describes the files of a directory.
func inventory(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		sum := sha256.Sum256(b)
		lines = append(lines, fmt.Sprintf("%s %04o %d %q\n", hex.EncodeToString(sum[:]), info.Mode(), len(b), rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// writeGolden makes the golden repository: two epochs with their seals and three checkpoints.
func writeGolden(t *testing.T) {
	t.Helper()
	a := newAuthor(t)
	contents := goldenContents()
	numbers := []uint64{a.commit(27, contents[0]).Number, a.commit(36, contents[1]).Number}
	a.reign()
	numbers = append(numbers, a.commit(54, contents[2]).Number)
	if err := os.RemoveAll(filepath.Dir(goldenObjects)); err != nil {
		t.Fatal(err)
	}
	for _, key := range a.mem.Keys() {
		object, _ := a.mem.Content(key)
		put(t, filepath.Join(goldenObjects, key), object)
	}
	for i, n := range numbers {
		dir := t.TempDir()
		for path, b := range contents[i] {
			put(t, filepath.Join(dir, path), b)
			if err := os.Chmod(filepath.Join(dir, path), contents[i].mode(path)); err != nil {
				t.Fatal(err)
			}
		}
		put(t, filepath.Join(goldenWant, fmt.Sprintf("commit-%d", n)), []byte(inventory(t, dir)))
	}
}

func put(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTheGoldenRepositoryHoldsEveryKindOfThing(t *testing.T) {
	seen := map[repository.Encoding]bool{}
	seals, nonUTF8, reused := 0, false, false
	files, err := filepath.Glob(filepath.Join(goldenObjects, testPrefix, "commit", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range files {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		c, err := repository.DecodeCommit(uint64(i)+1, b)
		if err != nil {
			t.Fatal(err)
		}
		if c.Kind == repository.KindSeal {
			seals++
		}
		for _, f := range c.Files {
			nonUTF8 = nonUTF8 || f.Path == "\xff\xfe"
			for _, ch := range f.Chunks {
				seen[ch.Encoding] = true
				reused = reused || ch.Pack >= 0 && c.Packs[ch.Pack].Epoch < c.Epoch
			}
		}
	}
	if len(files) != 5 || seals != 2 || !nonUTF8 || !reused || len(seen) != 3 {
		t.Errorf("%d commits, %d seals, path that is not UTF-8: %v, packs of an older epoch: %v, encodings %v", len(files), seals, nonUTF8, reused, seen)
	}
}
