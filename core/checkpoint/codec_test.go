package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// manifests draws valid ones, with paths of any bytes.
func manifests() *rapid.Generator[Manifest] {
	return rapid.Custom(func(t *rapid.T) Manifest {
		m := Manifest{
			ID:          compose(rapid.Uint64Range(0, maxMillis).Draw(t, "ms"), rapid.Uint64Range(0, maxHigh).Draw(t, "high"), 1),
			Step:        rapid.Uint64().Draw(t, "step"),
			Created:     time.Unix(rapid.Int64Range(0, 1e11).Draw(t, "created"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC(),
			Incarnation: uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "incarnation")),
			Kind:        rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "kind"),
			Fingerprint: [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "fingerprint")),
			History:     rapid.SliceOf(rapid.Custom(reign)).Draw(t, "history"),
			Files:       []File{},
		}
		names := rapid.SliceOfNDistinct(names(), 0, 8, rapid.ID[string]).Draw(t, "paths")
		slices.Sort(names)
		for i, name := range names {
			m.Files = append(m.Files, file(t, fmt.Sprintf("%d%s", i, name)))
		}
		return m
	})
}

func reign(t *rapid.T) Reign {
	return Reign{Lineage: uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "lineage")), UpTo: rapid.Uint64().Draw(t, "up to")}
}

func names() *rapid.Generator[string] {
	segment := rapid.Map(rapid.SliceOfN(rapid.ByteRange(1, 255).Filter(func(b byte) bool { return b != '/' && b != '.' }), 1, 12),
		func(b []byte) string { return string(b) })
	return rapid.Map(rapid.SliceOfN(segment, 1, 3), func(s []string) string { return strings.Join(s, "/") })
}

func file(t *rapid.T, path string) File {
	size := rapid.SampledFrom([]int64{0, 1, ChunkSize - 1, ChunkSize, ChunkSize + 1, 3 * ChunkSize}).Draw(t, "size")
	chunks := make([][32]byte, chunkCount(size))
	for i := range chunks {
		chunks[i] = [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "chunk"))
	}
	inode := Inode{Device: rapid.Uint64().Draw(t, "dev"), Number: rapid.Uint64().Draw(t, "ino"), ModifiedNs: rapid.Int64().Draw(t, "mtime")}
	return File{Path: path, Size: size, Mode: fs.FileMode(rapid.Uint32Range(0, 0o777).Draw(t, "mode")), Chunks: chunks, Inode: inode}
}

func TestAManifestComesBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := manifests().Draw(t, "manifest")
		data, err := encodeManifest(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeManifest("checkpoint.json", data)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
		again, err := encodeManifest(got)
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("encoding is not stable: %v", err)
		}
	})
}

// CASES A23
func TestNoDamagedByteOfAManifestIsOverlooked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data, err := encodeManifest(manifests().Draw(t, "manifest"))
		if err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
		bad := bytes.Clone(data)
		bad[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		original, _ := decodeManifest("checkpoint.json", data)
		got, err := decodeManifest("checkpoint.json", bad)
		if err == nil && !reflect.DeepEqual(got, original) {
			t.Fatalf("byte %d changed unnoticed", at)
		}
	})
}

// CASES A23
func TestATruncatedOrZeroedManifestIsCorrupt(t *testing.T) {
	data, err := encodeManifest(Manifest{ID: compose(1, 1, 1), Kind: "sql"})
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"empty": {}, "half": data[:len(data)/2], "zeros": make([]byte, len(data)), "twice": slices.Concat(data, data),
		"not JSON": []byte("hello"), "an array": []byte("[]"), "no format": []byte("{}"), "null": []byte("null"),
		"format 0": bytes.Replace(data, []byte(`"format":1`), []byte(`"format":0`), 1),
	} {
		if _, err := decodeManifest("dir/checkpoint.json", bad); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "dir/checkpoint.json") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// CASES A48
func TestANewerFormatIsRefusedWithItsNumber(t *testing.T) {
	future := []byte(`{"format":12,"layers":[1,2],"codec":{"x":true}}`)
	_, err := decodeManifest("dir/checkpoint.json", future)
	var format *FormatError
	if !errors.As(err, &format) || format.Got != 12 || format.Want != 1 || errors.Is(err, ErrCorrupt) {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "newer cairn") {
		t.Errorf("no remedy in %q", err)
	}
}

// CASES A49
func TestAManifestThatCouldHarmIsRefusedWhenReadAndWhenWritten(t *testing.T) {
	one := [][32]byte{{}}
	for name, files := range map[string][]File{
		"empty path":                    {{Path: ""}},
		"the directory itself":          {{Path: "."}},
		"parent":                        {{Path: ".."}},
		"path that climbs":              {{Path: "../x"}},
		"absolute path":                 {{Path: "/etc/x"}},
		"path that climbs in between":   {{Path: "a/../../b"}},
		"unclean path":                  {{Path: "a//b"}},
		"dot segment":                   {{Path: "a/./b"}},
		"trailing slash":                {{Path: "a/"}},
		"NUL":                           {{Path: "a\x00b"}},
		"two files of one name":         {{Path: "a"}, {Path: "a"}},
		"out of order":                  {{Path: "b"}, {Path: "a"}},
		"file below a file":             {{Path: "a"}, {Path: "a/b"}},
		"file below a file, far apart":  {{Path: "a"}, {Path: "a-b"}, {Path: "a/b/c"}},
		"negative size":                 {{Path: "a", Size: -1}},
		"too few chunks":                {{Path: "a", Size: ChunkSize + 1, Chunks: one}},
		"chunks of an empty file":       {{Path: "a", Size: 0, Chunks: one}},
		"set-uid bit":                   {{Path: "a", Mode: fs.ModeSetuid | 0o755}},
		"symbolic link among the files": {{Path: "a", Mode: fs.ModeSymlink | 0o777}},
	} {
		t.Run(name, func(t *testing.T) {
			m := Manifest{ID: compose(1, 1, 1), Kind: "sql", Files: files}
			if _, err := encodeManifest(m); err == nil {
				t.Error("it was written")
			}
			if err := Verify(t.Context(), t.TempDir(), m); err == nil {
				t.Error("it was verified")
			}
			if _, err := decodeManifest("f", sealUnchecked(t, m)); !errors.Is(err, ErrCorrupt) {
				t.Errorf("read: %v", err)
			}
		})
	}
}

// sealUnchecked writes what encodeManifest refuses to, with a good checksum.
func sealUnchecked(t *testing.T, m Manifest) []byte {
	t.Helper()
	j := manifestJSON{ID: m.ID, Circuit: circuitJSON{Kind: m.Kind}}
	for _, f := range m.Files {
		j.Files = append(j.Files, encodeFile(f))
	}
	data, err := sealJSON(j)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAnUnknownFieldIsRefused(t *testing.T) {
	body := map[string]any{"id": compose(1, 1, 1), "circuit": map[string]any{"kind": "sql", "fingerprint": digest{}}, "colour": "red"}
	data, err := sealJSON(body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeManifest("f", data); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "colour") {
		t.Errorf("got %v", err)
	}
}

func TestAManifestIsJSONThatPeopleCanRead(t *testing.T) {
	m := Manifest{ID: compose(1, 1, 1), Kind: "sql", Files: []File{{Path: "état.db", Mode: 0o640}, {Path: "\xff", Mode: 0o600}}}
	data, err := encodeManifest(m)
	if err != nil || !json.Valid(data) {
		t.Fatal(err, string(data))
	}
	for _, want := range []string{`"path":"état.db"`, `"mode":"0640"`, `"path_base64":"/w=="`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is not in %s", want, data)
		}
	}
}
