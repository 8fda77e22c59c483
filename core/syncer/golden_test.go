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

var update = flag.Bool("update", false, "make the golden repositories that are missing; one that exists is never made anew: remove its folder, if it was never released")

// golden is one repository of the past: its objects as a bucket holds them below testdata/golden/<name>/objects, and beside them in want/ what each
// commit restores to, one line a file: "<sha256> <mode> <size> <path>". The test needs nothing but these; make wrote them once.
type golden struct {
	name   string
	holds  string
	listed []uint64 // the commits that can be restored; the last is the newest
	newest uint64   // its checkpoint is idOf(newest)
	step   uint64
	make   func(a *author) map[uint64]content
}

func goldens() []golden {
	return []golden{
		{"v1", "two reigns and their seals, every encoding, odd names, packs of an older reign", []uint64{2, 3, 5}, 1054, 54, makeGoldenV1},
		{
			"v1-retired", "three reigns, two gc objects with what they keep, retired commits that are gone and one that came to life again, pins, a push in several packs, " +
				"a pack of a push that failed, what a probe left", []uint64{3, 6, 8, 9}, 1060, 60, makeGoldenRetired,
		},
	}
}

func (g golden) path(elem ...string) string {
	return filepath.Join(append([]string{"testdata", "golden", g.name}, elem...)...)
}

// makeGoldenV1 made the first one: two epochs with their seals and three checkpoints.
func makeGoldenV1(a *author) map[uint64]content {
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
	made := map[uint64]content{a.commit(27, first).Number: first, a.commit(36, second).Number: second}
	a.reign()
	made[a.commit(54, third).Number] = third
	return made
}

// makeGoldenRetired made what retention and sweep leave behind. The examples of docs/format.md are objects of it.
func makeGoldenRetired(a *author) map[uint64]content {
	sparse := make([]byte, 2*mib+5)
	copy(sparse, "a continent, then the sea")
	first := content{"state.db": append(text("page ", mib), noise(7, 300)...), "state.db-wal": text("frame; ", 4321), "gone": []byte("with commit 2\n")}
	second := content{"state.db": first["state.db"], "sparse": sparse, "empty": nil, "\xff\xfe": []byte("not UTF-8\n")}
	third := content{"state.db": append(text("page ", mib), noise(8, 300)...), "gone": []byte("with commit 5\n")}
	fourth := content{"state.db": append(text("page ", mib), noise(9, 300)...), "sparse": sparse, "ro/locked": []byte("read only\n")}
	fifth := content{"state.db": append(noise(10, 20_000), text("another page ", 3*mib)...), "sparse": sparse, "a": noise(11, 9000), "b": noise(12, 9000), "c": noise(13, 9000)}
	sixth := maps.Clone(fifth)
	for path, b := range everythingSmall() {
		sixth[path] = b
	}
	a.commit(10, first)
	made := map[uint64]content{a.commit(20, second).Number: second}
	a.reign()
	revenant := a.commit(30, third).Number
	late, _ := a.mem.Content(repository.CommitKey(testPrefix, revenant))
	made[a.commit(40, fourth).Number] = fourth
	a.retire(5, 3)
	a.past = repository.History{{Lineage: idOf(50), UpTo: 40}} // the third reign began with a restore of step 40
	a.reign()
	a.packOf = 9000
	made[a.commit(50, fifth).Number] = fifth
	a.packOf = 0
	a.retire(7, 3, 6)
	made[a.commit(60, sixth).Number] = sixth
	a.plant(repository.CommitKey(testPrefix, revenant), late) // its request landed after all: gc hides the number for ever
	a.plant(repository.PackKey(testPrefix, repository.PackID{Epoch: 3, Number: 10, SHA256: repository.Sum([]byte("orphan"))}), []byte("orphan"))
	a.plant(repository.ProbeKey(testPrefix, "db-1", "1"), []byte("probe"))
	a.pin(repository.Pin{Name: "before-the-migration", Commit: 3, Note: "schema 7"})
	a.pin(repository.Pin{Name: "audit-2026", Checkpoint: idOf(1050)})
	return made
}

// everythingSmall are names that file systems and object stores have trouble with.
func everythingSmall() content {
	return content{
		"empty": nil, "zeros": make([]byte, 4096), "a b": []byte("1"), "ü": []byte("2"), "u\u0308": []byte("3"), "%2F": []byte("4"), "x\ny": []byte("5"), "c:d": []byte("6"),
		strings.Repeat("n", 255): []byte("7"), "\xff\xfe": []byte("8"), "😀": []byte("9"), "con": []byte("10"), `back\slash`: []byte("11"), "d/e/f/g": []byte("12"), "-rf": []byte("13"),
		"<&>\u2028": []byte("14"), "ends in a newline\n": []byte("15"), "ro/locked": []byte("16"),
	}
}

