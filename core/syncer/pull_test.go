package syncer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

const mib = 1 << 20

// everything is a checkpoint with all that a file can be.
func everything() content {
	sparse := make([]byte, 24*mib+100)
	copy(sparse[7*mib:], noise(1, mib))
	return content{
		"state.db": noise(2, 5*mib+777), "state.db-wal": text("frame ", 3*mib), "empty": nil, "sparse": sparse,
		"twin": noise(2, 5*mib+777), "ro/locked": []byte("read only"), "a b": []byte("1"), "ü": []byte("2"), "u\u0308": []byte("3"), "%2F": []byte("4"),
		"x\ny": []byte("5"), "c:d": []byte("6"), strings.Repeat("n", 255): []byte("7"), "\xff\xfe": []byte("8"), "😀": []byte("9"),
		"con": []byte("10"), `back\slash`: []byte("11"), "d/e/f/g": []byte("12"), "zeros": make([]byte, 4096),
	}
}

// CASES A51, A55
func TestAPulledCommitIsAnOrdinaryLocalCheckpointWithTheSameID(t *testing.T) {
	a := newAuthor(t)
	c := a.commit(10, everything())
	_, local := localOf(t)
	var last Progress
	pulled, err := readerOf(t, a.mem).Pull(t.Context(), PullRequest{Local: local, Spool: spoolOf(t), Progress: func(p Progress) { last = p }})
	if err != nil {
		t.Fatal(err)
	}
	m := pulled.Manifest
	want := checkpoint.Manifest{
		ID: idOf(1010), Step: 10, Created: c.Checkpoint.Created, Incarnation: c.Checkpoint.Incarnation, Kind: "sql",
		Fingerprint: repository.Sum([]byte("schema")), History: checkpoint.History{{Lineage: idOf(50), UpTo: 10}}, Files: m.Files,
	}
	if !reflect.DeepEqual(m, want) || pulled.Already || pulled.Commit.Number != c.Number {
		t.Errorf("manifest %+v\nwant     %+v", m, want)
	}
	if last.Done != last.Total || last.Done != c.Totals.Stored || last.Commit != c.Number {
		t.Errorf("progress ends with %+v of %d stored bytes", last, c.Totals.Stored)
	}
	list, err := local.List(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != m.ID {
		t.Fatalf("list %v, %v", list, err)
	}
	pin, err := local.PinNewest()
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Release()
	sameFiles(t, pin.Dir(), everything())
	if err := checkpoint.Verify(t.Context(), pin.Dir(), m); err != nil {
		t.Error(err)
	}
	again, err := readerOf(t, a.mem).Pull(t.Context(), PullRequest{Local: local, Spool: spoolOf(t)})
	if err != nil || !again.Already || again.Manifest.ID != m.ID {
		t.Errorf("a second pull: %+v, %v", again, err)
	}
}

// counting counts the bytes of packs that leave a store.
func counting(mem *sdktest.Mem, n *atomic.Int64) *sdktest.Faulty {
	return &sdktest.Faulty{Target: mem, Body: func(c sdktest.Call, body io.ReadCloser) io.ReadCloser {
		if !strings.Contains(c.Key, "/pack/") {
			return body
		}
		return struct {
			io.Reader
			io.Closer
		}{io.TeeReader(body, addTo{n}), body}
	}}
}

type addTo struct{ n *atomic.Int64 }

func (a addTo) Write(p []byte) (int, error) { a.n.Add(int64(len(p))); return len(p), nil }

func TestOnlyWhatNoLocalCheckpointHasIsReadFromTheTarget(t *testing.T) {
	a := newAuthor(t)
	files := content{"state.db": noise(2, 8*mib), "old.db": noise(3, 4*mib), "ro/same": noise(4, 2*mib)}
	a.commit(10, files)
	_, local := localOf(t)
	spool := spoolOf(t)
	if _, err := readerOf(t, a.mem).Pull(t.Context(), PullRequest{Local: local, Spool: spool}); err != nil {
		t.Fatal(err)
	}
	next := content{"state.db": bytes.Clone(files["state.db"]), "moved.db": files["old.db"], "ro/same": files["ro/same"]}
	copy(next["state.db"][3*mib:], noise(9, mib))
	a.commit(20, next)
	var read atomic.Int64
	if _, err := readerOf(t, counting(a.mem, &read)).Pull(t.Context(), PullRequest{Local: local, Spool: spool}); err != nil {
		t.Fatal(err)
	}
	if read.Load() > mib {
		t.Errorf("one chunk is new, %d bytes were read", read.Load())
	}
	older, newer := pinOf(t, local, idOf(1010)), pinOf(t, local, idOf(1020))
	sameFiles(t, older.Dir(), files)
	sameFiles(t, newer.Dir(), next)
	for _, pair := range [][2]string{{"old.db", "moved.db"}, {"ro/same", "ro/same"}} {
		one, err1 := os.Stat(filepath.Join(older.Dir(), pair[0]))
		two, err2 := os.Stat(filepath.Join(newer.Dir(), pair[1]))
		if err1 != nil || err2 != nil || !os.SameFile(one, two) {
			t.Errorf("the unchanged file %q is not shared with the older checkpoint", pair[1])
		}
	}
	if err := checkpoint.Verify(t.Context(), newer.Dir(), newer.Manifest()); err != nil {
		t.Error(err)
	}
}

func pinOf(t *testing.T, local *checkpoint.Store, id [16]byte) *checkpoint.Pinned {
	t.Helper()
	p, err := local.Pin(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Release)
	return p
}

func TestALocalCheckpointThatWasTouchedLendsOnlyWhatIsStillRight(t *testing.T) {
	a := newAuthor(t)
	files := content{"state.db": noise(2, 4*mib)}
	a.commit(10, files)
	_, local := localOf(t)
	spool := spoolOf(t)
	r := readerOf(t, a.mem)
	if _, err := r.Pull(t.Context(), PullRequest{Local: local, Spool: spool}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(pinOf(t, local, idOf(1010)).Dir(), "state.db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("rot"), 2*mib); err != nil {
		t.Fatal(err)
	}
	f.Close()
	files["new"] = []byte("new")
	a.commit(20, files)
	var read atomic.Int64
	if _, err := readerOf(t, counting(a.mem, &read)).Pull(t.Context(), PullRequest{Local: local, Spool: spool}); err != nil {
		t.Fatal(err)
	}
	if got := read.Load(); got < mib || got > mib+100 {
		t.Errorf("one chunk of the local copy is wrong and 3 bytes are new, %d were read", got)
	}
	sameFiles(t, pinOf(t, local, idOf(1020)).Dir(), files)
}

// Rot leaves the size and the times of a file as they were.
func TestAFileOfALocalCheckpointThatHasRottedIsNotPulledFrom(t *testing.T) {
	for _, row := range []struct {
		name  string
		after bool // another checkpoint was pulled since, so that the rotten one is not the newest
	}{{"the newest", false}, {"an older one", true}} {
		t.Run(row.name, func(t *testing.T) {
			a := newAuthor(t)
			files := content{"state.db": noise(2, 4*mib), "small": []byte("small")}
			_, local := localOf(t)
			spool := spoolOf(t)
			var read atomic.Int64
			pull := func(step uint64, files content) {
				t.Helper()
				a.commit(step, files)
				read.Store(0)
				if _, err := readerOf(t, counting(a.mem, &read)).Pull(t.Context(), PullRequest{Local: local, Spool: spool}); err != nil {
					t.Fatal(err)
				}
			}
			pull(10, files)
			if row.after {
				pull(20, content{"state.db": noise(3, mib)})
			}
			rot(t, filepath.Join(pinOf(t, local, idOf(1010)).Dir(), "state.db"), 2*mib)
			pull(30, files)
			if got := read.Load(); got < mib || got > mib+100 {
				t.Errorf("one chunk of the local copy is rotten, %d bytes were read", got)
			}
			pulled := pinOf(t, local, idOf(1030))
			sameFiles(t, pulled.Dir(), files)
			if err := checkpoint.Verify(t.Context(), pulled.Dir(), pulled.Manifest()); err != nil {
				t.Error(err)
			}
			one, err1 := os.Stat(filepath.Join(pinOf(t, local, idOf(1010)).Dir(), "small"))
			two, err2 := os.Stat(filepath.Join(pulled.Dir(), "small"))
			if err1 != nil || err2 != nil || !os.SameFile(one, two) {
				t.Error("the file that is whole is not shared")
			}
		})
	}
}

// The disk may rot below a file that two checkpoints share, and no time of it changes: a link to it would bring the rot back.
func TestADamagedCheckpointIsReplacedByChunksThatWereChecked(t *testing.T) {
	a := newAuthor(t)
	files := content{"state.db": noise(2, 4*mib)}
	_, local := localOf(t)
	spool := spoolOf(t)
	for _, step := range []uint64{10, 20} {
		a.commit(step, files)
		if _, err := readerOf(t, a.mem).Pull(t.Context(), PullRequest{Local: local, Spool: spool}); err != nil {
			t.Fatal(err)
		}
	}
	pin := pinOf(t, local, idOf(1020))
	shared := filepath.Join(pin.Dir(), "state.db")
	rot(t, shared, 2*mib)
	pin.Release()
	var read atomic.Int64
	pulled, err := readerOf(t, counting(a.mem, &read)).Pull(t.Context(), PullRequest{Local: local, Spool: spool, Instead: true})
	if err != nil || pulled.Already {
		t.Fatalf("%+v, %v", pulled, err)
	}
	if got := read.Load(); got < mib || got > mib+100 {
		t.Errorf("one chunk is rotten, %d bytes were read", got)
	}
	sameFiles(t, pinOf(t, local, idOf(1020)).Dir(), files)
}

// rot changes a byte of a file that keeps its times.
func rot(t *testing.T, file string, at int64) {
	t.Helper()
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte("rot"), at)
	if err := errors.Join(err, f.Close(), os.Chtimes(file, before.ModTime(), before.ModTime())); err != nil {
		t.Fatal(err)
	}
}

func TestAPullThatIsCutOffGoesOnWhereItWas(t *testing.T) {
	a := newAuthor(t)
	files := everything()
	for i := range 4 {
		files["bulk/"+string(rune('a'+i))] = noise(uint64(20+i), 12*mib)
	}
	c := a.commit(10, files)
	packs := int64(len(c.Packs))
	if packs < 4 {
		t.Fatalf("%d packs are too few for this test", packs)
	}
	path := t.TempDir()
	spool := spoolOf(t)
	var read atomic.Int64
	for cut := range packs {
		d, err := checkpoint.OpenDir(path, checkpoint.Options{Now: startOfTime}) // as a host that starts again
		if err != nil {
			t.Fatal(err)
		}
		var gets atomic.Int64
		store := counting(a.mem, &read)
		store.Before = func(_ context.Context, c sdktest.Call) error {
			if strings.Contains(c.Key, "/pack/") && gets.Add(1) > 1 {
				return &sdk.Error{Code: sdk.PermissionDenied}
			}
			return nil
		}
		_, err = readerOf(t, store).Pull(t.Context(), PullRequest{Local: d.Checkpoints(), Spool: spool})
		if last := cut == packs-1; last != (err == nil) || !last && sdk.CodeOf(err) != sdk.PermissionDenied {
			t.Fatalf("attempt %d of %d: %v", cut+1, packs, err)
		}
		list, err := d.Checkpoints().List(t.Context())
		if err != nil || (len(list) == 1) != (cut == packs-1) {
			t.Fatalf("after attempt %d: %d checkpoints, %v", cut+1, len(list), err)
		}
		if cut == packs-1 {
			sameFiles(t, pinOf(t, d.Checkpoints(), idOf(1010)).Dir(), files)
		}
		d.Close()
	}
	if read.Load() != c.Totals.Stored {
		t.Errorf("%d bytes were read in all attempts together, the commit has %d", read.Load(), c.Totals.Stored)
	}
}

// CASES A17
func TestAResumedPullTrustsNothingThatItFinds(t *testing.T) {
	a := newAuthor(t)
	first := content{"shared": noise(5, 2*mib)}
	a.commit(10, first)
	d, local := localOf(t)
	spool := spoolOf(t)
	if _, err := readerOf(t, a.mem).Pull(t.Context(), PullRequest{Local: local, Spool: spool}); err != nil {
		t.Fatal(err)
	}
	files := everything()
	files["shared"] = append(bytes.Clone(first["shared"]), 1, 2, 3)
	a.commit(20, files)
	draft, err := local.BeginAs(idOf(1020))
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := draft.Dir()
	for _, err := range []error{
		os.Symlink(outside, filepath.Join(root, "a b")),
		os.Symlink(filepath.Dir(outside), filepath.Join(root, "d")),
		os.MkdirAll(filepath.Join(root, "empty/nothing"), 0o700),
		os.MkdirAll(filepath.Join(root, "stray/dir"), 0o700),
		os.WriteFile(filepath.Join(root, "stray/dir/file"), []byte("x"), 0o600),
		syscall.Mkfifo(filepath.Join(root, "con"), 0o600),
		os.WriteFile(filepath.Join(root, "ro"), []byte("a file where a folder belongs"), 0o400),
		os.WriteFile(filepath.Join(root, "sparse"), noise(99, 26*mib), 0o400), // too long, and no holes
		os.Link(filepath.Join(pinOf(t, local, idOf(1010)).Dir(), "shared"), filepath.Join(root, "shared")),
		draft.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := readerOf(t, a.mem).Pull(t.Context(), PullRequest{Local: d.Checkpoints(), Spool: spool}); err != nil {
		t.Fatal(err)
	}
	sameFiles(t, pinOf(t, local, idOf(1020)).Dir(), files)
	sameFiles(t, pinOf(t, local, idOf(1010)).Dir(), first)
	if got, err := os.ReadFile(outside); err != nil || string(got) != "mine" {
		t.Errorf("the file behind a planted link is %q, %v", got, err)
	}
}

// CASES A17
func TestDamageOnTheWayHealsAndDamageAtRestDoesNot(t *testing.T) {
	files := content{"state.db": noise(2, 3*mib), "wal": text("frame ", mib)}
	for _, row := range []struct {
		name   string
		times  int64 // how often a pack arrives damaged
		damage func([]byte) []byte
		heals  bool
	}{
		{"a flipped bit, once", 1, flip, true},
		{"a flipped bit, twice", 2, flip, true},
		{"a flipped bit for ever", 1 << 30, flip, false},
		{"an early end, once", 1, cut, true},
		{"an early end for ever", 1 << 30, cut, false},
		{"bytes after the end for ever", 1 << 30, func(b []byte) []byte { return append(b, 0) }, false},
		{"zeros for ever", 1 << 30, func(b []byte) []byte { return make([]byte, len(b)) }, false},
	} {
		a := newAuthor(t)
		a.commit(10, files)
		var n atomic.Int64
		store := &sdktest.Faulty{Target: a.mem, Body: func(c sdktest.Call, body io.ReadCloser) io.ReadCloser {
			if !strings.Contains(c.Key, "/pack/") || n.Add(1) > row.times {
				return body
			}
			b, err := io.ReadAll(body)
			if err != nil {
				t.Error(err)
			}
			return io.NopCloser(bytes.NewReader(row.damage(b)))
		}}
		_, local := localOf(t)
		_, err := readerOf(t, store).Pull(t.Context(), PullRequest{Local: local, Spool: spoolOf(t)})
		list, listErr := local.List(t.Context())
		if listErr != nil {
			t.Fatal(listErr)
		}
		if row.heals != (err == nil) || row.heals != (len(list) == 1) {
			t.Errorf("%s: %v, %d checkpoints", row.name, err, len(list))
		}
		if err != nil && !errors.Is(err, repository.ErrCorrupt) && sdk.CodeOf(err) != sdk.Corrupt {
			t.Errorf("%s: %v is not called corrupt", row.name, err)
		}
	}
}

// shears answers a Fetch as a plugin does that cuts the spool file once it has said that all is there.
type shears struct {
	Store
	times int
}

// Fetch implements Store.
func (s *shears) Fetch(ctx context.Context, req sdk.GetRequest, f *os.File, off int64) (int64, error) {
	n, err := s.Store.Fetch(ctx, req, f, off)
	if err == nil && s.times > 0 {
		s.times--
		err = f.Truncate(off + n/2)
	}
	return n, err
}

func TestASpoolFileThatIsCutAfterItsEndIsReadAgain(t *testing.T) {
	files := content{"state.db": noise(2, mib)}
	a := newAuthor(t)
	c := a.commit(10, files)
	for times, heals := range map[int]bool{1: true, corruptAttempts - 1: true, corruptAttempts: false} {
		_, local := localOf(t)
		r := readerOf(t, a.mem)
		r.store = &shears{Store: r.store, times: times}
		pulled, err := r.Pull(t.Context(), PullRequest{Local: local, Spool: spoolOf(t)})
		switch {
		case heals && err == nil:
			sameFiles(t, pinOf(t, local, pulled.Manifest.ID).Dir(), files)
		case heals:
			t.Errorf("cut %d times: %v", times, err)
		case !errors.Is(err, repository.ErrCorrupt) || !strings.Contains(err.Error(), c.Packs[0].String()) || !strings.Contains(err.Error(), "the plugin said that all of the range is there"):
			t.Errorf("cut %d times: %v", times, err)
		}
	}
}

func flip(b []byte) []byte { b[len(b)/2] ^= 1; return b }

func cut(b []byte) []byte { return b[:len(b)-1] }

// CASES A30
func TestAPackThatIsGoneMeansThatTheCommitHasGoneMeanwhile(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, content{"state.db": noise(2, 3*mib), "only": []byte("in the first")})
	_, local := localOf(t)
	store := onGet(a.mem, repository.PackPrefix(testPrefix), func() {
		a.commit(20, content{"state.db": noise(3, 3*mib)})
		a.retire(2)
	})
	pulled, err := readerOf(t, store).Pull(t.Context(), PullRequest{Local: local, Spool: spoolOf(t)})
	if err != nil || pulled.Manifest.Step != 20 {
		t.Fatalf("pulled %+v, %v", pulled, err)
	}
	sameFiles(t, pinOf(t, local, idOf(1020)).Dir(), content{"state.db": noise(3, 3*mib)})
	if list, err := local.List(t.Context()); err != nil || len(list) != 1 {
		t.Fatalf("%d checkpoints, %v", len(list), err)
	}
}

func TestACommitAskedForByNumberIsNotReplacedByAnother(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, content{"state.db": noise(2, 3*mib)})
	_, local := localOf(t)
	store := onGet(a.mem, repository.PackPrefix(testPrefix), func() {
		a.commit(20, content{"state.db": noise(3, 3*mib)})
		a.retire(2)
	})
	_, err := readerOf(t, store).Pull(t.Context(), PullRequest{From: Selector{Number: 2}, Local: local, Spool: spoolOf(t)})
	if !errors.Is(err, ErrNoCommit) {
		t.Fatalf("pull of a commit that was retired meanwhile: %v", err)
	}
}

