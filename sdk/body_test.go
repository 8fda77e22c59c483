package sdk_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/cairnsync/cairn/sdk"
)

func TestABodyReaderYieldsTheContentToAnyWayOfReading(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 1000)
	body := sdk.BytesBody(content)
	if err := iotest.TestReader(body.Reader(), content); err != nil {
		t.Error(err)
	}
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"a byte at a time": iotest.OneByteReader, "half of what is asked": iotest.HalfReader, "data with the error": iotest.DataErrReader,
	} {
		got, err := io.ReadAll(wrap(body.Reader()))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func TestAnEmptyBodyIsReadToItsEnd(t *testing.T) {
	for name, body := range map[string]sdk.Body{"of no bytes": sdk.BytesBody(nil), "zero value": {}} {
		got, err := io.ReadAll(body.Reader())
		if name == "zero value" { // it declares a digest that no content has
			if !errors.Is(err, sdk.Corrupt) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || len(got) != 0 {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

// readerAt fails at one offset.
type readerAt struct {
	content []byte
	failAt  int64
}

var errDisk = errors.New("input/output error")

func (r readerAt) ReadAt(p []byte, off int64) (int, error) {
	if off <= r.failAt && r.failAt < off+int64(len(p)) {
		n := copy(p, r.content[off:r.failAt])
		return n, errDisk
	}
	return bytes.NewReader(r.content).ReadAt(p, off)
}

// CASES A17
func TestADamagedBodyNeverCompletes(t *testing.T) {
	content := bytes.Repeat([]byte("cairn"), 5000)
	sums, size := sdk.SumsOf(content), int64(len(content))
	flipped := bytes.Clone(content)
	flipped[0] ^= 0x80
	late := bytes.Clone(content)
	late[len(late)-1] ^= 1
	for name, body := range map[string]sdk.Body{
		"its first byte flipped":   sdk.NewBody(bytes.NewReader(flipped), size, sums),
		"its last byte flipped":    sdk.NewBody(bytes.NewReader(late), size, sums),
		"a byte short":             sdk.NewBody(bytes.NewReader(content[:size-1]), size, sums),
		"empty":                    sdk.NewBody(bytes.NewReader(nil), size, sums),
		"of a declared size short": sdk.NewBody(bytes.NewReader(content), size-1, sums),
		"a read error in it":       sdk.NewBody(readerAt{content, size / 2}, size, sums),
	} {
		for _, wrap := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.HalfReader} {
			got, err := io.ReadAll(wrap(body.Reader()))
			if !errors.Is(err, sdk.Corrupt) || int64(len(got)) >= body.Size() {
				t.Errorf("%s: %d of %d bytes, %v; want fewer and Corrupt", name, len(got), body.Size(), err)
			}
		}
	}
}

func TestWhatWasWithheldStaysWithheld(t *testing.T) {
	body := sdk.NewBody(bytes.NewReader([]byte("abc")), 3, sdk.SumsOf([]byte("abd")))
	r := body.Reader()
	for range 3 {
		if n, err := r.Read(make([]byte, 10)); n != 0 || !errors.Is(err, sdk.Corrupt) {
			t.Fatalf("read gives %d bytes, %v", n, err)
		}
	}
}

func TestASeekerIsCheckedAsWell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "content")
		damaged := rapid.Bool().Draw(t, "damaged")
		sums := sdk.SumsOf(content)
		if damaged {
			content = bytes.Clone(content)
			content[rapid.IntRange(0, len(content)-1).Draw(t, "at")] ^= 1
		}
		r := sdk.NewBody(bytes.NewReader(content), int64(len(content)), sums).Reader()
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			off := rapid.Int64Range(0, int64(len(content))).Draw(t, "seek")
			if pos, err := r.Seek(off, io.SeekStart); pos != off || err != nil {
				t.Fatalf("seek to %d: %d, %v", off, pos, err)
			}
			want := rapid.IntRange(1, 50).Draw(t, "read")
			p := make([]byte, want)
			n, err := r.Read(p)
			if end := int(off) + n; damaged && n > 0 && end == len(content) {
				t.Fatalf("the last bytes of a damaged body were yielded at %d", off)
			} else if n > 0 && !bytes.Equal(p[:n], content[off:end]) {
				t.Fatalf("read at %d yields other bytes", off)
			} else if err != nil && !errors.Is(err, io.EOF) && (!damaged || !errors.Is(err, sdk.Corrupt)) {
				t.Fatal(err)
			}
		}
		if !damaged {
			if _, err := r.Seek(0, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
				t.Fatalf("read from the start: %d of %d bytes, %v", len(got), len(content), err)
			}
		}
	})
}

func TestSeekKeepsToTheContent(t *testing.T) {
	r := sdk.BytesBody([]byte("0123456789")).Reader()
	for _, c := range []struct {
		offset int64
		whence int
		want   int64
		fails  bool
	}{
		{5, io.SeekStart, 5, false},
		{2, io.SeekCurrent, 7, false},
		{-1, io.SeekEnd, 9, false},
		{0, io.SeekEnd, 10, false},
		{-1, io.SeekStart, 10, true},
		{11, io.SeekStart, 10, true},
		{0, 7, 10, true},
		{0, io.SeekStart, 0, false},
	} {
		got, err := r.Seek(c.offset, c.whence)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("Seek(%d, %d) = %d, %v", c.offset, c.whence, got, err)
		}
	}
}

func TestAFileBodyIsItsRangeAndNothingElse(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "spool"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("before|the object|after"); err != nil {
		t.Fatal(err)
	}
	body := sdk.FileBody(f, 7, 10, sdk.SumsOf([]byte("the object")))
	got, err := io.ReadAll(body.Reader())
	if err != nil || string(got) != "the object" {
		t.Fatalf("Reader: %q, %v", got, err)
	}
	if got, err := io.ReadAll(body.Section()); err != nil || string(got) != "the object" {
		t.Fatalf("Section: %q, %v", got, err)
	}
	if file, off := body.File(); file != f || off != 7 {
		t.Fatalf("File: %v, %d", file, off)
	}
	if err := f.Truncate(12); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(body.Reader()); !errors.Is(err, sdk.Corrupt) {
		t.Fatalf("after the file shrank: %v", err)
	}
}
