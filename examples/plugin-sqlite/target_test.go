package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

func put(t *testing.T, target sdk.Target, key string, content []byte) {
	t.Helper()
	if _, err := target.Put(t.Context(), sdk.PutRequest{Key: key, Body: sdk.BytesBody(content)}); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, res sdk.GetResult) []byte {
	t.Helper()
	content, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return content
}

// calls are one of each kind.
func calls(ctx context.Context, target sdk.Target) map[string]error {
	_, putErr := target.Put(ctx, sdk.PutRequest{Key: "a", Body: sdk.BytesBody([]byte("x")), IfAbsent: true})
	_, getErr := target.Get(ctx, sdk.GetRequest{Key: "a", Length: -1})
	var listErr error
	for _, err := range target.List(ctx, sdk.ListRequest{}) {
		listErr = err
	}
	return map[string]error{"put": putErr, "get": getErr, "list": listErr, "delete": target.Delete(ctx, []string{"a"})}
}

func wantAll(t *testing.T, target sdk.Target, want sdk.Code) {
	t.Helper()
	for call, err := range calls(t.Context(), target) {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v; want %v", call, err, want)
		}
	}
}

func TestAMissingFileIsNotAnEmptyStoreAndIsNotMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "objects.db")
	target := openConfig(t, Config{Path: path, BusyTimeout: time.Second})
	wantAll(t, target, sdk.Unavailable)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat: %v; want that nothing was made", err)
	}
	put(t, openTest(t, path), "a", []byte("x")) // the disk is mounted
	res, err := target.Get(t.Context(), sdk.GetRequest{Key: "a", Length: -1})
	if err != nil {
		t.Fatal(err)
	}
	if have := read(t, res); string(have) != "x" {
		t.Errorf("%q", have)
	}
}

func TestReadsFindAnEmptyStoreAndMakeNothingUntilTheFirstPut(t *testing.T) {
	for name, prepare := range map[string]func(path string) error{
		"no file":         func(string) error { return nil },
		"a file of a Put": func(path string) error { return os.WriteFile(path, nil, 0o600) }, // that was killed
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "objects.db")
			if err := prepare(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.Stat(path)
			target := openTest(t, path)
			for range 2 {
				if _, err := target.Get(t.Context(), sdk.GetRequest{Key: "a", Length: -1}); !errors.Is(err, sdk.NotFound) {
					t.Errorf("get: %v; want NotFound", err)
				}
				for obj, err := range target.List(t.Context(), sdk.ListRequest{}) {
					t.Errorf("list: %v, %v; want nothing", obj, err)
				}
				if err := target.Delete(t.Context(), []string{"a"}); err != nil {
					t.Error(err)
				}
			}
			after, _ := os.Stat(path)
			if (before == nil) != (after == nil) || after != nil && after.Size() != 0 {
				t.Errorf("stat: %v; want that nothing was written", after)
			}
			put(t, target, "a", []byte("x"))
			if _, err := target.Get(t.Context(), sdk.GetRequest{Key: "a", Length: -1}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAFileThatWasSeenIsUnavailableWhenItIsGoneAndIsNotMadeAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "objects.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	target := openTest(t, path)
	if err := target.Delete(t.Context(), []string{"a"}); err != nil { // it looks
		t.Fatal(err)
	}
	target.db.reader.SetMaxIdleConns(0) // the next call opens the file anew
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantAll(t, target, sdk.Unavailable)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat: %v; want that nothing was made", err)
	}
}

func TestWhereNoPutCouldMakeTheFileTheStoreIsNotEmpty(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "unmounted.db"), filepath.Join(dir, "link.db")); err != nil {
		t.Fatal(err)
	}
	wantAll(t, openTest(t, filepath.Join(dir, "link.db")), sdk.Unavailable)
	wantAll(t, openTest(t, filepath.Join(dir, "missing", "objects.db")), sdk.Unavailable)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v; want that nothing was made", entries, err)
	}
}

// SQLite refuses one of two connections that make a new file a WAL database at the same moment, and does not wait for busy_timeout.
func TestTargetsMayMakeTheirFileAtTheSameMoment(t *testing.T) {
	for range 100 {
		path := filepath.Join(t.TempDir(), "objects.db")
		var makers sync.WaitGroup
		for _, key := range []string{"a", "b", "c", "d"} {
			target := openTest(t, path)
			makers.Go(func() {
				if _, err := target.Put(t.Context(), sdk.PutRequest{Key: key, Body: sdk.BytesBody([]byte(key))}); err != nil {
					t.Error(err)
				}
			})
		}
		makers.Wait()
	}
}