// CASES A5, A51, A55, A57, A24: what was written once is read for ever, whatever retention has taken from beside it.
func TestTheGoldenRepositoriesOfFormat1RestoreByteForByteForEver(t *testing.T) {
	for _, g := range goldens() {
		t.Run(g.name, func(t *testing.T) {
			if *update {
				g.write(t)
			}
			r := readerOf(t, g.load(t))
			list, err := r.ListCommits(t.Context())
			if err != nil || !slices.Equal(commitNumbers(list), g.listed) {
				t.Fatalf("commits %v, %v; want %v", commitNumbers(list), err, g.listed)
			}
			for _, n := range g.listed {
				want, err := os.ReadFile(g.path("want", fmt.Sprintf("commit-%d", n)))
				if err != nil {
					t.Fatal(err)
				}
				dir := filepath.Join(t.TempDir(), "restored")
				if _, err := r.RestoreDir(t.Context(), RestoreRequest{From: Selector{Number: n}, Dir: dir, Spool: spoolOf(t)}); err != nil {
					t.Fatalf("commit %d: %v", n, err)
				}
				if got := inventory(t, dir); got != string(want) {
					t.Errorf("commit %d restores to\n%swant\n%s", n, got, want)
				}
			}
			_, local := localOf(t)
			pulled, err := r.Pull(t.Context(), PullRequest{Local: local, Spool: spoolOf(t)})
			if err != nil || pulled.Manifest.ID != idOf(g.newest) || pulled.Manifest.Step != g.step {
				t.Fatalf("the newest is %s at step %d, %v", pulled.Manifest.ID, pulled.Manifest.Step, err)
			}
		})
	}
}

func commitNumbers(list []CommitInfo) []uint64 {
	var numbers []uint64
	for _, c := range list {
		numbers = append(numbers, c.Number)
	}
	return numbers
}

// load puts the objects into a store.
func (g golden) load(t *testing.T) *sdktest.Mem {
	t.Helper()
	mem := sdktest.NewMem()
	objects := g.path("objects")
	err := filepath.WalkDir(objects, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		object, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		key, err := filepath.Rel(objects, p)
		mem.Plant(filepath.ToSlash(key), object)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return mem
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

// write makes the golden repository, once: what is there stays.
func (g golden) write(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(g.path()); err == nil {
		t.Logf("golden repository %s exists and is not made anew", g.name)
		return
	}
	a := newAuthor(t)
	made := g.make(a)
	for _, key := range a.mem.Keys() {
		object, _ := a.mem.Content(key)
		put(t, g.path("objects", key), object)
	}
	for n, files := range made {
		dir := t.TempDir()
		for path, b := range files {
			put(t, filepath.Join(dir, path), b)
			if err := os.Chmod(filepath.Join(dir, path), files.mode(path)); err != nil {
				t.Fatal(err)
			}
		}
		put(t, g.path("want", fmt.Sprintf("commit-%d", n)), []byte(inventory(t, dir)))
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

func TestTheGoldenRepositoriesHoldEveryKindOfThing(t *testing.T) {
	encodings := map[repository.Encoding]bool{}
	var seals, manyPacks, nonUTF8, reused, forked bool
	for _, g := range goldens() {
		mem := g.load(t)
		for _, key := range mem.Keys() {
			n, err := repository.ParseCommitKey(testPrefix, key)
			if err != nil {
				continue
			}
			object, _ := mem.Content(key)
			c, err := repository.DecodeCommit(n, object)
			if err != nil {
				t.Fatal(err)
			}
			seals = seals || c.Kind == repository.KindSeal
			forked = forked || len(c.Checkpoint.History) > 1
			own := 0
			for _, id := range c.Packs {
				reused = reused || id.Epoch < c.Epoch
				if id.Number == c.Number {
					own++
				}
			}
			manyPacks = manyPacks || own > 2
			for _, f := range c.Files {
				nonUTF8 = nonUTF8 || f.Path == "\xff\xfe"
				for _, ch := range f.Chunks {
					encodings[ch.Encoding] = true
				}
			}
		}
	}
	if !seals || !manyPacks || !nonUTF8 || !reused || !forked || len(encodings) != 3 {
		t.Errorf("seals %v, several packs %v, path that is not UTF-8 %v, packs of an older reign %v, a fork %v, encodings %v", seals, manyPacks, nonUTF8, reused, forked, encodings)
	}
}

func TestTheRetiredGoldenRepositoryHoldsWhatRetentionLeaves(t *testing.T) {
	g := goldens()[1]
	mem := g.load(t)
	data, ok := mem.Content(repository.GCKey(testPrefix, 2))
	gc, err := repository.DecodeGC(2, data)
	if !ok || err != nil || gc.UpTo != 7 || !slices.Equal(gc.Kept, []uint64{3, 6}) {
		t.Errorf("gc 2 is %+v, %v", gc, err)
	}
	for key, there := range map[string]bool{
		repository.CommitKey(testPrefix, 1): false, repository.CommitKey(testPrefix, 2): false, repository.CommitKey(testPrefix, 5): true,
		repository.CommitKey(testPrefix, 7): false, repository.PinKey(testPrefix, "audit-2026"): true, repository.ProbeKey(testPrefix, "db-1", "1"): true,
	} {
		if _, got := mem.Content(key); got != there {
			t.Errorf("%s is there: %v", key, got)
		}
	}
}
