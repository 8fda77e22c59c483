package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

func TestAnObjectIsAPrivateFileNamedByItsKey(t *testing.T) {
	dir := t.TempDir()
	put(t, openTarget(t, dir), "p/commit/1.json.zst")
	info, err := os.Stat(filepath.Join(dir, "p/commit/1.json.zst"))
	if err != nil || info.Mode() != fileMode {
		t.Errorf("%v %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "p")); err != nil || info.Mode().Perm() != dirMode {
		t.Errorf("%v %v", info, err)
	}
}

// failingSource yields some of its bytes and then fails.
type failingSource struct {
	content []byte
	after   int64
	err     error
}

func (s failingSource) ReadAt(p []byte, off int64) (int, error) {
	if off >= s.after {
		return 0, s.err
	}
	return copy(p[:min(int64(len(p)), s.after-off)], s.content[off:]), nil
}

// CASES A10
func TestASourceThatFailsHalfwayLeavesNeitherObjectNorFile(t *testing.T) {
	content := bytes.Repeat([]byte("y"), 1<<20)
	for name, row := range map[string]struct {
		source io.ReaderAt
		code   sdk.Code
	}{
		"read error":    {failingSource{content, 1 << 19, errors.New("input/output error")}, sdk.Corrupt},
		"ends early":    {failingSource{content, 1 << 19, io.EOF}, sdk.Corrupt},
		"other content": {bytes.NewReader(bytes.Repeat([]byte("z"), 1<<20)), sdk.Corrupt},
	} {
		for _, old := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, key exists %t", name, old), func(t *testing.T) {
				dir := t.TempDir()
				target := openTarget(t, dir)
				want := []string(nil)
				if old {
					put(t, target, "a/b")
					want = []string{"a/b"}
				}
				body := sdk.NewBody(row.source, int64(len(content)), sdk.SumsOf(content))
				_, err := target.Put(t.Context(), sdk.PutRequest{Key: "a/b", Body: body})
				wantCode(t, err, row.code, "a/b")
				if got := files(t, dir); !slices.Equal(got, want) {
					t.Errorf("files %v, want %v", got, want)
				}
			})
		}
	}
}

// cancelling cancels when it is read from.
type cancelling struct {
	io.ReaderAt
	cancel func()
}

func (c cancelling) ReadAt(p []byte, off int64) (int, error) {
	c.cancel()
	return c.ReaderAt.ReadAt(p, off)
}

// CASES A10, A11
func TestACancelledPutStopsInTheMiddleAndLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	content := bytes.Repeat([]byte("y"), 4*copyBuffer)
	ctx, cancel := context.WithCancel(t.Context())
	source := cancelling{bytes.NewReader(content), cancel}
	_, err := openTarget(t, dir).Put(ctx, sdk.PutRequest{Key: "k", Body: sdk.NewBody(source, int64(len(content)), sdk.SumsOf(content))})
	wantCode(t, err, sdk.Cancelled)
	if got := files(t, dir); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}