// CASES A9
func TestACommitThatStandsWithoutItsPackIsCorruptionAndAnEarlierOneIsNamedAsTheWayOn(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, content{"state.db": noise(2, 3*mib)})
	c := a.commit(20, content{"state.db": noise(3, 3*mib)})
	a.remove(repository.PackKey(testPrefix, c.Packs[0]))
	_, local := localOf(t)
	spool := spoolOf(t)
	r := readerOf(t, a.mem)
	_, err := r.Pull(t.Context(), PullRequest{Local: local, Spool: spool})
	if !errors.Is(err, repository.ErrCorrupt) || !strings.Contains(err.Error(), c.Packs[0].String()) || !strings.Contains(err.Error(), "remote list") {
		t.Fatalf("pull without a pack: %v", err)
	}
	if list, err := local.List(t.Context()); err != nil || len(list) != 0 {
		t.Fatalf("%d checkpoints, %v", len(list), err)
	}
	if pulled, err := r.Pull(t.Context(), PullRequest{From: Selector{Number: 2}, Local: local, Spool: spool}); err != nil || pulled.Manifest.Step != 10 {
		t.Fatalf("the commit before: %+v, %v", pulled, err)
	}
}

func TestAPullThatIsCancelledPublishesNothingAndLeavesNoGoroutine(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, everything())
	_, local := localOf(t)
	ctx, cancel := context.WithCancel(t.Context())
	store := &sdktest.Faulty{Target: a.mem, Before: func(ctx context.Context, c sdktest.Call) error {
		if strings.Contains(c.Key, "/pack/") {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}}
	_, err := readerOf(t, store).Pull(ctx, PullRequest{Local: local, Spool: spoolOf(t)})
	if sdk.CodeOf(err) != sdk.Cancelled {
		t.Fatalf("a cancelled pull: %v", err)
	}
	if list, err := local.List(t.Context()); err != nil || len(list) != 0 {
		t.Fatalf("%d checkpoints, %v", len(list), err)
	}
}

func TestTheSameIDWithOtherContentIsNotTakenForTheSameCheckpoint(t *testing.T) {
	a, b := newAuthor(t), newAuthor(t)
	a.commit(10, small("one"))
	b.commit(10, small("two"))
	_, local := localOf(t)
	spool := spoolOf(t)
	if _, err := readerOf(t, a.mem).Pull(t.Context(), PullRequest{Local: local, Spool: spool}); err != nil {
		t.Fatal(err)
	}
	if _, err := readerOf(t, b.mem).Pull(t.Context(), PullRequest{Local: local, Spool: spool}); !errors.Is(err, repository.ErrCorrupt) {
		t.Fatalf("other content under one id: %v", err)
	}
}