// CI found it: a Put that had looked before another Put of the same target made the file was told that the file cannot be opened.
func TestPutsOfOneTargetMayMakeItsFileAtTheSameMoment(t *testing.T) {
	for range 100 {
		target := openTest(t, filepath.Join(t.TempDir(), "objects.db"))
		var makers sync.WaitGroup
		for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			makers.Go(func() {
				if _, err := target.Put(t.Context(), sdk.PutRequest{Key: key, Body: sdk.BytesBody([]byte(key))}); err != nil {
					t.Error(err)
				}
				for _, err := range target.List(t.Context(), sdk.ListRequest{}) {
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		makers.Wait()
	}
}

func TestAnEmptyFileIsNotAnEmptyStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "objects.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantAll(t, openConfig(t, Config{Path: path, BusyTimeout: time.Second}), sdk.Unavailable)
}

func TestADatabaseOfAnotherProgramIsRefusedUntouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "accounts.db")
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec("CREATE TABLE accounts (n)"); err != nil {
		t.Fatal(err)
	}
	wantAll(t, openTest(t, path), sdk.InvalidConfig)
	var tables int
	if err := other.QueryRow("SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil || tables != 1 {
		t.Errorf("%d tables, %v; want the one that was there", tables, err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAFileThatIsNoDatabaseIsCorrupt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "objects.db")
	if err := os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	wantAll(t, openTest(t, path), sdk.Corrupt)
}

func TestWhileSomebodyWritesOthersReadAndNoOtherWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "objects.db")
	holder := openTest(t, path)
	put(t, holder, "a", []byte("old"))
	tx, err := holder.db.writer.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()

	other := openConfig(t, Config{Path: path, BusyTimeout: minBusy})
	if _, err = other.Put(t.Context(), sdk.PutRequest{Key: "b", Body: sdk.BytesBody([]byte("x"))}); !errors.Is(err, sdk.Unavailable) {
		t.Errorf("put: %v; want Unavailable", err)
	}
	res, err := other.Get(t.Context(), sdk.GetRequest{Key: "a", Length: -1})
	if err != nil {
		t.Fatal(err)
	}
	if have := read(t, res); string(have) != "old" {
		t.Errorf("%q", have)
	}
}

func TestABodyIsWhatGetOpenedWhateverHappensToTheKey(t *testing.T) {
	target := openTest(t, filepath.Join(t.TempDir(), "objects.db"))
	old := bytes.Repeat([]byte("old"), chunkSize)
	put(t, target, "a", old)
	res, err := target.Get(t.Context(), sdk.GetRequest{Key: "a", Length: -1})
	if err != nil {
		t.Fatal(err)
	}
	put(t, target, "a", bytes.Repeat([]byte("new"), chunkSize))
	if err := target.Delete(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, res), old) {
		t.Error("the body is not the old object")
	}
	if _, err := target.Get(t.Context(), sdk.GetRequest{Key: "a", Length: -1}); !errors.Is(err, sdk.NotFound) {
		t.Errorf("get: %v; want NotFound", err)
	}
}

func TestRangesMeetTheEdgesOfChunks(t *testing.T) {
	target := openTest(t, filepath.Join(t.TempDir(), "objects.db"))
	want := make([]byte, 3*chunkSize)
	for i := range want {
		want[i] = byte(i * 7 / 3)
	}
	put(t, target, "a", want)
	for _, offset := range []int64{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize - 1} {
		for _, length := range []int64{1, chunkSize - 1, chunkSize, chunkSize + 1, 3 * chunkSize, -1} {
			res, err := target.Get(t.Context(), sdk.GetRequest{Key: "a", Offset: offset, Length: length})
			if err != nil {
				t.Fatal(err)
			}
			end := int64(len(want))
			if length > 0 {
				end = min(end, offset+length)
			}
			if !bytes.Equal(read(t, res), want[offset:end]) {
				t.Errorf("%d bytes at %d are not those", length, offset)
			}
		}
	}
	_, err := target.Get(t.Context(), sdk.GetRequest{Key: "a", Offset: int64(len(want)), Length: -1})
	if !errors.Is(err, sdk.Corrupt) {
		t.Errorf("a range that begins after the end: %v; want Corrupt", err)
	}
}

func TestDeleteGivesRoomBackToLaterObjects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "objects.db")
	target := openTest(t, path)
	content := bytes.Repeat([]byte("x"), 4<<20)
	var size int64
	for range 8 {
		put(t, target, "a", content)
		if err := target.Delete(t.Context(), []string{"a"}); err != nil {
			t.Fatal(err)
		}
		var pages, chunks int64
		if err := target.db.reader.QueryRow("SELECT page_count, (SELECT count(*) FROM chunks) FROM pragma_page_count").Scan(&pages, &chunks); err != nil {
			t.Fatal(err)
		}
		if size == 0 {
			size = pages
		}
		if chunks != 0 || pages > size {
			t.Errorf("%d chunks are left, %d pages; the first round took %d", chunks, pages, size)
		}
	}
}

func TestConfigurationFaultsNameTheirAttribute(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"a relative path", Config{Path: "objects.db", BusyTimeout: time.Second}, "path"},
		{"a folder", Config{Path: "/srv/", BusyTimeout: time.Second}, "path"},
		{"a timeout that gives nobody a chance", Config{Path: "/srv/o.db", BusyTimeout: time.Millisecond}, "busy_timeout"},
		{"a timeout longer than the host waits", Config{Path: "/srv/o.db", BusyTimeout: time.Hour}, "busy_timeout"},
		{"all is well", Config{Path: "/srv/o.db", BusyTimeout: time.Second}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var fault *sdk.Error
			if errors.As(validate(c.cfg), &fault) != (c.want != "") || fault != nil && fault.Attribute != c.want {
				t.Errorf("%v; want a fault of %q", fault, c.want)
			}
		})
	}
}

func TestAPathMayHoldWhatAURLDoesNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "50% of?mode=ro#1.db")
	put(t, openTest(t, path), "a", []byte("x"))
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}
