package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
)

func TestTheNewestIsOfTheHighestStepThenTheHighestID(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	a := publish(t, s, 5, nil)
	publish(t, s, 3, nil)
	b := publish(t, s, 5, nil)
	all := list(t, s)
	if got := steps(all); !slices.Equal(got, []uint64{3, 5, 5}) || all[1].ID != a.ID || all[2].ID != b.ID {
		t.Errorf("%v", all)
	}
}

func TestAnEmptyStoreHasProvenlyNone(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	if _, err := s.PinNewest(); !errors.Is(err, ErrNone) || errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Pin(pulledID()); !errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
	if gone, err := s.Collect(4); err != nil || len(gone) > 0 {
		t.Errorf("removed %v, %v", gone, err)
	}
}

func TestAFolderRemovedUnderTheRunningHostIsToldFromOtherTrouble(t *testing.T) {
	path := t.TempDir()
	s := open(t, path).Checkpoints()
	publish(t, s, 1, nil)
	if err := os.Rename(path, path+"-away"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Begin()
	var removed *RemovedError
	if !errors.As(err, &removed) || !strings.Contains(err.Error(), "end the host and start it again") {
		t.Fatalf("got %v", err)
	}
	if err := os.Rename(path+"-away", path); err != nil {
		t.Fatal(err)
	}
	publish(t, s, 2, nil)
}

// An index that is missing next to data is corruption, not emptiness.
// CASES A3
func TestDamagedMetadataIsReportedByNameAndStopsCollection(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"missing":         os.Remove,
		"empty":           func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"cut short":       func(p string) error { return os.Truncate(p, 100) },
		"zeros":           func(p string) error { return os.WriteFile(p, make([]byte, 500), 0o600) },
		"a directory":     func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) },
		"of another":      func(p string) error { return swapManifest(p) },
		"a symbolic link": func(p string) error { return errors.Join(os.Rename(p, p+"2"), os.Symlink(p+"2", p)) },
		"all files gone": func(p string) error {
			return errors.Join(os.RemoveAll(filepath.Dir(p)), os.Mkdir(filepath.Dir(p), 0o700))
		},
		"a file, not a dir": func(p string) error {
			return errors.Join(os.RemoveAll(filepath.Dir(p)), os.WriteFile(filepath.Dir(p), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			s := open(t, path).Checkpoints()
			bad := publish(t, s, 1, map[string]string{"a": "1"})
			publish(t, s, 2, map[string]string{"a": "2"})
			publish(t, s, 3, map[string]string{"a": "3"})
			if err := damage(filepath.Join(path, "checkpoints", bad.ID.String(), manifestName)); err != nil {
				t.Fatal(err)
			}
			all, err := s.List(t.Context())
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), bad.ID.String()) || !strings.Contains(err.Error(), "move its directory away") {
				t.Errorf("list: %v", err)
			}
			if got := steps(all); !slices.Equal(got, []uint64{2, 3}) {
				t.Errorf("the readable ones are %v", got)
			}
			if gone, err := s.Collect(1); !errors.Is(err, ErrCorrupt) || len(gone) > 0 || len(entries(t, s.root)) != 3 {
				t.Errorf("collect removed %v, %v", gone, err)
			}
			if _, err := s.PinNewest(); !errors.Is(err, ErrCorrupt) {
				t.Errorf("pin the newest: %v", err)
			}
			if _, err := s.Pin(bad.ID); !errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNone) {
				t.Errorf("pin the damaged one: %v", err)
			}
			publish(t, s, 4, map[string]string{"a": "4"}) // goes on
		})
	}
}

// swapManifest puts the manifest of another checkpoint at p.
func swapManifest(p string) error {
	data, err := encodeManifest(Manifest{ID: compose(5, 5, 5), Kind: "sql"})
	if err != nil {
		return err
	}
	return os.WriteFile(p, data, 0o600)
}

