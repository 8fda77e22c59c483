package checkpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
)

func begin(t *testing.T, s *Store) *Draft {
	t.Helper()
	d, err := s.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestAPublishedManifestIsWhatIsListed(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	m := publish(t, d.Checkpoints(), 7, map[string]string{"b": "two", "a/x": "one", "a-b": ""})
	var names []string
	for _, f := range m.Files {
		names = append(names, f.Path)
	}
	if want := []string{"a-b", "a/x", "b"}; !slices.Equal(names, want) {
		t.Errorf("files %v, want them by bytes: %v", names, want)
	}
	if f := m.Files[1]; f.Size != 3 || f.Mode != 0o640 || f.Chunks[0] != sha256.Sum256([]byte("one")) {
		t.Errorf("%+v", f)
	}
	if m.Size() != 6 || m.Step != 7 || !m.Created.Equal(noon()) {
		t.Errorf("%+v", m)
	}
	d.Close()
	if all := list(t, open(t, path).Checkpoints()); len(all) != 1 || !reflect.DeepEqual(all[0], m) {
		t.Errorf("listed %+v\nwant %+v", all, m)
	}
}

func TestEachChunkHasItsDigest(t *testing.T) {
	content := strings.Repeat("0123456789abcdef", (2*ChunkSize+16)/16)
	m := publish(t, open(t, t.TempDir()).Checkpoints(), 1, map[string]string{"big": content, "exact": content[:ChunkSize]})
	want := [][32]byte{sum(content[:ChunkSize]), sum(content[ChunkSize : 2*ChunkSize]), sum(content[2*ChunkSize:])}
	if got := m.Files[0].Chunks; !slices.Equal(got, want) {
		t.Errorf("%d chunks differ from %d expected", len(got), len(want))
	}
	if got := m.Files[1].Chunks; len(got) != 1 || got[0] != want[0] {
		t.Errorf("a file of exactly one chunk has %d", len(got))
	}
}

func sum(s string) [32]byte { return sha256.Sum256([]byte(s)) }

// CASES A51
func TestOddFileNamesComeBackAsBytes(t *testing.T) {
	names := []string{
		"with space", "caf\u00e9", "cafe\u0301", "%2F", "back\\slash", "new\nline", "c:d", strings.Repeat("n", 255),
		"\xff\xfe", "\xff\xfe-dir/f", "\U0001F5FF", "con", "checkpoint.json", ".hidden", "-rf", "a..b", "...",
	}
	files := map[string]string{}
	for _, n := range names {
		files[n] = "content of " + n
	}
	s := open(t, t.TempDir()).Checkpoints()
	publish(t, s, 1, files)
	s.cache = map[uuid.UUID]cached{}
	p, err := s.PinNewest()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	got := map[string]bool{}
	for _, f := range p.Manifest().Files {
		got[f.Path] = true
	}
	for _, n := range names {
		if !got[n] {
			t.Errorf("%q is not in the manifest", n)
		}
	}
	if err := verifyPinned(t.Context(), p); err != nil {
		t.Error(err)
	}
}

// CASES A55
func TestOnlyRegularFilesArePublished(t *testing.T) {
	for what, plant := range map[string]func(path string) error{
		"symbolic link": func(p string) error { return os.Symlink("/etc/passwd", p) },
		"named pipe":    func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"socket": func(p string) error {
			return syscall.Mknod(p, syscall.S_IFSOCK|0o600, 0)
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := open(t, t.TempDir()).Checkpoints()
			d := begin(t, s)
			write(t, d.Dir(), map[string]string{"good": "1", "sub/good": "2"})
			if err := plant(filepath.Join(d.Dir(), "sub", "odd one")); err != nil {
				t.Fatal(err)
			}
			_, err := d.Publish(t.Context(), metaAt(1))
			if err == nil || !strings.Contains(err.Error(), `"sub/odd one" is a `+what) {
				t.Errorf("got %v", err)
			}
			if all := list(t, s); len(all) != 0 {
				t.Errorf("published %v", all)
			}
		})
	}
}

