package wipe_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cairnsync/cairn/internal/wipe"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// nest makes folders in each other, as deep as no path need name.
func nest(t *testing.T, path string, depth int) {
	t.Helper()
	must(t, os.MkdirAll(path, 0o700))
	at, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(at, "d", 0o700))
		next, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err, unix.Close(at))
		at = next
	}
	must(t, unix.Close(at))
}

func TestATreeIsRemovedWhateverItLooksLike(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("of value"), 0o600))
	for name, grow := range map[string]func(path string){
		"nothing at all": func(string) {},
		"a file":         func(path string) { must(t, os.WriteFile(path, nil, 0o400)) },
		"a link":         func(path string) { must(t, os.Symlink(filepath.Dir(outside), path)) },
		"links inside": func(path string) {
			must(t, os.MkdirAll(path+"/a/b", 0o700), os.Symlink(filepath.Dir(outside), path+"/a/b/c"), os.Symlink("/", path+"/a/d"), os.Symlink("a", path+"/e"))
		},
		"closed folders": func(path string) {
			must(t, os.MkdirAll(path+"/a/b/c/d", 0o700), os.Chmod(path+"/a/b/c", 0), os.Chmod(path+"/a/b", 0), os.Chmod(path+"/a", 0), os.Chmod(path, 0))
		},
		"more than a batch": func(path string) {
			must(t, os.MkdirAll(path+"/a/b", 0o700), unix.Mkfifo(path+"/fifo", 0o600))
			for i := range 1100 {
				must(t, os.WriteFile(fmt.Sprintf("%s/a/b/%d", path, i), nil, 0))
			}
		},
		"a nest": func(path string) { nest(t, path, 50) },
	} {
		path := filepath.Join(t.TempDir(), "tree")
		grow(path)
		if err := wipe.Tree(path, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: still there: %v", name, err)
		}
	}
	if content, err := os.ReadFile(outside); err != nil || string(content) != "of value" {
		t.Errorf("outside: %q, %v", content, err)
	}
}

func TestAStoppedRemovalIsGoneOnWithLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tree")
	nest(t, path, 3)
	stop := make(chan struct{})
	close(stop)
	if err := wipe.Tree(path, stop); !errors.Is(err, wipe.ErrStopped) {
		t.Errorf("got %v", err)
	}
	if err := wipe.Tree(path, nil); err != nil {
		t.Error(err)
	}
}