// CASES A48
func TestANewerFormatStopsBeforeAnythingIsTouched(t *testing.T) {
	path := t.TempDir()
	s := open(t, path).Checkpoints()
	m := publish(t, s, 1, map[string]string{"a": "1"})
	publish(t, s, 2, map[string]string{"a": "2"})
	file := filepath.Join(path, "checkpoints", m.ID.String(), manifestName)
	if err := os.WriteFile(file, []byte(`{"format":2,"anything":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var format *FormatError
	if _, err := s.List(t.Context()); !errors.As(err, &format) || format.Got != 2 {
		t.Errorf("list: %v", err)
	}
	if gone, err := s.Collect(1); !errors.As(err, &format) || len(gone) > 0 {
		t.Errorf("collect: %v %v", gone, err)
	}
}

func TestReadingWritesNothing(t *testing.T) {
	path := t.TempDir()
	s := open(t, path).Checkpoints()
	publish(t, s, 1, map[string]string{"a": "1"})
	pull, err := s.BeginAs(pulledID())
	if err != nil {
		t.Fatal(err)
	}
	pull.Close()
	if err := os.Mkdir(filepath.Join(s.root, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, path)
	p, err := s.PinNewest()
	if err != nil {
		t.Fatal(err)
	}
	list(t, s)
	if err := verifyPinned(t.Context(), p); err != nil {
		t.Error(err)
	}
	p.Release()
	if after := snapshot(t, path); before != after {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// snapshot is every path with its size, mode and mtime.
func snapshot(t *testing.T, root string) string {
	t.Helper()
	var b bytes.Buffer
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		b.WriteString(path + " " + fs.FormatFileInfo(info) + info.ModTime().Format(" .000000000") + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// CASES A6
func TestAPinnedCheckpointIsNotCollectedUntilItsLastRelease(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	old := publish(t, s, 1, map[string]string{"a": "1"})
	first, err := s.PinNewest()
	if err != nil || first.Manifest().ID != old.ID {
		t.Fatal(err)
	}
	second, err := s.Pin(old.ID)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, s, 2, map[string]string{"a": "2"})
	publish(t, s, 3, map[string]string{"a": "3"})
	first.Release()
	first.Release() // does not take the second one's pin
	if gone, err := s.Collect(1); err != nil || len(gone) != 1 {
		t.Fatal(gone, err)
	}
	if err := verifyPinned(t.Context(), second); err != nil {
		t.Error(err)
	}
	second.Release()
	if gone, err := s.Collect(1); err != nil || !slices.Equal(gone, []uuid.UUID{old.ID}) {
		t.Errorf("removed %v, %v", gone, err)
	}
	if got := steps(list(t, s)); !slices.Equal(got, []uint64{3}) {
		t.Errorf("%v stay", got)
	}
}

// CASES A33
func TestCollectKeepsTheNewestAndAtLeastOne(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	for step := range uint64(5) {
		publish(t, s, step, map[string]string{"a": "1"})
	}
	for _, keep := range []int{0, -1} {
		if gone, err := s.Collect(keep); err == nil || len(gone) > 0 {
			t.Errorf("keep %d: removed %v, %v", keep, gone, err)
		}
	}
	gone, err := s.Collect(2)
	if err != nil || len(gone) != 3 {
		t.Errorf("removed %v, %v", gone, err)
	}
	if got := steps(list(t, s)); !slices.Equal(got, []uint64{3, 4}) {
		t.Errorf("%v stay", got)
	}
	if names := entries(t, s.root); len(names) != 2 {
		t.Errorf("left: %v", names)
	}
}

func TestCollectSparesWhatItIsToldTo(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	known := publish(t, s, 1, map[string]string{"a": "1"})
	for step := uint64(2); step <= 4; step++ {
		publish(t, s, step, map[string]string{"a": "1"})
	}
	if gone, err := s.Collect(1, known.ID); err != nil || len(gone) != 2 {
		t.Errorf("removed %v, %v", gone, err)
	}
	if got := steps(list(t, s)); !slices.Equal(got, []uint64{1, 4}) {
		t.Errorf("%v stay", got)
	}
	if gone, err := s.Collect(1); err != nil || !slices.Equal(gone, []uuid.UUID{known.ID}) {
		t.Errorf("removed %v, %v once nobody asks to spare it", gone, err)
	}
}

// CASES A6
func TestAPushNeverLosesItsFilesToCollection(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	publish(t, s, 0, map[string]string{"a": "0"})
	ctx, cancel := context.WithCancel(t.Context())
	var pushers sync.WaitGroup
	for range 3 {
		pushers.Go(func() {
			for ctx.Err() == nil {
				p, err := s.PinNewest()
				if err != nil {
					t.Error(err)
					return
				}
				if err := verifyPinned(t.Context(), p); err != nil {
					t.Error(err)
				}
				p.Release()
			}
		})
	}
	for step := range uint64(60) {
		publish(t, s, step+1, map[string]string{"a": "x", "b": "y"})
		if _, err := s.Collect(1); err != nil {
			t.Error(err)
		}
	}
	cancel()
	pushers.Wait()
}

func TestDiscardLeavesWhatIsSparedOrPinnedAndTakesWhatCannotBeRead(t *testing.T) {
	path := t.TempDir()
	s := open(t, path).Checkpoints()
	spared := publish(t, s, 1, map[string]string{"a": "1"})
	held := publish(t, s, 2, map[string]string{"a": "2"})
	damaged := publish(t, s, 3, map[string]string{"a": "3"})
	plain := publish(t, s, 4, map[string]string{"a": "4"})
	pin, err := s.Pin(held.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Release()
	if err := os.Truncate(filepath.Join(path, "checkpoints", damaged.ID.String(), manifestName), 9); err != nil {
		t.Fatal(err)
	}
	gone, err := s.Discard(spared.ID)
	if err != nil || len(gone) != 2 || !slices.Contains(gone, damaged.ID) || !slices.Contains(gone, plain.ID) {
		t.Fatalf("discard: %v %v", gone, err)
	}
	if all := list(t, s); len(all) != 2 || all[0].ID != spared.ID || all[1].ID != held.ID {
		t.Errorf("left: %v", all)
	}
	if next := publish(t, s, 5, map[string]string{"a": "5"}); bytes.Compare(next.ID[:], plain.ID[:]) <= 0 {
		t.Errorf("id %s after %s", next.ID, plain.ID)
	}
}

func TestWhatAStandbyPulledLastIsTheNewestWhateverItsStep(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	publish(t, s, 1, nil)
	before := publish(t, s, 5, nil)
	newest := publish(t, s, 6, nil)
	overruled := publish(t, s, 9, nil)
	pinned := publish(t, s, 8, nil)
	pin, err := s.Pin(pinned.ID)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := s.CollectFor(newest.ID, 2)
	if err != nil || len(gone) != 2 || !slices.Contains(gone, overruled.ID) {
		t.Errorf("removed %v, %v", gone, err)
	}
	pin.Release()
	if gone, err = s.CollectFor(newest.ID, 2); err != nil || !slices.Equal(gone, []uuid.UUID{pinned.ID}) {
		t.Errorf("removed %v, %v", gone, err)
	}
	if all := list(t, s); len(all) != 2 || all[0].ID != before.ID || all[1].ID != newest.ID {
		t.Errorf("left %v", all)
	}
	if gone, err := s.CollectFor(overruled.ID, 2); !errors.Is(err, ErrNone) || len(gone) > 0 || len(list(t, s)) != 2 {
		t.Errorf("removed %v, %v", gone, err)
	}
	if next := publish(t, s, 10, nil); compareIDs(next.ID, pinned.ID) <= 0 {
		t.Error("an id is minted below one that was removed")
	}
}

func TestADamagedCheckpointThatIsSetAsideIsNoCheckpointAnyMore(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	m := publish(t, s, 1, map[string]string{"a": "1"})
	pin, err := s.Pin(m.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetAside(m.ID); err == nil {
		t.Error("set aside while it is read")
	}
	pin.Release()
	if err := s.SetAside(m.ID); err != nil || len(list(t, s)) != 0 || len(entries(t, s.root)) != 1 {
		t.Errorf("%v, left %v", err, entries(t, s.root))
	}
}