// CASES A55
func TestHolesAndHardLinksAreContentLikeOther(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	d := begin(t, s)
	sparse := filepath.Join(d.Dir(), "sparse")
	write(t, d.Dir(), map[string]string{"sparse": "", "one": "same"})
	if err := os.Truncate(sparse, 5*ChunkSize+1); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(d.Dir(), "one"), filepath.Join(d.Dir(), "two")); err != nil {
		t.Fatal(err)
	}
	m, err := d.Publish(t.Context(), metaAt(1))
	if err != nil {
		t.Fatal(err)
	}
	zeros := sha256.Sum256(make([]byte, ChunkSize))
	if f := m.Files[1]; f.Path != "sparse" || len(f.Chunks) != 6 || f.Chunks[0] != zeros || f.Chunks[5] != sum("\x00") {
		t.Errorf("%+v", f)
	}
	if !slices.Equal(m.Files[0].Chunks, m.Files[2].Chunks) {
		t.Error("two links to one file differ")
	}
}

// The proof that a linked file is not read: its content is changed behind the back of size and mtime, and the old digest stays.
func TestAFileOfTheNewestCheckpointIsNeitherReadNorSyncedAgain(t *testing.T) {
	d, r := openRecorded(t)
	s := d.Checkpoints()
	first := publish(t, s, 1, map[string]string{"state.db": "old", "other": "x"})
	source := filepath.Join(s.dir(published, first.ID), filesName, "state.db")
	info, err := os.Stat(source)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source, []byte("bad"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(source, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	draft := begin(t, s)
	if err := os.Link(source, filepath.Join(draft.Dir(), "renamed.db")); err != nil {
		t.Fatal(err)
	}
	r.take()
	m, err := draft.Publish(t.Context(), metaAt(2))
	if err != nil {
		t.Fatal(err)
	}
	if f := m.Files[0]; f.Path != "renamed.db" || f.Chunks[0] != sum("old") {
		t.Errorf("%+v was hashed anew", f)
	}
	if events := r.take(); slices.ContainsFunc(events, func(e string) bool { return strings.HasSuffix(e, "renamed.db") }) {
		t.Errorf("it was synced: %q", events)
	}
}

// CASES A20
func TestALinkedFileThatWasModifiedIsReadAgain(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	first := publish(t, s, 1, map[string]string{"state.db": "old"})
	source := filepath.Join(s.dir(published, first.ID), filesName, "state.db")
	draft := begin(t, s)
	if err := os.Link(source, filepath.Join(draft.Dir(), "state.db")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(source, noon(), noon()); err != nil {
		t.Fatal(err)
	}
	m, err := draft.Publish(t.Context(), metaAt(2))
	if err != nil || m.Files[0].Chunks[0] != sum("new") {
		t.Errorf("%v %v", m.Files, err)
	}
}

// growing yields more or fewer bytes than the size that was asked for.
// CASES A18, A20
func TestAFileThatShrinksOrGrowsWhileItIsReadIsRefused(t *testing.T) {
	for _, content := range []string{"", "12", "1234"} {
		if _, err := newHasher().chunks(t.Context(), strings.NewReader(content), 3); !errors.Is(err, errChanged) {
			t.Errorf("%d bytes instead of 3: %v", len(content), err)
		}
	}
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("123"), 0o600); err != nil {
		t.Fatal(err)
	}
	rewrite := func() { os.WriteFile(path, []byte("12345"), 0o600) }
	ctx := &callbackContext{Context: t.Context(), call: rewrite} // between stat and read
	if _, err := newHasher().hash(ctx, filepath.Dir(path), "f", nil); !errors.Is(err, errChanged) {
		t.Errorf("got %v", err)
	}
}

// callbackContext calls back when it is asked for its error: a way into the middle of a read.
type callbackContext struct {
	context.Context
	call func()
}

func (c *callbackContext) Err() error { c.call(); return c.Context.Err() }

// CASES A15
func TestACancelledPublicationPublishesNothing(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	d := begin(t, s)
	write(t, d.Dir(), map[string]string{"a": "1"})
	ctx, cancel := context.WithCancel(t.Context())
	s.hook = func(point string) {
		if point == "publish.manifest-synced" {
			cancel()
		}
	}
	if _, err := d.Publish(ctx, metaAt(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if all := list(t, s); len(all) != 0 {
		t.Errorf("published %v", all)
	}
	if _, err := d.Publish(t.Context(), metaAt(1)); err != nil {
		t.Errorf("the draft cannot be published later: %v", err)
	}
}

func TestAPullWhoseBytesDifferIsNotPublished(t *testing.T) {
	good := []File{{Path: "b", Size: 1, Chunks: [][32]byte{sum("2")}}, {Path: "a", Size: 1, Chunks: [][32]byte{sum("1")}}}
	for name, files := range map[string]map[string]string{
		"other content": {"a": "1", "b": "3"},
		"longer":        {"a": "1", "b": "22"},
		"missing":       {"a": "1"},
		"one too many":  {"a": "1", "b": "2", "c": "3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir()).Checkpoints()
			d, err := s.BeginAs(pulledID())
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			write(t, d.Dir(), files)
			meta := metaAt(1)
			meta.Expect = good
			if _, err := d.Publish(t.Context(), meta); !errors.Is(err, ErrCorrupt) {
				t.Errorf("got %v", err)
			}
			os.RemoveAll(d.Dir())
			write(t, d.Dir(), map[string]string{"a": "1", "b": "2"})
			if _, err := d.Publish(t.Context(), meta); err != nil {
				t.Error(err)
			}
		})
	}
}

// CASES A21
func TestFilesOfEqualSizeAndTimeInOneDraftKeepTheirOwnDigests(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	for step := range uint64(2) { // the second time the first is the newest
		d := begin(t, s)
		for i := range 40 {
			name := filepath.Join(d.Dir(), fmt.Sprintf("f%02d", i))
			write(t, d.Dir(), map[string]string{fmt.Sprintf("f%02d", i): fmt.Sprintf("%02d", i)})
			if err := os.Chtimes(name, noon(), noon()); err != nil {
				t.Fatal(err)
			}
		}
		m, err := d.Publish(t.Context(), metaAt(step))
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range m.Files {
			if f.Chunks[0] != sum(fmt.Sprintf("%02d", i)) {
				t.Errorf("%s has the digest of another file", f.Path)
			}
		}
	}
}

func TestADraftIsRemovedByCloseAndAPullIsKept(t *testing.T) {
	path := t.TempDir()
	s := open(t, path).Checkpoints()
	d := begin(t, s)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	pull, err := s.BeginAs(pulledID())
	if err != nil {
		t.Fatal(err)
	}
	write(t, pull.Dir(), map[string]string{"half": "1"})
	if _, err := s.BeginAs(pulledID()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("two drafts of one id: %v", err)
	}
	if err := pull.Close(); err != nil {
		t.Fatal(err)
	}
	if names := entries(t, filepath.Join(path, "checkpoints")); !slices.Equal(names, []string{pulling + pulledID().String()}) {
		t.Errorf("left: %v", names)
	}
	other, err := s.BeginAs(compose(millisOf(pulledID()), 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	if names := entries(t, filepath.Join(path, "checkpoints")); len(names) != 1 {
		t.Errorf("the abandoned pull stays: %v", names)
	}
	if err := other.Abort(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Publish(t.Context(), metaAt(1)); err == nil {
		t.Error("an aborted draft was published")
	}
	if names := entries(t, filepath.Join(path, "checkpoints")); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
}

func TestAPublishedIDCannotBePulledAgain(t *testing.T) {
	s := open(t, t.TempDir()).Checkpoints()
	m := publish(t, s, 1, map[string]string{"a": "1"})
	if _, err := s.BeginAs(m.ID); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	if _, err := s.BeginAs(uuid.New()); err == nil {
		t.Error("an id that is not version 7 was accepted")
	}
}
