//go:build byhand

package host

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/pluginhost"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/core/syncer"
)

// handMade is a pipeline's storage whose checkpoints are files of the test's choice, pushed by a real worker through the file plugin.
type handMade struct {
	t      *testing.T
	path   string
	dir    *checkpoint.Dir
	worker *syncer.Worker
}

func (w *world) handMade() *handMade {
	w.t.Helper()
	cfg := w.load(w.hcl(conf{}))
	spool, err := syncer.OpenSpool(w.path("spool"))
	must(w.t, err)
	spec, err := pluginSpec(cfg.Targets[0], spool.Dir())
	must(w.t, err)
	store, _, err := pluginhost.Open(w.t.Context(), spec, pluginhost.Options{Log: quiet().Log, RuntimeDir: w.path("run"), Now: time.Now})
	must(w.t, err)
	dir, err := checkpoint.OpenDir(w.path("hand"), checkpoint.Options{Now: time.Now})
	must(w.t, err)
	worker, err := syncer.Open(syncer.Config{
		Target: "t", Prefix: "p", Store: store, Pipeline: uuid.New(), PipelineName: "p",
		Writer: repository.Writer{ID: uuid.New(), Incarnation: uuid.New()}, Host: "here", WrittenBy: "cairn test",
		Local: dir.Checkpoints(), Spool: spool, StateFile: dir.SyncFile("t"), Now: time.Now,
	})
	must(w.t, err)
	w.t.Cleanup(func() {
		store.Close(w.t.Context())
		spool.Close()
		dir.Close()
	})
	return &handMade{t: w.t, path: w.path("hand"), dir: dir, worker: worker}
}

// push publishes files as a checkpoint and commits it; the answer is the checkpoint's directory.
func (h *handMade) push(step uint64, files map[string][]byte) string {
	h.t.Helper()
	draft, err := h.dir.Checkpoints().Begin()
	must(h.t, err)
	for name, content := range files {
		file := filepath.Join(draft.Dir(), name)
		must(h.t, os.MkdirAll(filepath.Dir(file), 0o700))
		must(h.t, os.WriteFile(file, content, 0o640))
	}
	m, err := draft.Publish(h.t.Context(), checkpoint.Meta{
		Step: step, Created: time.Now(), Incarnation: uuid.New(), Kind: "sql", Fingerprint: [32]byte{1},
		History: checkpoint.History{{Lineage: uuid.UUID{1}, UpTo: step}},
	})
	must(h.t, err)
	must(h.t, h.worker.Push(h.t.Context(), syncer.Job{Checkpoint: m.ID, Trigger: syncer.Requested}))
	return filepath.Join(h.path, "checkpoints", m.ID.String(), "files")
}

// awkward is a state with everything that a file can be.
func awkward() map[string][]byte {
	const mib = 1 << 20
	noise := make([]byte, 20*mib+17) // two packs
	rand.NewChaCha8([32]byte{1}).Read(noise)
	sparse := make([]byte, 8*mib+5)
	copy(sparse[3*mib:], "an island in the sea of zeros")
	return map[string][]byte{
		"state.db": noise, "state.db-wal": bytes.Repeat([]byte("a frame that compresses; "), 150_000), "sparse": sparse, "empty": nil, "zeros": make([]byte, 5000),
		"twin": noise[:2*mib], "dir/deep/a b": []byte("a space"), "\xff\xfe": []byte("not UTF-8"), "ends\n": []byte("a newline"), "'$(id)'\\ *": []byte("a shell"),
		"-rf": []byte("an option"), "ü": []byte("composed"), "u\u0308": []byte("decomposed"),
	}
}

// CASES A5, A51, A55, A57 without Cairn: what docs/reliability.md and README.txt tell a person to do, done to a repository that the file
// plugin holds.
func TestACommitIsRestoredByHandWithZstdJqAndSha256sum(t *testing.T) {
	w := newWorld(t)
	h := w.handMade()
	files := awkward()
	first := h.push(1, files)
	delete(files, "twin")
	files["state.db"] = append(bytes.Clone(files["state.db"][:5<<20]), "a changed end"...)
	second := h.push(2, files) // its packs are its own and those of the commit before
	repo := filepath.Join(w.target, "p")

	for name, script := range map[string]string{"the README.txt of the repository": scriptOfReadme(t, repo), "docs/format.md": scriptOfPage(t)} {
		t.Run(name, func(t *testing.T) {
			list := shell(t, script, repo)
			if strings.Count(list, "\n") != 2 || !strings.Contains(list, filepath.Base(filepath.Dir(second))) {
				t.Errorf("the list is %q", list)
			}
			for number, want := range map[string]string{"2": first, "latest": second} {
				out := filepath.Join(t.TempDir(), "out")
				shell(t, script, repo, number, out)
				sameTree(t, out, want)
			}
		})
	}
}

