package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

// recordSyncs makes the target note what it syncs, and whether the object was visible at that moment.
func recordSyncs(target *target, key string) *[]string {
	events := &[]string{}
	target.sync = func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		what := "file"
		if info.IsDir() {
			rel, err := filepath.Rel(target.path, f.Name())
			if err != nil {
				return err
			}
			what = "dir " + rel
		}
		if _, err := os.Stat(filepath.Join(target.path, key)); err == nil {
			what += " (visible)"
		}
		*events = append(*events, what)
		return f.Sync()
	}
	return events
}

// CASES A4, A23, A74
func TestAPutSyncsTheFileThenNamesItThenSyncsItsDirectory(t *testing.T) {
	for _, ifAbsent := range []bool{false, true} {
		target := openTarget(t, t.TempDir())
		events := recordSyncs(target, "p/commit/1")
		req := request("p/commit/1", "x")
		req.IfAbsent = ifAbsent
		if _, err := target.Put(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		// The new directories are durable before a file is in them.
		want := []string{"dir .", "dir p", "file", "dir p/commit (visible)"}
		if !slices.Equal(*events, want) {
			t.Errorf("if absent %t: %q, want %q", ifAbsent, *events, want)
		}
		*events = nil
		put(t, target, "p/commit/2")
		if want := []string{"file (visible)", "dir p/commit (visible)"}; !slices.Equal(*events, want) {
			t.Errorf("in a known directory: %q, want %q", *events, want)
		}
	}
}

// CASES A4
func TestExistsIsToldOnlyWhenTheOthersObjectIsDurable(t *testing.T) {
	dir := t.TempDir()
	put(t, openTarget(t, dir), "epoch/1")
	target := openTarget(t, dir) // another process: its Put saw no sync of the first one's directory
	events := recordSyncs(target, "epoch/1")
	req := request("epoch/1", "x")
	req.IfAbsent = true
	_, err := target.Put(t.Context(), req)
	wantCode(t, err, sdk.Exists, "epoch/1")
	if want := []string{"dir epoch (visible)"}; !slices.Equal(*events, want) {
		t.Errorf("%q, want %q", *events, want)
	}
}

func TestADeleteIsDurable(t *testing.T) {
	target := openTarget(t, t.TempDir())
	put(t, target, "a/1", "a/2", "a/3", "b/c/1")
	events := recordSyncs(target, "none")
	if err := target.Delete(t.Context(), []string{"a/1", "a/2", "b/c/1"}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(*events)
	if want := []string{"dir .", "dir a"}; !slices.Equal(*events, want) { // b/c and b are gone
		t.Errorf("%q, want %q", *events, want)
	}
}

// CASES A23
func TestAFailedSyncIsAFailedPut(t *testing.T) {
	for name, row := range map[string]struct {
		fails func(fs.FileInfo) bool
		errno syscall.Errno
		code  sdk.Code
		left  []string
	}{
		"of the file":      {func(i fs.FileInfo) bool { return !i.IsDir() }, syscall.EIO, sdk.Unavailable, nil},
		"disk full":        {func(i fs.FileInfo) bool { return !i.IsDir() }, syscall.ENOSPC, sdk.NoSpace, nil},
		"of the directory": {fs.FileInfo.IsDir, syscall.EIO, sdk.Unavailable, []string{"k"}}, // may exist or not: the host reads it back
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			target := openTarget(t, dir)
			target.sync = func(f *os.File) error {
				if info, err := f.Stat(); err != nil || row.fails(info) {
					return &fs.PathError{Op: "sync", Path: f.Name(), Err: errors.Join(err, row.errno)}
				}
				return nil
			}
			_, err := target.Put(t.Context(), request("k", "x"))
			wantCode(t, err, row.code, "k")
			if got := files(t, dir); !slices.Equal(got, row.left) {
				t.Errorf("left: %v", got)
			}
		})
	}
}

func TestARefusedLinkSaysWhatTheFileSystemLacks(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EPERM, syscall.ENOTSUP, syscall.ENOSYS} {
		err := failed("put", "k", linkError(&os.LinkError{Op: "link", Old: "t", New: "k", Err: errno}))
		wantCode(t, err, sdk.Unsupported, "k", "hard links", "ext4")
	}
}

func TestEveryErrnoHasItsCode(t *testing.T) {
	for errno, want := range map[syscall.Errno]sdk.Code{
		syscall.ENOSPC: sdk.NoSpace, syscall.EDQUOT: sdk.NoSpace,
		syscall.EACCES: sdk.PermissionDenied, syscall.EPERM: sdk.PermissionDenied, syscall.EROFS: sdk.PermissionDenied,
		syscall.EIO: sdk.Unavailable, syscall.ESTALE: sdk.Unavailable, syscall.ENOTCONN: sdk.Unavailable, syscall.EMFILE: sdk.Unavailable,
		syscall.ENOENT: sdk.Unavailable, syscall.ENAMETOOLONG: sdk.Unsupported, syscall.EFBIG: sdk.Unsupported,
		syscall.EINVAL: sdk.Internal,
	} {
		err := failed("put", "k", &fs.PathError{Op: "open", Path: "/x", Err: errno})
		if got := sdk.CodeOf(err); got != want || !errors.Is(err, errno) {
			t.Errorf("%v is %s, want %s", errno, got, want)
		}
		if want != sdk.Internal && !strings.Contains(err.Error(), "errno") {
			t.Errorf("%v does not give the number", err)
		}
	}
}
