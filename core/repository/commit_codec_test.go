package repository

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

func TestACommitIsReadBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent := push(t, nil, 1, drawFiles(t, "before"))
		for _, c := range []*Commit{push(t, parent, 2, drawFiles(t, "after")), testSeal(rapid.Uint64Range(2, math.MaxUint64).Draw(t, "number"))} {
			stored, err := EncodeCommit(c)
			if err != nil {
				t.Fatal(err)
			}
			back, err := DecodeCommit(c.Number, stored)
			if err != nil {
				t.Fatal(err)
			}
			again, err := EncodeCommit(back)
			if err != nil || !bytes.Equal(again, stored) {
				t.Fatalf("a commit read and written again differs (%v)", err)
			}
			if !reflect.DeepEqual(normal(c), normal(back)) {
				t.Fatalf("read back\n%+v\nwritten\n%+v", back, c)
			}
		}
	})
}

// normal makes empty and missing lists equal.
func normal(c *Commit) Commit {
	n := *c
	n.Packs, n.Files = append([]PackID{}, c.Packs...), append([]File{}, c.Files...)
	for i := range n.Files {
		n.Files[i].Chunks = append([]Chunk{}, n.Files[i].Chunks...)
	}
	return n
}

func TestTheSecondLineOfACommitIsTheHashOfTheFirst(t *testing.T) {
	text, err := formatOne().commitText(push(t, nil, 1, []Source{source("a", "ab")}))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if len(lines) != 3 || len(lines[2]) != 0 || string(lines[1]) != Sum(lines[0]).String()+"\n" {
		t.Fatalf("commit text %q", text)
	}
}

// stored wraps a line as a commit would be stored.
func storedLine(line string) []byte {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	return e.EncodeAll([]byte(line+Sum([]byte(line)).String()+"\n"), nil)
}

