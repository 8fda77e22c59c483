package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cairnsync/cairn/sdk"
)

// asNobody runs f with the file rights of a user that owns nothing, on a thread that ends with it: root may read everything.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread is not used again
		if os.Geteuid() == 0 {
			if err := unix.Setfsuid(65534); err != nil {
				t.Error(err)
				return
			}
		}
		f()
	}()
	<-done
}

// readableDir is a temporary directory that another user can enter.
func readableDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAnUnreadableDirectoryIsAnErrorAndNoGap(t *testing.T) {
	dir := readableDir(t)
	target := openTarget(t, dir)
	put(t, target, "a", "locked/b", "z")
	if err := os.Chmod(filepath.Join(dir, "locked"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(dir, "locked"), 0o700)
	asNobody(t, func() {
		var keys []string
		var listed error
		for obj, err := range target.List(t.Context(), sdk.ListRequest{}) {
			if err != nil {
				listed = err
				continue
			}
			keys = append(keys, obj.Key)
		}
		wantCode(t, listed, sdk.PermissionDenied, "locked", "let the user that runs cairn")
		if !slices.Equal(keys, []string{"a"}) {
			t.Errorf("listed %v", keys)
		}
		_, err := target.Get(t.Context(), sdk.GetRequest{Key: "locked/b", Length: -1})
		wantCode(t, err, sdk.PermissionDenied, "locked/b")
		_, err = target.Put(t.Context(), request("new", "x"))
		wantCode(t, err, sdk.PermissionDenied, "new")
		wantCode(t, target.Delete(t.Context(), []string{"z"}), sdk.PermissionDenied, "z")
	})
}

// TestAFullDiskIsNoSpaceAndEverythingElseGoesOn fills a real file system of 1 MiB, mounted in a mount namespace of a child, so that
// nothing of it is left behind, whatever happens.
func TestAFullDiskIsNoSpaceAndEverythingElseGoesOn(t *testing.T) {
	if dir := os.Getenv("FILE_TEST_FULL"); dir != "" {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
			t.Fatalf("mount a tmpfs of 1 MiB: %v", err)
		}
		fillDisk(t, dir)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "FILE_TEST_FULL="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Unshareflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Fatalf("this test needs a mount namespace of its own (root, or unprivileged user namespaces): %v\n%s", err, out)
	}
}

func fillDisk(t *testing.T, dir string) {
	target := openTarget(t, dir)
	put(t, target, "commit/1")
	large := string(bytes.Repeat([]byte("x"), 600<<10))
	if _, err := target.Put(t.Context(), request("pack/1/first", large)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"pack/1/second", "pack/1/first"} { // a new one, and one in place of the old
		_, err := target.Put(t.Context(), request(key, large))
		wantCode(t, err, sdk.NoSpace, key, "free space")
	}
	if got := files(t, dir); !slices.Equal(got, []string{"commit/1", "pack/1/first"}) {
		t.Errorf("on the full disk: %v", got)
	}
	if got := keysOf(t, target, sdk.ListRequest{}); len(got) != 2 {
		t.Errorf("listed %v", got)
	}
	if err := target.Delete(t.Context(), []string{"pack/1/first"}); err != nil {
		t.Error(err)
	}
	if _, err := target.Put(t.Context(), request("pack/1/second", large)); err != nil {
		t.Error(err)
	}
}

// The operator has made the directory where the user may only pass: such a user cannot have left it without a sync.
func TestADirectoryUnderOneThatCannotBeReadIsPutTo(t *testing.T) {
	dir := readableDir(t)
	parent := filepath.Join(dir, "parent")
	made := filepath.Join(parent, "made")
	for _, step := range []error{os.Mkdir(parent, 0o700), os.Mkdir(made, 0o700), os.Chmod(made, 0o777), os.Chmod(parent, 0o311)} {
		if step != nil {
			t.Fatal(step)
		}
	}
	defer os.Chmod(parent, 0o700)
	asNobody(t, func() {
		if _, err := openConfig(t, Config{Path: made, Create: true}).Put(t.Context(), request("k", "x")); err != nil {
			t.Error(err)
		}
		missing := openConfig(t, Config{Path: filepath.Join(parent, "missing"), Create: true})
		_, err := missing.Put(t.Context(), request("k", "x"))
		wantCode(t, err, sdk.PermissionDenied, "k", "cannot be made", "mkdir -p", "errno")
		for _, err := range reads(t.Context(), missing) {
			wantCode(t, err, sdk.Unavailable, "missing")
		}
	})
}
