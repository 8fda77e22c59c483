package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOnlyAFullDiskIsExplainedAndOnlyOnce(t *testing.T) {
	for _, cause := range []error{nil, errors.New("no space left on device"), syscall.EIO} {
		if got := Explain("/data", cause); got != cause { //nolint:errorlint // the very same
			t.Errorf("%v became %v", cause, got)
		}
	}
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		met := fmt.Errorf("copy: %w", &fs.PathError{Op: "write", Path: "/data/x", Err: cause})
		got := Explain("/elsewhere", Explain("/data", met))
		want := met.Error() + ": the disk of /data is full: free some space there"
		if got.Error() != want || !errors.Is(got, cause) {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

func TestAPublicationThatFindsTheDiskFullSaysSoAndGivesItsSpaceBack(t *testing.T) {
	d, r := openRecorded(t)
	s := d.Checkpoints()
	old := publish(t, s, 1, map[string]string{"a": "old"})
	draft, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	write(t, draft.Dir(), map[string]string{"a": "new"})
	r.fail = func(event string) error {
		if strings.HasSuffix(event, manifestName) {
			return &fs.PathError{Op: "sync", Path: event, Err: syscall.ENOSPC}
		}
		return nil
	}
	_, err = draft.Publish(t.Context(), metaAt(2))
	if told := (*FullError)(nil); !errors.As(err, &told) || told.Path != filepath.Join(r.root, "p/checkpoints") {
		t.Fatalf("publish: %v", err)
	}
	if err := draft.Close(); err != nil {
		t.Fatal(err)
	}
	if names := entries(t, filepath.Join(r.root, "p/checkpoints")); len(names) != 1 || !strings.Contains(names[0], old.ID.String()) {
		t.Fatalf("on disk are %v", names)
	}
	r.fail = nil
	publish(t, s, 2, map[string]string{"a": "new"})
}

func TestAStateFileThatFindsTheDiskFullStaysWhatItWas(t *testing.T) {
	r := &recorder{root: t.TempDir()}
	path := filepath.Join(r.root, "pipeline.json")
	if err := replaceFile(r, path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	r.fail = func(string) error { return syscall.ENOSPC }
	err := replaceFile(r, path, []byte("new"))
	if told := (*FullError)(nil); !errors.As(err, &told) {
		t.Fatalf("replace: %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != "old" || err != nil {
		t.Errorf("it holds %q, %v", text, err)
	}
	if names := entries(t, r.root); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
}