// CASES A49
func TestACommitThatNoCairnWritesIsRefused(t *testing.T) {
	text, err := formatOne().commitText(push(t, nil, 1, []Source{source("dir/a", "ab"), source("b", "0"), source("c", "0a")}))
	if err != nil {
		t.Fatal(err)
	}
	line := string(text[:bytes.IndexByte(text, '\n')+1])
	if _, err := DecodeCommit(1, storedLine(line)); err != nil {
		t.Fatalf("the good one: %v", err)
	}
	for _, row := range []struct{ name, old, new string }{
		{"a field given twice", `"number":1`, `"number":1,"number":1`},
		{"a field in other letter case", `"number"`, `"Number"`},
		{"a field it does not know", `"number":1`, `"number":1,"colour":"red"`},
		{"null", `"step":1001`, `"step":null`},
		{"bytes after the end", "}\n", "} {}\n"},
		{"a number that is not its key's", `"number":1`, `"number":2`},
		{"a fraction", `"step":1001`, `"step":1001.5`},
		{"a number beyond its type", `"step":1001`, `"step":18446744073709551616`},
		{"a path to the parent", `"dir/a"`, `"../a"`},
		{"an absolute path", `"dir/a"`, `"/etc/passwd"`},
		{"a path that is not clean", `"dir/a"`, `"dir/../../b"`},
		{"a path with NUL", `"dir/a"`, `"dir/\u0000"`},
		{"a path with a trailing slash", `"dir/a"`, `"dir/a/"`},
		{"an empty path", `"dir/a"`, `""`},
		{"base64 of a path that is text", `"path":"dir/a"`, `"path_base64":"ZGlyL2E="`},
		{"two paths", `"path":"dir/a"`, `"path":"dir/a","path_base64":"/w=="`},
		{"a mode with type bits", `"0644"`, `"100644"`},
		{"a mode that is not octal", `"0644"`, `"rw-r"`},
		{"a pack that is not in the table", `[0,0,`, `[1,0,`},
		{"a negative pack", `[0,0,`, `[-1,0,`},
		{"an offset beyond a pack", `[0,0,`, `[0,16777216,`},
		{"a negative offset", `[0,0,`, `[0,-1,`},
		{"a raw chunk of another length", `[0,0,524288,"raw"`, `[0,0,524287,"raw"`},
		{"a chunk of six values", `[0,0,524288,`, `[0,0,524288,0,`},
		{"a chunk of four values", `[0,0,524288,`, `[0,0,`},
		{"a hole in a pack", `[-1,0,0,"hole"`, `[0,0,0,"hole"`},
		{"a hole with a digest of something else", HoleDigest(ChunkSize / 2).String(), Sum(nil).String()},
		{"a digest in capitals", HoleDigest(ChunkSize).String(), strings.ToUpper(HoleDigest(ChunkSize).String())},
		{"a file size that its chunks do not make", `"size":524288`, `"size":1`},
		{"a negative size", `"size":524288`, `"size":-1`},
		{"a size near the end of the range", `"size":524288`, `"size":9223372036854775807`},
		{"totals that do not add up", `"files":3`, `"files":4`},
		{"a pack of a later attempt", `/00000000000000000001/`, `/00000000000000000002/`},
		{"a pack of a later epoch", `["00000000000000000003/`, `["00000000000000000004/`},
		{"a parent of the first commit", `"created"`, `"parent":{"number":0,"sha256":"` + Sum(nil).String() + `"},"created"`},
		{"a checkpoint that says seal", `"kind":"checkpoint"`, `"kind":"seal"`},
		{"no history", `"history":[`, `"history":[],"x":[`},
		{"no epoch", `"epoch":3`, `"epoch":0`},
		{"no writer", testID(1).String(), "00000000-0000-0000-0000-000000000000"},
		{"no time", `"created":"2026-12-01T19:30:00.123456789Z"`, `"created":"0001-01-01T00:00:00Z"`},
		{"invalid UTF-8", `"sql"`, "\"s\xffl\""},
		{"a control character in a name", `"sql"`, `"s\nql"`},
		{"not an object", line, "[]\n"},
		{"nesting without end", `"step":1001`, `"step":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000)},
	} {
		changed := strings.Replace(line, row.old, row.new, 1)
		if changed == line {
			t.Errorf("%s: %q does not occur in %s", row.name, row.old, line)
			continue
		}
		if _, err := DecodeCommit(1, storedLine(changed)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v, want a corrupt commit", row.name, err)
		}
	}
}

// CASES A48
func TestACommitOfANewerVersionNamesThatVersion(t *testing.T) {
	text, err := formatOne().commitText(push(t, nil, 1, []Source{source("a", "ab")}))
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Replace(string(text[:bytes.IndexByte(text, '\n')+1]), "cairn 0.1.0", "cairn 9.9.9", 1)
	for _, row := range []struct{ name, old, new, what string }{
		{"format", `"format":1`, `"format":2,"new_field":{"x":[1]}`, "format 2"},
		{"kind", `"kind":"checkpoint"`, `"kind":"partial"`, `kind "partial"`},
		{"encoding", `"raw"`, `"lz4"`, `encoding "lz4"`},
	} {
		_, err := DecodeCommit(1, storedLine(strings.Replace(line, row.old, row.new, 1)))
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.What != row.what || !strings.Contains(err.Error(), "cairn 9.9.9") {
			t.Errorf("unknown %s: %v, want it named with the version that wrote it", row.name, err)
		}
	}
}

// CASES A17
func TestDamagedStoredBytesAreRefused(t *testing.T) {
	stored, err := EncodeCommit(push(t, nil, 1, []Source{source("a", "abc")}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range stored {
		for _, damaged := range [][]byte{stored[:i], append(bytes.Clone(stored[:i]), stored[i]^0x40), append(bytes.Clone(stored), stored[i])} {
			if len(damaged) == i+1 {
				damaged = append(damaged, stored[i+1:]...)
			}
			if _, err := DecodeCommit(1, damaged); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("byte %d damaged: %v, want a corrupt commit", i, err)
			}
		}
	}
}

func TestACommitThatUnpacksWithoutEndIsCutOff(t *testing.T) {
	limit := commitLimits{text: 1 << 20, stored: MaxCommit}
	for name, bomb := range map[string][]byte{"that declares its size": declared(t, 2<<20), "that does not": streamed(t, 2<<20)} {
		if _, err := limit.commitLine("commit 1", bomb); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "zstd") {
			t.Errorf("a frame %s, %d bytes for 2 MiB, limit 1 MiB: %v", name, len(bomb), err)
		}
	}
	wide := new(bytes.Buffer)
	e, err := zstd.NewWriter(wide, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(2*ZstdWindow))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Write(make([]byte, 100)); err != nil || e.Flush() != nil || e.Close() != nil {
		t.Fatal("the encoder fails")
	}
	if _, err := DecodeCommit(1, wide.Bytes()); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "window") {
		t.Errorf("a frame whose window is larger than the format's: %v", err)
	}
}

// A store that hands out a bomb in the place of a commit must not take the memory of the host with it, not even up to the limit of a commit.
func TestACommitThatIsRefusedTakesNoMemory(t *testing.T) {
	const size, most = 64 << 20, 32 << 20 // the decoder's own window is 8 MiB
	for name, bomb := range map[string][]byte{"that declares its size": declared(t, size), "that does not": streamed(t, size)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := DecodeCommit(1, bomb); !errors.Is(err, ErrCorrupt) {
			t.Errorf("a frame %s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("a frame %s: %d bytes, which unpack to %d, took %d bytes of memory", name, len(bomb), size, took)
		}
	}
}

func declared(t *testing.T, n int) []byte {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	return e.EncodeAll(make([]byte, n), nil)
}

func streamed(t *testing.T, n int) []byte {
	var out bytes.Buffer
	e, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<17))
	if err != nil {
		t.Fatal(err)
	}
	for range n / 1024 {
		if _, err := e.Write(make([]byte, 1024)); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// manyFiles makes a commit of files without sharing, whose text is far larger than the zstd window.
func manyFiles(t tb, files, chunks int) *Commit {
	c := push(t, nil, 1, []Source{source("a", "a")})
	c.Files = make([]File, files)
	for i := range c.Files {
		c.Files[i] = File{Path: fmt.Sprintf("%08d", i), Size: int64(chunks) * ChunkSize, Mode: 0o600, Chunks: make([]Chunk, chunks)}
		for j := range chunks {
			c.Files[i].Chunks[j] = Chunk{Stored: 100, Encoding: Zstd, Digest: Sum(fmt.Appendf(nil, "%d/%d", i, j))}
		}
	}
	c.Totals = TotalsOf(c)
	return c
}

func TestACommitLargerThanTheWindowIsReadBack(t *testing.T) {
	c := manyFiles(t, 1000, 100)
	stored, err := EncodeCommit(c)
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeCommit(1, stored)
	if err != nil || len(back.Files) != 1000 || len(stored) < 3<<20 {
		t.Fatalf("%d bytes stored: %v", len(stored), err)
	}
}

// CASES A58
func TestACommitThatNoStoreTakesInOnePieceIsRefusedWithTheRemedy(t *testing.T) {
	c := push(t, nil, 1, []Source{source("a", "abc")})
	for name, limits := range map[string]commitLimits{
		"stored bytes": {text: MaxCommitText, stored: 400}, "text": {text: 400, stored: MaxCommit},
	} {
		_, err := encodeCommit(c, limits)
		if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "divide the state") {
			t.Errorf("too many %s: %v does not say what to do", name, err)
		}
	}
}

// CASES A49, A51
func TestHostileAndHonestNames(t *testing.T) {
	long := strings.Repeat("n", MaxSegment)
	for _, good := range []string{
		"a b", "ü", "u\u0308", "%2F", "x\ny", "a:b", long, "\xff\xfe", "😀", "con", "..a", "a..", "...", "a/.b/c", `back\slash`, "-rf", "~",
	} {
		if err := CheckPath(good); err != nil {
			t.Errorf("path %q: %v", good, err)
		}
		c := push(t, nil, 1, []Source{source(good, "a")})
		stored, err := EncodeCommit(c)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeCommit(1, stored); err != nil || back.Files[0].Path != good {
			t.Errorf("path %q comes back as %+v, %v", good, back, err)
		}
	}
	for _, bad := range []string{
		"", ".", "..", "/", "/a", "a/", "a//b", "./a", "a/.", "a/./b", "../a", "a/..", "a/../b", "a/../../b", "\x00", "a\x00b", long + "n",
		strings.Repeat("d/", MaxPath/2) + "xx",
	} {
		if CheckPath(bad) == nil {
			t.Errorf("path %q is accepted", bad)
		}
	}
}

func FuzzDecodeCommit(f *testing.F) {
	for _, c := range []*Commit{push(f, nil, 1, []Source{source("a", "ab0"), source("\xff", "a")}), testSeal(1)} {
		c.Parent = Digest{}
		text, err := formatOne().commitText(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text[:bytes.IndexByte(text, '\n')+1]))
	}
	f.Add("{}\n")
	f.Add("\n")
	f.Fuzz(func(t *testing.T, line string) {
		c, err := decodeLine("commit 1", 1, []byte(line))
		if err != nil {
			if _, unsupported := errors.AsType[*UnsupportedError](err); !unsupported && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%q: %v is neither corrupt nor unsupported", line, err)
			}
			return
		}
		text, err := formatOne().commitText(c)
		if err != nil {
			t.Fatalf("%q is read but cannot be written: %v", line, err)
		}
		back, err := decodeLine("commit 1", 1, text[:bytes.IndexByte(text, '\n')+1])
		if err != nil || !reflect.DeepEqual(normal(c), normal(back)) {
			t.Fatalf("%q is read back as %+v, %v", line, back, err)
		}
	})
}

// FuzzStoredCommit feeds raw bytes to the decompression and its bounds.
func FuzzStoredCommit(f *testing.F) {
	stored, err := EncodeCommit(push(f, nil, 1, []Source{source("a", "ab0")}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(stored)
	f.Add(stored[:len(stored)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := DecodeCommit(1, b); (c == nil) == (err == nil) {
			t.Fatalf("commit %v with error %v", c, err)
		}
	})
}
