package syncer

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

func mustCodec(t *testing.T) *chunkCodec {
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
		encoding, stored, err := c.encode(rapid.IntRange(0, 3).Draw(t, "file"), raw)
		if err != nil {
			t.Fatal(err)
		}
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

func TestAFileWhoseProbeDidNotPayIsStoredAsItIs(t *testing.T) {
	c := mustCodec(t)
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
		if got, _, err := c.encode(row.file, row.raw); err != nil || got != row.want {
			t.Errorf("row %d: %s, %v, want %s", i, got, err, row.want)
		}
	}
	c.reset()
	if got, _, _ := c.encode(0, text); got != repository.Zstd {
		t.Errorf("after a reset: %s: file 0 of another plan is another file", got)
	}
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
	if entries, err := os.ReadDir(spool.Dir()); err != nil || len(entries) != 1 { // its mark
		t.Errorf("%d entries are left in the spool, %v", len(entries), err)
	}
}
