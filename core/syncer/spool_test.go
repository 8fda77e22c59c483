package syncer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

func TestASpoolIsPrivateAndEmptiedAtStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s, err := OpenSpool(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Create(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	left := f.Name()
	if err := errors.Join(f.File.Close(), os.Mkdir(filepath.Join(dir, "sub"), 0o700), os.Chmod(dir, 0o755), s.Close()); err != nil { // as a crash leaves it
		t.Fatal(err)
	}
	s, err = OpenSpool(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of the last run is still there: %v", err)
	}
}

func TestADirectoryOfSomebodyElseIsNotEmptied(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "thesis.tex")
	if err := os.WriteFile(precious, []byte("ten years"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSpool(dir); err == nil || !strings.Contains(err.Error(), "thesis.tex") || !strings.Contains(err.Error(), "spool_dir") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestTwoHostsDoNotShareASpool(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenSpool(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := OpenSpool(dir); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("error %v", err)
	}
}

// CASES A63
func TestAFullSpoolBlocksUntilAFileIsClosedOrTheCallerGivesUp(t *testing.T) {
	s, err := OpenSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all, err := s.Create(t.Context(), SpoolLimit)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Create(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	got := make(chan error, 1)
	go func() {
		f, err := s.Create(t.Context(), SpoolLimit/2)
		if err == nil {
			err = f.Close()
		}
		got <- err
	}()
	all.Shrink(SpoolLimit / 2)
	if err := <-got; err != nil {
		t.Error(err)
	}
	name := all.Name()
	if err := errors.Join(all.Close(), all.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a closed file is still there: %v", err)
	}
	whole, err := s.Create(t.Context(), SpoolLimit)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if _, err := s.Create(t.Context(), SpoolLimit+1); err == nil {
		t.Error("more than the spool can ever hold was promised")
	}
}

func TestAFullDiskUnderTheSpoolIsNamedWithItsRemedy(t *testing.T) {
	err := spoolError("write spool file", &fs.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC})
	if sdk.CodeOf(err) != sdk.NoSpace || !errors.Is(err, sdk.NoSpace) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("code %s", sdk.CodeOf(err))
	}
	if text := err.Error(); !strings.Contains(text, "host.spool_dir") || strings.Contains(text, "on the store") {
		t.Errorf("text %q", text)
	}
	if other := spoolError("write spool file", syscall.EIO); sdk.CodeOf(other) != sdk.Internal {
		t.Errorf("an I/O error has the code %s", sdk.CodeOf(other))
	}
}

// What a plugin leaves in the spool must not keep the next host from starting.
func TestASpoolIsEmptiedWhateverAPluginLeftInIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	spool, err := OpenSpool(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(spool.Close(), os.MkdirAll(dir+"/a/b/c", 0o700), os.Chmod(dir+"/a/b", 0), os.Chmod(dir+"/a", 0), os.Symlink("/", dir+"/part-1")); err != nil {
		t.Fatal(err)
	}
	if spool, err = OpenSpool(dir); err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	if entries, err := os.ReadDir(spool.Dir()); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// It may take away all that it sees, too.
func TestAPluginThatRemovesAllInTheSpoolKeepsNoHostFromStarting(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	spool, err := OpenSpool(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := os.ReadDir(spool.Dir())
	if err != nil || len(seen) != 0 {
		t.Errorf("a plugin sees %v, %v", seen, err)
	}
	left := filepath.Join(spool.Dir(), "part-of-a-plugin")
	if err := errors.Join(os.RemoveAll(spool.Dir()), os.Mkdir(spool.Dir(), 0o755), os.WriteFile(left, []byte("x"), 0o600), spool.Close()); err != nil {
		t.Fatal(err)
	}
	if spool, err = OpenSpool(dir); err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what it left is still there: %v", err)
	}
}
