package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cairnsync/cairn/sdk"
)

func TestKeysComeInTheOrderOfTheirBytesAcrossDirectories(t *testing.T) {
	target := openTarget(t, t.TempDir())
	want := []string{"a-b", "a-b.c/x", "a.b", "a/-", "a/0/1", "a/b", "a/b0", "a0", "a_", "b"}
	for _, key := range slices.Backward(want) {
		put(t, target, key)
	}
	if got := keysOf(t, target, sdk.ListRequest{}); !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// The naive twin: sort all keys, then filter.
func TestAListingEqualsTheSortedFilteredKeys(t *testing.T) {
	dir := t.TempDir()
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		root := filepath.Join(dir, fmt.Sprint(run))
		if err := os.Mkdir(root, 0o700); err != nil {
			rt.Fatal(err)
		}
		target := openTarget(t, root)
		target.sync = func(*os.File) error { return nil }
		name := rapid.StringMatching(`[a0.-]{1,2}`).Filter(func(s string) bool { return s != "." && s != ".." })
		key := rapid.Map(rapid.SliceOfN(name, 1, 3), func(s []string) string { return strings.Join(s, "/") })
		var stored []string
		for _, k := range rapid.SliceOfN(key, 0, 12).Draw(rt, "keys") {
			_, err := target.Put(t.Context(), request(k, "x"))
			switch {
			case errors.Is(err, sdk.Unsupported): // a folder of another
			case err != nil:
				rt.Fatal(err)
			case !slices.Contains(stored, k):
				stored = append(stored, k)
			}
		}
		text := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[a0.-]{1,2}(/[a0.-]{0,2}){0,2}`), key)
		req := sdk.ListRequest{Prefix: text.Draw(rt, "prefix"), StartAfter: text.Draw(rt, "start after")}
		slices.Sort(stored)
		want := slices.DeleteFunc(stored, func(k string) bool { return !strings.HasPrefix(k, req.Prefix) || k <= req.StartAfter })
		if got := keysOf(t, target, req); !slices.Equal(got, want) {
			rt.Fatalf("%+v: %q, want %q", req, got, want)
		}
	})
}

// What comes before StartAfter is not even opened: the directory there cannot be read, and nobody notices.
func TestAListingOpensOnlyTheDirectoriesItNeeds(t *testing.T) {
	dir := t.TempDir()
	target := openTarget(t, dir)
	put(t, target, "a/1", "b/1", "b/2/3", "c/1")
	for _, trap := range []string{"a/trap", "b/1trap", "c/trap"} {
		if err := os.Symlink("nowhere", filepath.Join(dir, trap)); err != nil { // an error for whoever walks there
			t.Fatal(err)
		}
	}
	req := sdk.ListRequest{Prefix: "b/", StartAfter: "b/1trap"}
	if got := keysOf(t, target, req); !slices.Equal(got, []string{"b/2/3"}) {
		t.Errorf("%v", got)
	}
	req = sdk.ListRequest{StartAfter: "c/trap"}
	if got := keysOf(t, target, req); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

// CASES A52
func TestForeignNamesAreNotObjects(t *testing.T) {
	dir := t.TempDir()
	target := openTarget(t, dir)
	put(t, target, "a/1")
	for _, name := range []string{"lost+found/x", "a/with space", "a/" + tempPrefix + "X", "a/caf\u00e9", "a/\xff", "#recycle/1", "a/.nfs000000000000002f", ".nfsdir/1"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := keysOf(t, target, sdk.ListRequest{}); !slices.Equal(got, []string{"a/1"}) {
		t.Errorf("%v", got)
	}
	if got := keysOf(t, target, sdk.ListRequest{Prefix: "a/1/"}); len(got) > 0 {
		t.Errorf("below a file: %v", got)
	}
	for _, key := range []string{".nfs1", "a/.nfs1", ".nfs/1"} {
		_, err := target.Put(t.Context(), request(key, "x"))
		wantCode(t, err, sdk.Unsupported, key, "NFS")
	}
}

func TestAListingThatIsLeftEarlyEnds(t *testing.T) {
	target := openTarget(t, t.TempDir())
	put(t, target, "a/1", "a/2", "b")
	var seen []string
	for obj, err := range target.List(t.Context(), sdk.ListRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, obj.Key)
		if len(seen) == 2 {
			break
		}
	}
	if !slices.Equal(seen, []string{"a/1", "a/2"}) {
		t.Errorf("%v", seen)
	}
}
