package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/cairnsync/cairn/sdk"
)

// TestMain lets the test binary play another process that works on the same directory: see process_test.go.
func TestMain(m *testing.M) {
	if role := os.Getenv("FILE_TEST_ROLE"); role != "" {
		if err := play(role, os.Getenv("FILE_TEST_DIR")); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// openTarget goes the way of a plugin: the configuration, then Open.
func openTarget(t *testing.T, dir string) *target {
	t.Helper()
	return openConfig(t, Config{Path: dir})
}

func openConfig(t *testing.T, cfg Config) *target {
	t.Helper()
	p := plugin(time.Now)
	if err := p.Validate(cfg); err != nil {
		t.Fatal(err)
	}
	opened, err := p.Open(t.Context(), sdk.Env{Log: hclog.NewNullLogger()}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.(*target).Close() }) // always nil
	return opened.(*target)
}

func put(t *testing.T, target sdk.Target, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, err := target.Put(t.Context(), request(key, "content of "+key)); err != nil {
			t.Fatal(err)
		}
	}
}

func request(key, content string) sdk.PutRequest {
	return sdk.PutRequest{Key: key, Body: sdk.BytesBody([]byte(content))}
}

func keysOf(t *testing.T, target sdk.Target, req sdk.ListRequest) []string {
	t.Helper()
	var keys []string
	for obj, err := range target.List(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, obj.Key)
	}
	return keys
}

// wantCode checks the code and that the message names the key and, where something can be done, says so.
func wantCode(t *testing.T, err error, code sdk.Code, text ...string) {
	t.Helper()
	if err == nil || sdk.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
		return
	}
	var e *sdk.Error
	if !errors.As(err, &e) {
		t.Errorf("%v is no *sdk.Error", err)
		return
	}
	for _, want := range text {
		if all := e.Error() + " " + e.Hint + " " + e.Attribute; !strings.Contains(all, want) {
			t.Errorf("%q does not say %q", all, want)
		}
	}
}

// files are all regular files below dir, whatever their names.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}
