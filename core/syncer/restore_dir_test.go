package syncer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// CASES A55
func TestHolesStayHoles(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, everything())
	dir := filepath.Join(t.TempDir(), "restored")
	if _, err := readerOf(t, a.mem).RestoreDir(t.Context(), RestoreRequest{Dir: dir, Spool: spoolOf(t)}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if used := info.Sys().(*syscall.Stat_t).Blocks * 512; used > 3*mib {
		t.Fatalf("a file of %d bytes with 1 MiB of data takes %d on disk", info.Size(), used)
	}
}

// CASES A50
func TestARestoreGoesOnlyWhereNothingIs(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, everything())
	r, spool, parent := readerOf(t, a.mem), spoolOf(t), t.TempDir()
	full, file, link := filepath.Join(parent, "full"), filepath.Join(parent, "file"), filepath.Join(parent, "link")
	for _, err := range []error{
		os.Mkdir(full, 0o700), os.WriteFile(filepath.Join(full, "x"), nil, 0o600), os.WriteFile(file, nil, 0o600), os.Symlink(full, link),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{full, file, link} {
		if _, err := r.RestoreDir(t.Context(), RestoreRequest{Dir: dir, Spool: spool}); err == nil || !strings.Contains(err.Error(), "empty directory") &&
			!strings.Contains(err.Error(), "not a directory") {
			t.Errorf("restore to %s: %v", dir, err)
		}
	}
	empty, fresh := filepath.Join(parent, "empty"), filepath.Join(parent, "new/deeper/dir")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{empty, fresh} {
		done, err := r.RestoreDir(t.Context(), RestoreRequest{Dir: dir, Spool: spool})
		if err != nil || done.Commit.Checkpoint.Step != 10 {
			t.Fatalf("restore to %s: %+v, %v", dir, done, err)
		}
		sameFiles(t, dir, everything())
	}
	if left, err := filepath.Glob(filepath.Join(parent, ".*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// CASES A54
func TestARestoreThatIsCutOffThreeTimesHasOneStagingDirectoryAndGoesOn(t *testing.T) {
	a := newAuthor(t)
	files := content{"a": noise(1, 12*mib), "b": noise(2, 12*mib), "c": noise(3, 12*mib), "d": noise(4, 12*mib)}
	c := a.commit(10, files)
	spool, parent := spoolOf(t), t.TempDir()
	dir := filepath.Join(parent, "restored")
	var read atomic.Int64
	for round := 1; round <= 4; round++ {
		var gets atomic.Int64
		store := counting(a.mem, &read)
		store.Before = func(_ context.Context, c sdktest.Call) error {
			if strings.Contains(c.Key, "/pack/") && gets.Add(1) > 1 && round < 4 {
				return &sdk.Error{Code: sdk.PermissionDenied}
			}
			return nil
		}
		_, err := readerOf(t, store).RestoreDir(t.Context(), RestoreRequest{Dir: dir, Spool: spool})
		entries, readErr := os.ReadDir(parent)
		if readErr != nil || len(entries) != 1 {
			t.Fatalf("round %d: %v beside the destination, %v", round, entries, readErr)
		}
		if done := round >= len(c.Packs); done && err != nil {
			t.Fatalf("round %d: %v", round, err)
		} else if done {
			break
		}
		if _, statErr := os.Stat(dir); err == nil || !errors.Is(statErr, fs.ErrNotExist) {
			t.Fatalf("round %d: the destination is there too early: %v, %v", round, err, statErr)
		}
	}
	sameFiles(t, dir, files)
	if read.Load() != c.Totals.Stored {
		t.Errorf("%d bytes read in all rounds, the commit has %d", read.Load(), c.Totals.Stored)
	}
}

func TestTwoRestoresToOnePlaceDoNotMix(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "restored")
	first, err := openStaging(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openStaging(dir); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("a second restore to the same place: %v", err)
	}
	first.close()
	second, err := openStaging(dir)
	if err != nil {
		t.Fatal(err)
	}
	second.close()
}

// CASES A50
func TestAPlantedStagingLinkIsNotFollowed(t *testing.T) {
	parent, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(parent, ".restored.cairn-restore")); err != nil {
		t.Fatal(err)
	}
	if _, err := openStaging(filepath.Join(parent, "restored")); err == nil {
		t.Fatal("a link is taken for the staging directory")
	}
}