func TestACancelledGetStopsInTheMiddle(t *testing.T) {
	target := openTarget(t, t.TempDir())
	put(t, target, "k")
	ctx, cancel := context.WithCancel(t.Context())
	res, err := target.Get(ctx, sdk.GetRequest{Key: "k", Length: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	cancel()
	if n, err := res.Body.Read(make([]byte, 4)); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// CASES A73
func TestRangesOfAnObject(t *testing.T) {
	target := openTarget(t, t.TempDir())
	for key, content := range map[string]string{"ten": "0123456789", "empty": ""} {
		if _, err := target.Put(t.Context(), request(key, content)); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name           string
		key            string
		offset, length int64
		want           string
		code           sdk.Code // Internal = success
	}{
		{"the whole", "ten", 0, -1, "0123456789", 0},
		{"the last byte", "ten", 9, 1, "9", 0},
		{"from the last byte to the end", "ten", 9, -1, "9", 0},
		{"the middle", "ten", 3, 4, "3456", 0},
		{"more than there is", "ten", 8, 100, "89", 0},
		{"at the end", "ten", 10, 1, "", sdk.Corrupt},
		{"beyond the end", "ten", 11, -1, "", sdk.Corrupt},
		{"the whole of an empty object", "empty", 0, -1, "", 0},
		{"a byte of an empty object", "empty", 0, 1, "", sdk.Corrupt},
	} {
		t.Run(row.name, func(t *testing.T) {
			res, err := target.Get(t.Context(), sdk.GetRequest{Key: row.key, Offset: row.offset, Length: row.length})
			if row.code != 0 {
				wantCode(t, err, row.code, row.key)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			got, err := io.ReadAll(res.Body)
			if err != nil || string(got) != row.want || res.Size != int64(len(row.want)) {
				t.Errorf("%q of size %d, %v; want %q", got, res.Size, err, row.want)
			}
		})
	}
}

// CASES A74
func TestDeleteRemovesExactlyOneFile(t *testing.T) {
	dir := t.TempDir()
	target := openTarget(t, dir)
	put(t, target, "a/1", "a/2", "ab", "b")
	for _, key := range []string{"a", "b/c", "nothing", "no/thing", "a/1/2"} {
		if err := target.Delete(t.Context(), []string{key}); err != nil {
			t.Errorf("delete %s, which is missing: %v", key, err)
		}
	}
	if got := files(t, dir); !slices.Equal(got, []string{"a/1", "a/2", "ab", "b"}) {
		t.Errorf("left: %v", got)
	}
	if err := target.Delete(t.Context(), []string{"a/1", "nothing", "ab"}); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); !slices.Equal(got, []string{"a/2", "b"}) {
		t.Errorf("left: %v", got)
	}
}

func TestDeleteRemovesDirectoriesThatItEmptied(t *testing.T) {
	dir := t.TempDir()
	target := openTarget(t, dir)
	put(t, target, "pack/1/1/x", "pack/1/2/y", "pack/1/2/z")
	if err := target.Delete(t.Context(), []string{"pack/1/1/x", "pack/1/2/y"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "pack/1/1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the empty directory: %v", err)
	}
	if err := target.Delete(t.Context(), []string{"pack/1/2/z"}); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v %v", entries, err)
	}
	put(t, target, "pack/1/1/x") // a directory known before is made again
}

// CASES A52
func TestAKeyThatIsAFolderOfAnotherIsRefusedInEitherOrder(t *testing.T) {
	for _, ifAbsent := range []bool{false, true} {
		dir := t.TempDir()
		target := openTarget(t, dir)
		put(t, target, "a/1", "b")
		for _, key := range []string{"a", "b/1", "b/1/2"} {
			req := request(key, "x")
			req.IfAbsent = ifAbsent
			_, err := target.Put(t.Context(), req)
			wantCode(t, err, sdk.Unsupported, key, "choose prefixes")
			_, err = target.Get(t.Context(), sdk.GetRequest{Key: key, Length: -1})
			wantCode(t, err, sdk.NotFound, key)
		}
		if got := files(t, dir); !slices.Equal(got, []string{"a/1", "b"}) {
			t.Errorf("left: %v", got)
		}
	}
}

// TMPDIR on another device must not matter: the temporary file lies beside the final name.
// CASES A53
func TestTheDirectoryForTemporaryFilesIsNotUsed(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	put(t, openTarget(t, t.TempDir()), "a/b/c")
}

// CASES A21, A52, A53
func TestATemporaryFileIsBesideTheFinalNameAndNoKeyCanNameIt(t *testing.T) {
	dir := t.TempDir()
	target := openTarget(t, dir)
	var during []string
	target.sync = func(f *os.File) error {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			during = files(t, dir)
			if keys := keysOf(t, target, sdk.ListRequest{}); len(keys) > 0 {
				t.Errorf("listed while it was written: %v", keys)
			}
		}
		return nil
	}
	put(t, target, "a/"+strings.Repeat("n", sdk.MaxSegment))
	if len(during) != 1 || filepath.Dir(during[0]) != "a" || sdk.CheckKey(during[0]) == nil {
		t.Errorf("while it was written there were %v", during)
	}
}

// CASES A50
func TestLinksInsideTheTargetAreNotFollowed(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	target := openTarget(t, dir)
	put(t, target, "real/x")
	for link, to := range map[string]string{"out": outside, "in": filepath.Join(dir, "real"), "file": filepath.Join(dir, "real/x"), "dangling": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "x"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"out/y", "in/y", "file", "dangling"} {
		_, err := target.Put(t.Context(), request(key, "x"))
		wantCode(t, err, sdk.Unsupported, key, "bind-mount")
	}
	for _, key := range []string{"out/x", "file", "dangling"} {
		_, err := target.Get(t.Context(), sdk.GetRequest{Key: key, Length: -1})
		wantCode(t, err, sdk.Unsupported, key, "bind-mount")
		wantCode(t, target.Delete(t.Context(), []string{key}), sdk.Unsupported, key)
	}
	for _, err := range target.List(t.Context(), sdk.ListRequest{}) {
		wantCode(t, err, sdk.Unsupported, "dangling")
		break
	}
	if got := files(t, outside); !slices.Equal(got, []string{"x"}) {
		t.Errorf("outside: %v", got)
	}
}
