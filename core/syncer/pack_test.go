package syncer

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

func mustCodec(t testing.TB) *chunkCodec {
	t.Helper()
	c, err := newChunkCodec()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// CASES A22: whatever goes in comes out, or is not stored.
func TestWhatIsStoredDecodesToWhatWasRead(t *testing.T) {
	c := mustCodec(t)
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SliceOfN(rapid.Byte(), 1, 2000).Draw(t, "piece")
		raw := bytes.Repeat(piece, rapid.IntRange(1, 50).Draw(t, "times"))
		packed, err := c.compress(raw)
		if err != nil {
			t.Fatal(err)
		}
		encoding, stored := (&probe{}).choose(0, raw, packed)
		if encoding == repository.Zstd {
			if len(stored) >= len(raw) {
				t.Fatal("compression that does not pay is stored")
			}
			if stored, err = dec.DecodeAll(stored, nil); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(stored, raw) {
			t.Fatal("other bytes")
		}
	})
}

// CASES A22
func TestACompressorThatErrsIsNoticedBeforeTheUpload(t *testing.T) {
	c := mustCodec(t)
	raw := []byte(strings.Repeat("some text ", 100))
	other, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	c.out = other.EncodeAll([]byte(strings.Repeat("some tixt ", 100)), nil)
	if err := c.compare(raw); err == nil || !strings.Contains(err.Error(), "other bytes") {
		t.Errorf("error %v", err)
	}
	c.out = []byte("no frame")
	if err := c.compare(raw); err == nil || !strings.Contains(err.Error(), "does not decompress") {
		t.Errorf("error %v", err)
	}
}

// CASES A57
func TestAFileWhoseProbeDidNotPayIsStoredAsItIs(t *testing.T) {
	c, p := mustCodec(t), &probe{}
	text := []byte(strings.Repeat("text ", 1000))
	for i, row := range []struct {
		file int
		raw  []byte
		want repository.Encoding
	}{
		{0, []byte(incompressible(1, 5000)), repository.Raw},
		{0, text, repository.Raw}, // of the same file: not tried again
		{1, text, repository.Zstd},
		{1, []byte(incompressible(2, 5000)), repository.Raw}, // tried, and longer
		{1, text, repository.Zstd},
	} {
		packed, err := c.compress(row.raw)
		if err != nil || packed != nil && p.skips(row.file) != (row.want == repository.Raw) {
			t.Errorf("row %d: compressing is skipped: %t, %v", i, p.skips(row.file), err)
		}
		if got, stored := p.choose(row.file, row.raw, packed); got != row.want || (got == repository.Raw) != bytes.Equal(stored, row.raw) {
			t.Errorf("row %d: %s, want %s", i, got, row.want)
		}
	}
}

// lineOf is a line over a checkpoint in memory.
func lineOf(t testing.TB, files map[string][]byte, places int) (*chunkLine, *repository.PushPlan) {
	t.Helper()
	cp := &heldCheckpoint{files: files}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		f := checkpoint.File{Path: path, Size: int64(len(files[path])), Mode: 0o600}
		for piece := range slices.Chunk(files[path], repository.ChunkSize) {
			f.Chunks = append(f.Chunks, sha256.Sum256(piece))
		}
		cp.manifest.Files = append(cp.manifest.Files, f)
	}
	plan, err := repository.PlanPush(nil, sources(cp.manifest))
	if err != nil {
		t.Fatal(err)
	}
	var codecs []*chunkCodec
	for range places {
		codecs = append(codecs, mustCodec(t))
	}
	return newChunkLine(cp, plan, codecs), plan
}

func TestTheSameChunksComeInTheSameOrderHoweverManyArePreparedAtATime(t *testing.T) {
	files := map[string][]byte{
		"noise, then text": append([]byte(incompressible(1, 2<<20)), strings.Repeat("text ", 1<<20)...),
		"text, then noise": append([]byte(strings.Repeat("tixt ", 1<<20)), incompressible(2, 2<<20)...),
	}
	for i := range 20 {
		files[fmt.Sprintf("small %02d", i)] = []byte(strings.Repeat(fmt.Sprint("small ", i), 100))
	}
	type chunk struct {
		encoding repository.Encoding
		sum      [32]byte
	}
	var want []chunk
	for _, places := range []int{1, 2, 3, 5, 100} {
		line, plan := lineOf(t, files, places)
		var got []chunk
		for i := range plan.New {
			encoding, stored, err := line.take(i)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, chunk{encoding, sha256.Sum256(stored)})
		}
		line.close()
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) || len(got) != len(plan.New) || len(got) < 30 {
			t.Errorf("%d at a time: %d chunks, other than one at a time", places, len(got))
		}
	}
}

func TestALineThatIsLeftEarlyEndsWhatItHasBegun(t *testing.T) {
	files := map[string][]byte{"a": []byte(incompressible(3, 8<<20))}
	line, _ := lineOf(t, files, 4)
	files["a"] = files["a"][:3<<20] // it is cut while it is read
	for i := range 3 {
		if _, _, err := line.take(i); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := line.take(3); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("error %v", err)
	}
	line.close() // goleak looks whether all goroutines have ended
}

func TestALargeCommitTravelsThroughTheSpoolAndASmallOneInline(t *testing.T) {
	spool, err := OpenSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	k := &packer{spool: spool}
	for _, size := range []int{sdk.MaxInline, sdk.MaxInline + 1} {
		text := []byte(incompressible(3, size))
		body, done, err := k.body(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if f, _ := body.File(); (f != nil) != (size > sdk.MaxInline) {
			t.Errorf("%d bytes: in a file: %t", size, f != nil)
		}
		if got, err := io.ReadAll(body.Reader()); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%d bytes: %v", size, err)
		}
		done()
	}
	if entries, err := os.ReadDir(spool.Dir()); err != nil || len(entries) != 0 {
		t.Errorf("%d entries are left in the spool, %v", len(entries), err)
	}
}
