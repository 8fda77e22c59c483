package checkpoint

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
)

// crashChild runs in a process of its own, which dies at the named point as if by kill -9.
func crashChild(point, dir, script string) {
	hook := func(p string) {
		if p == point {
			killSelf()
		}
	}
	d, err := OpenDir(dir, Options{Now: noon, Hook: hook})
	if err != nil {
		panic(err)
	}
	s := d.Checkpoints()
	switch script {
	case "hold":
		os.Stdout.WriteString("locked\n")
		os.Stdin.Read(make([]byte, 1)) // until the parent kills this process, or is gone
	case "publish":
		draft, err := s.Begin()
		if err != nil {
			panic(err)
		}
		crashPublish(draft, hook)
	case "pull":
		draft, err := s.BeginAs(pulledID())
		if err != nil {
			panic(err)
		}
		crashPublish(draft, hook)
	case "instead":
		draft, err := s.BeginInstead(pulledID())
		if err != nil {
			panic(err)
		}
		crashPublish(draft, hook)
	case "collect":
		if _, err := s.Collect(1); err != nil {
			panic(err)
		}
	}
}

func crashPublish(d *Draft, hook func(string)) {
	hook("begun")
	if err := os.WriteFile(filepath.Join(d.Dir(), "state.db"), []byte("new"), 0o600); err != nil {
		panic(err)
	}
	hook("written")
	if _, err := d.Publish(context.Background(), metaAt(2)); err != nil {
		panic(err)
	}
	hook("published")
}

func pulledID() uuid.UUID { return compose(uint64(noon().UnixMilli())+1000, 1, 1) }

// CASES A4
func TestAKilledPublicationLeavesTheOldOrTheNewNewest(t *testing.T) {
	for _, script := range []string{"publish", "pull"} {
		for _, row := range []struct {
			point string
			want  uint64 // step of the newest checkpoint afterwards
		}{
			{"begun", 1},
			{"written", 1},
			{"publish.files-synced", 1},
			{"publish.manifest-written", 1},
			{"publish.manifest-synced", 1},
			{"publish.renamed", 2},
			{"publish.synced", 2},
			{"published", 2},
		} {
			t.Run(script+" "+row.point, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "storage")
				prepare(t, path, 1)
				kill(t, path, script, row.point)

				d := open(t, path)
				if newest := wholeCheckpoints(t, d.Checkpoints()); newest != row.want {
					t.Errorf("the newest step is %d, want %d", newest, row.want)
				}
				leftovers := slices.DeleteFunc(entries(t, filepath.Join(path, "checkpoints")), func(n string) bool {
					prefix, id, ok := parseName(n)
					return ok && (prefix == published || prefix == pulling && id == pulledID() && row.want == 1)
				})
				if len(leftovers) > 0 {
					t.Errorf("left over: %v", leftovers)
				}
				publish(t, d.Checkpoints(), 3, map[string]string{"state.db": "after the crash"})
				if newest := wholeCheckpoints(t, d.Checkpoints()); newest != 3 {
					t.Errorf("the next publication made step %d the newest", newest)
				}
			})
		}
	}
}

func TestAKilledCollectionLeavesOnlyWholeCheckpoints(t *testing.T) {
	for _, row := range []struct {
		point string
		want  []uint64
	}{
		{"collect.marked", []uint64{1, 2, 3}},
		{"collect.renamed", []uint64{2, 3}},
		{"collect.synced", []uint64{3}},
		{"collect.removed", []uint64{3}},
	} {
		t.Run(row.point, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "storage")
			prepare(t, path, 1, 2, 3)
			kill(t, path, "collect", row.point)

			s := open(t, path).Checkpoints()
			wholeCheckpoints(t, s)
			if got := steps(list(t, s)); !slices.Equal(got, row.want) {
				t.Errorf("steps %v stay, want %v", got, row.want)
			}
			if names := entries(t, filepath.Join(path, "checkpoints")); slices.ContainsFunc(names, func(n string) bool {
				return strings.HasPrefix(n, removing)
			}) {
				t.Errorf("left over: %v", names)
			}
		})
	}
}

func TestAKilledPullIsResumedWithWhatItHadWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "storage")
	prepare(t, path, 1)
	for range 3 { // crash it three times in a row: the staging name must not grow
		kill(t, path, "pull", "publish.manifest-synced")
	}
	d := open(t, path)
	draft, err := d.Checkpoints().BeginAs(pulledID())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(draft.Dir(), "state.db")); err != nil || string(got) != "new" {
		t.Fatalf("%q, %v", got, err)
	}
	if m, err := draft.Publish(t.Context(), metaAt(2)); err != nil || m.ID != pulledID() {
		t.Fatal(m.ID, err)
	}
	if newest := wholeCheckpoints(t, d.Checkpoints()); newest != 2 {
		t.Errorf("the newest step is %d", newest)
	}
}

func prepare(t *testing.T, path string, atSteps ...uint64) {
	t.Helper()
	d, err := OpenDir(path, options())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, step := range atSteps {
		publish(t, d.Checkpoints(), step, map[string]string{"state.db": "old", "sub/more": "more"})
	}
}

// kill runs a child to the point, where it dies by SIGKILL.
func kill(t *testing.T, path, script, point string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "CHECKPOINT_CRASH_POINT="+point, "CHECKPOINT_CRASH_DIR="+path, "CHECKPOINT_CRASH_SCRIPT="+script)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("the child was not killed at %s: %v %s", point, err, out)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed at %s: %v %s", point, err, out)
	}
}

// wholeCheckpoints verifies every listed checkpoint and returns the newest step.
func wholeCheckpoints(t *testing.T, s *Store) uint64 {
	t.Helper()
	all := list(t, s)
	for _, m := range all {
		p, err := s.Pin(m.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifyPinned(t.Context(), p); err != nil {
			t.Error(err)
		}
		p.Release()
	}
	return all[len(all)-1].Step
}
