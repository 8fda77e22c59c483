package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

func TestOnlyAnAbsolutePathBelowTheRootIsAccepted(t *testing.T) {
	for path, good := range map[string]bool{"/backups": true, "/a/b/": true, "": false, "backups": false, "./backups": false, "/": false, "/..": false} {
		err := validate(Config{Path: path})
		if good && err != nil {
			t.Errorf("%q: %v", path, err)
		}
		if !good {
			wantCode(t, err, sdk.InvalidConfig, "path", "abspath")
		}
	}
}

func TestTheConfigIsDescribedForTheHost(t *testing.T) {
	schema, err := sdk.SchemaOf[Config]()
	if err != nil {
		t.Fatal(err)
	}
	if a, ok := schema.Attribute("path"); !ok || !a.Required || !a.Folder || a.Type != sdk.TypeString || a.Doc == "" {
		t.Errorf("path: %+v", a)
	}
	if a, ok := schema.Attribute("create"); !ok || a.Required || a.Type != sdk.TypeBool || a.Doc == "" {
		t.Errorf("create: %+v", a)
	}
}

// An unmounted disk must not look like an empty store.
// CASES A42
func TestAMissingDirectoryIsUnavailableAndNeverEmpty(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	target := openTarget(t, dir) // which must succeed
	all := func(t *testing.T, code sdk.Code, text ...string) {
		t.Helper()
		_, err := target.Put(t.Context(), request("k", "x"))
		wantCode(t, err, code, text...)
		_, err = target.Get(t.Context(), sdk.GetRequest{Key: "k", Length: -1})
		wantCode(t, err, code, text...)
		wantCode(t, target.Delete(t.Context(), []string{"k"}), code, text...)
		var listed error
		for _, err := range target.List(t.Context(), sdk.ListRequest{}) {
			listed = err
		}
		wantCode(t, listed, code, text...)
	}
	t.Run("missing", func(t *testing.T) { all(t, sdk.Unavailable, "missing", "mounted", "mkdir -p "+dir) })
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was made: %v", err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("a file", func(t *testing.T) { all(t, sdk.InvalidConfig, "path", "directory") })
	if err := errors.Join(os.Remove(dir), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	put(t, target, "k") // mounted: the same target works
}

func TestADirectoryThatVanishesDuringACallIsUnavailable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	target := openTarget(t, dir)
	for name, vanish := range map[string]func() error{
		"moved away": func() error { return os.Rename(dir, dir+"2") },
		"replaced":   func() error { return errors.Join(os.Rename(dir, dir+"3"), os.Mkdir(dir, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			root, err := target.open()
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if err := vanish(); err != nil {
				t.Fatal(err)
			}
			_, _, err = target.openObject(root, "k")
			wantCode(t, err, sdk.Unavailable, "missing")
		})
	}
}