func TestARestoreByHandNamesWhatIsDamagedAndLeavesNoFolder(t *testing.T) {
	w := newWorld(t)
	w.handMade().push(1, awkward())
	repo := filepath.Join(w.target, "p")
	script := scriptOfReadme(t, repo)
	packs, err := filepath.Glob(filepath.Join(repo, "pack", "*", "*", "*"))
	must(t, err)
	flip(t, packs[0], 100)
	out := filepath.Join(t.TempDir(), "out")
	text, err := exec.Command("sh", script, repo, "latest", out).CombinedOutput()
	if err == nil || !strings.Contains(string(text), "is damaged") {
		t.Errorf("%v: %s", err, text)
	}
	mustBeAbsent(t, out)
	flip(t, packs[0], 100)
	flip(t, filepath.Join(repo, "commit", "00000000000000000002.json.zst"), 60)
	if text, err := exec.Command("sh", script, repo).CombinedOutput(); err == nil {
		t.Errorf("a damaged commit is listed: %s", text)
	}
}

// The golden repositories of the past are read by today's script.
func TestTheGoldenRepositoriesAreRestoredByHand(t *testing.T) {
	script := scriptOfPage(t)
	wants, err := filepath.Glob(filepath.Join("..", "syncer", "testdata", "golden", "*", "want", "commit-*"))
	must(t, err)
	if len(wants) < 3 {
		t.Fatalf("only %d golden commits", len(wants))
	}
	for _, want := range wants {
		_, number, _ := strings.Cut(filepath.Base(want), "-")
		out := filepath.Join(t.TempDir(), "out")
		shell(t, script, filepath.Join(filepath.Dir(filepath.Dir(want)), "objects", "strikes"), number, out)
		if got := read(t, want); inventory(t, out) != got {
			t.Errorf("%s restores to\n%swant\n%s", want, inventory(t, out), got)
		}
	}
}

// scriptOfReadme does what README.txt says in its third step.
func scriptOfReadme(t *testing.T, repo string) string {
	t.Helper()
	command := regexp.MustCompile(`sed -n .*>restore\.sh`).FindString(read(t, filepath.Join(repo, "README.txt")))
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "README.txt"), []byte(read(t, filepath.Join(repo, "README.txt"))), 0o600))
	sed := exec.Command("sh", "-c", command)
	sed.Dir = dir
	if text, err := sed.CombinedOutput(); err != nil || command == "" {
		t.Fatalf("%q: %v: %s", command, err, text)
	}
	return filepath.Join(dir, "restore.sh")
}

// scriptOfPage takes the script out of docs/format.md.
func scriptOfPage(t *testing.T) string {
	t.Helper()
	page := read(t, filepath.Join("..", "..", "docs", "format.md"))
	_, rest, ok := strings.Cut(page, "```sh\n#!/bin/sh\n")
	script, _, closed := strings.Cut(rest, "\n```\n")
	if !ok || !closed {
		t.Fatal("docs/format.md holds no script")
	}
	file := filepath.Join(t.TempDir(), "restore.sh")
	must(t, os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o600))
	return file
}

func shell(t *testing.T, script string, args ...string) string {
	t.Helper()
	var errs bytes.Buffer
	cmd := exec.Command("sh", append([]string{script}, args...)...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("sh restore.sh %q: %v: %s%s", args, err, out, errs.Bytes())
	}
	return string(out)
}

// sameTree compares two directories byte for byte; a file that was sparse is sparse.
func sameTree(t *testing.T, got, want string) {
	t.Helper()
	if a, b := inventory(t, got), inventory(t, want); a != b {
		t.Errorf("%s holds\n%swant\n%s", got, a, b)
	}
	var stat syscall.Stat_t
	must(t, syscall.Stat(filepath.Join(got, "sparse"), &stat))
	if used := stat.Blocks * 512; used >= stat.Size/2 {
		t.Errorf("sparse takes %d bytes of its %d", used, stat.Size)
	}
}

// inventory is a line for each file: digest, mode, size, path; as in core/syncer/testdata/golden.
func inventory(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	must(t, filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		lines = append(lines, fmt.Sprintf("%x %04o %d %q\n", sha256.Sum256(content), info.Mode(), len(content), rel))
		return err
	}))
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// flip changes one byte of a file, or changes it back.
func flip(t *testing.T, file string, at int) {
	t.Helper()
	content, err := os.ReadFile(file)
	must(t, err)
	content[at] ^= 1
	must(t, os.WriteFile(file, content, 0o600))
}
