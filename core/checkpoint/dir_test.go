package checkpoint

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestASecondOpenIsRefusedWithThePathAndThePid(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	_, err := OpenDir(path, options())
	var locked *LockedError
	if !errors.As(err, &locked) || locked.Path != path || locked.PID != os.Getpid() || !strings.Contains(err.Error(), path) {
		t.Fatalf("got %v", err)
	}
	d.Close()
	open(t, path)
}

// CASES A39
func TestALockEndsWithItsProcess(t *testing.T) {
	path := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "CHECKPOINT_CRASH_POINT=never", "CHECKPOINT_CRASH_DIR="+path, "CHECKPOINT_CRASH_SCRIPT=hold")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil { // stays open
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("%q, %v", line, err)
	}
	var locked *LockedError
	if _, err := OpenDir(path, options()); !errors.As(err, &locked) || locked.PID != cmd.Process.Pid {
		t.Errorf("got %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	open(t, path)
}

// An older cairn refuses fields that it does not know: a pipeline that never was a standby must stay readable by it, and its file by this one.
func TestAPipelineThatNeverWasAStandbyHasTheFileOfBefore(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	want := Pipeline{ID: uuid.UUID{1}, Writer: uuid.UUID{2}, Desired: Running, Honoured: []uuid.UUID{}, History: History{{Lineage: uuid.UUID{3}, UpTo: 4}}}
	if err := d.SavePipeline(want); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(path, "pipeline.json"))
	if err != nil {
		t.Fatal(err)
	}
	body := `{"id":"01000000-0000-0000-0000-000000000000","writer":"02000000-0000-0000-0000-000000000000","desired":"running","honoured":[],` +
		`"history":[{"lineage":"03000000-0000-0000-0000-000000000000","up_to":4}]}`
	if !strings.Contains(string(text), body) {
		t.Errorf("pipeline.json is %s", text)
	}
}

func TestOpenMakesPrivateDirectoriesAndNoState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "strikes")
	d := open(t, path)
	for _, dir := range []string{path, filepath.Join(path, "checkpoints"), filepath.Join(path, "sync")} {
		if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("%s: %v %v", dir, info, err)
		}
	}
	if _, err := os.Stat(d.State()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("state: %v", err)
	}
	if got, want := d.SyncFile("offsite"), filepath.Join(path, "sync", "offsite.json"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, err := OpenDir(t.TempDir(), Options{}); err == nil {
		t.Error("a Dir without a clock was opened")
	}
	file := filepath.Join(path, "a-file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDir(file, options()); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file as storage path: %v", err)
	}
}

func TestAPipelineComesBackAsItWasSaved(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	want := Pipeline{
		ID: uuid.New(), Writer: uuid.New(), Desired: Paused, Honoured: []uuid.UUID{pulledID()},
		History: History{{Lineage: uuid.New(), UpTo: 4}, {Lineage: uuid.New(), UpTo: 1<<64 - 1}},
	}
	for range 2 {
		if err := d.SavePipeline(want); err != nil {
			t.Fatal(err)
		}
	}
	d.Close()
	got, err := open(t, path).Pipeline()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	if names := entries(t, path); !slices.Equal(names, []string{"checkpoints", "lock", "pipeline.json", "sync"}) {
		t.Errorf("left: %v", names)
	}
}

func TestOnlyAnEmptyPathHasNoPipeline(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	if _, err := d.Pipeline(); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrCorrupt) {
		t.Errorf("an empty path: %v", err)
	}
	if err := os.Mkdir(d.State(), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Pipeline(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty state directory: %v", err)
	}
	write(t, d.State(), map[string]string{"state.db": "x"})
	if _, err := d.Pipeline(); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), pipelineRemedy) {
		t.Errorf("missing beside live state: %v", err)
	}
	os.RemoveAll(d.State())
	publish(t, d.Checkpoints(), 1, nil)
	if _, err := d.Pipeline(); !errors.Is(err, ErrCorrupt) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing beside a checkpoint: %v", err)
	}
}

// CASES A3
func TestADamagedPipelineFileIsNeverAFreshStart(t *testing.T) {
	good := func(t *testing.T, d *Dir) []byte {
		t.Helper()
		if err := d.SavePipeline(Pipeline{ID: uuid.New(), Desired: Running}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(d.pipelineFile())
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, damage := range map[string]func([]byte) []byte{
		"empty":       func([]byte) []byte { return nil },
		"half":        func(b []byte) []byte { return b[:len(b)/2] },
		"zeros":       func(b []byte) []byte { return make([]byte, len(b)) },
		"edited":      func(b []byte) []byte { return []byte(strings.Replace(string(b), "running", "stopped", 1)) },
		"a bare body": func([]byte) []byte { return []byte(`{"id":"019b7e5a-0000-7000-8000-000000000001"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, t.TempDir())
			bad := damage(good(t, d))
			if err := os.WriteFile(d.pipelineFile(), bad, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := d.Pipeline()
			if !errors.Is(err, ErrCorrupt) || errors.Is(err, fs.ErrNotExist) ||
				!strings.Contains(err.Error(), d.pipelineFile()) || !strings.Contains(err.Error(), pipelineRemedy) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAPipelineThatMakesNoSenseIsNotSaved(t *testing.T) {
	d := open(t, t.TempDir())
	for name, p := range map[string]Pipeline{
		"a history, no id":  {Desired: Running, History: History{{Lineage: uuid.New()}}},
		"no desired state":  {ID: uuid.New()},
		"an unknown desire": {ID: uuid.New(), Desired: "asleep"},
	} {
		if err := d.SavePipeline(p); err == nil {
			t.Errorf("%s: saved", name)
		}
	}
}

func TestOpenSweepsWhatACrashLeftAndNothingElse(t *testing.T) {
	path := t.TempDir()
	open(t, path).Close()
	id := pulledID().String()
	kept := []string{".pull-" + id, "lost+found", ".tmp-notours", "notes.txt"}
	for _, name := range append([]string{".tmp-" + id, ".old-" + id, ".last-id.tmp-123"}, kept...) {
		if err := os.MkdirAll(filepath.Join(path, "checkpoints", name, "files"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, path, map[string]string{".pipeline.json.tmp-42": "half", "sync/.offsite.json.tmp-7": "half", "sync/offsite.json": "whole"})
	open(t, path)
	slices.Sort(kept)
	if got := entries(t, filepath.Join(path, "checkpoints")); !slices.Equal(got, kept) {
		t.Errorf("left %v, want %v", got, kept)
	}
	if got := entries(t, path); !slices.Equal(got, []string{"checkpoints", "lock", "sync"}) {
		t.Errorf("left %v", got)
	}
	if got := entries(t, filepath.Join(path, "sync")); !slices.Equal(got, []string{"offsite.json"}) {
		t.Errorf("left %v", got)
	}
}
