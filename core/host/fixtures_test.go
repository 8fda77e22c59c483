package host

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// seed is what a host that pushed one checkpoint left on its target. It is made once and copied.
var seed struct {
	sync.Once

	dir, step, rows string
}

// seedTarget puts a repository with one checkpoint on the target; it answers with the step and the rows of that checkpoint.
func seedTarget(w *world) (step, rows string) {
	w.t.Helper()
	seed.Do(func() {
		h := w.start(conf{data: "seed"}).up()
		h.insert(0, 7)
		seed.rows = h.rows()
		h.checkpoint()
		h.push()
		seed.step = strconv.FormatUint(h.view("p").Step, 10)
		h.kill()
		seed.dir = filepath.Join(plugins.dir, "seed")
		must(w.t, os.Rename(w.target, seed.dir))
		must(w.t, os.Mkdir(w.target, 0o755))
	})
	must(w.t, os.CopyFS(w.target, os.DirFS(seed.dir)))
	return seed.step, seed.rows
}

// truncate leaves half of a file.
func truncate(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.Chmod(file, 0o600))
	must(t, os.WriteFile(file, text[:len(text)/2], 0o600))
}

// damagedFormat puts a FORMAT.json that cannot be read where the pipeline's repository goes.
func damagedFormat(w *world) {
	w.t.Helper()
	must(w.t, os.MkdirAll(filepath.Join(w.target, "p"), 0o755))
	must(w.t, os.WriteFile(filepath.Join(w.target, "p", "FORMAT.json"), []byte("{"), 0o600))
}

func mustRemove(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	must(t, os.RemoveAll(path))
}

func mustBeAbsent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s exists (%v)", path, err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	return string(text)
}
