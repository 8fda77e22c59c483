package pluginhost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wayTo makes a tight directory with one more in it, which holds a file, and answers all three.
func wayTo(t *testing.T) (outer, inner, file string) {
	t.Helper()
	outer = shortDir(t)
	inner = filepath.Join(outer, "bin")
	file = filepath.Join(inner, "cairn-plugin-x")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	return outer, inner, file
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, path string) string {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEveryStepOnTheWayToAPluginIsTheOwnersOrRoots(t *testing.T) {
	for _, row := range []struct {
		name    string
		path    func(t *testing.T) string
		refused string // in the error, "" = trusted
	}{
		{"a tight file in tight directories below a sticky one", func(t *testing.T) string {
			_, _, file := wayTo(t)
			return file
		}, ""},
		{"a directory further up that all may write", func(t *testing.T) string {
			outer, _, file := wayTo(t)
			chmod(t, outer, 0o777)
			return file
		}, "on the way to it is writable by others than its owner (mode 0777)"},
		{"a directory further up that its group may write", func(t *testing.T) string {
			outer, _, file := wayTo(t)
			chmod(t, outer, 0o775)
			return file
		}, "mode 0775"},
		{"a sticky directory further up", func(t *testing.T) string {
			outer, _, file := wayTo(t)
			chmod(t, outer, 0o777|os.ModeSticky)
			return file
		}, ""},
		{"a sticky directory that holds the plugin", func(t *testing.T) string {
			_, inner, file := wayTo(t)
			chmod(t, inner, 0o777|os.ModeSticky)
			return file
		}, "bin on the way to it is writable"},
		{"a link into a loose directory", func(t *testing.T) string {
			_, inner, file := wayTo(t)
			chmod(t, inner, 0o777)
			return symlink(t, file, filepath.Join(shortDir(t), "link"))
		}, "bin on the way to it is writable"},
		{"a link that lies in a loose directory", func(t *testing.T) string {
			outer, _, file := wayTo(t)
			loose := filepath.Join(outer, "loose")
			link := filepath.Join(loose, "link")
			if err := os.Mkdir(loose, 0o700); err != nil {
				t.Fatal(err)
			}
			symlink(t, file, link)
			chmod(t, loose, 0o777)
			return link
		}, "loose on the way to it is writable"},
		{"a link in the middle, with .. in it", func(t *testing.T) string {
			outer, _, _ := wayTo(t)
			if err := os.Mkdir(filepath.Join(outer, "etc"), 0o755); err != nil {
				t.Fatal(err)
			}
			symlink(t, "../bin/.", filepath.Join(outer, "etc", "current"))
			return filepath.Join(outer, "etc", "current", "cairn-plugin-x")
		}, ""},
		{"a link in the middle that leads through a loose directory", func(t *testing.T) string {
			outer, inner, _ := wayTo(t)
			target, _, _ := wayTo(t)
			symlink(t, target, filepath.Join(outer, "current"))
			chmod(t, target, 0o777)
			_ = inner
			return filepath.Join(outer, "current", "bin", "cairn-plugin-x")
		}, "mode 0777"},
		{"a link to itself", func(t *testing.T) string {
			path := filepath.Join(shortDir(t), "loop")
			return symlink(t, path, path)
		}, "too many"},
		{"a link to nothing", func(t *testing.T) string {
			return symlink(t, "/nowhere/x", filepath.Join(shortDir(t), "dangling"))
		}, "cannot be checked, because of /nowhere"},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := row.path(t)
			err := checkTrust(path, os.Geteuid())
			if row.refused == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), row.refused) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %q", err, row.refused)
			}
		})
	}
}

// A file of root is trusted whoever runs the host; to have a foreign one, root gives it away and anybody else asks as if it were another.
func TestAStepThatBelongsToAnotherUserIsRefused(t *testing.T) {
	us, give := os.Geteuid(), func(path string) {
		if err := os.Lchown(path, 12345, -1); err != nil {
			t.Fatal(err)
		}
	}
	if us != 0 {
		us, give = us+1, func(string) {}
	}
	_, inner, file := wayTo(t)
	link := symlink(t, file, filepath.Join(shortDir(t), "link"))
	for _, step := range []string{link, inner, file} { // in the order in which the way back would hide the fault
		give(step)
		path := file
		if step == link {
			path = link
		}
		err := checkTrust(path, us)
		if err == nil || !strings.Contains(err.Error(), "owned by user") || !strings.Contains(err.Error(), "chown -h") {
			t.Errorf("%s given away: %v", step, err)
		}
	}
}

func TestAPluginIsNeverLookedForInAPath(t *testing.T) {
	_, dir, _ := wayTo(t)
	t.Setenv("PATH", dir)
	t.Chdir(dir)
	path, err := Catalog{Dir: filepath.Join(dir, "none")}.Path("x")
	if err != nil || path != filepath.Join(dir, "none", "cairn-plugin-x") {
		t.Fatalf("%s, %v", path, err)
	}
	opts, _ := testOptions(t)
	spec := testSpec(t, "good")
	spec.Path = path
	_, _, err = Open(t.Context(), spec, opts)
	wantStartError(t, err, CauseNotFound)
	for _, bare := range []string{"cairn-plugin-x", "./cairn-plugin-x", ""} {
		spec.Path = bare
		if _, err := New(spec, opts); err == nil || !strings.Contains(err.Error(), "not absolute") {
			t.Errorf("%q: %v", bare, err)
		}
	}
}
