package repository

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// docs/format.md is held to the code: its tables have the fields of the wire, its numbers are the constants, its examples are objects of a
// golden repository.

func formatPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "format.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section is the part of the page below a heading of the second level.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("docs/format.md has no section %q", heading)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

func TestTheTablesOfTheFormatPageHaveTheFieldsOfTheWireAndNoOther(t *testing.T) {
	page := formatPage(t)
	for heading, wire := range map[string]any{
		"Text": header{}, "FORMAT.json": formatWire{}, "epoch": epochWire{}, "commit": commitWire{}, "gc": gcWire{}, "pin": pinWire{},
	} {
		got := fieldsOfTable(section(t, page, heading))
		want := fieldsOf(reflect.TypeOf(wire), "")
		if !slices.Equal(got, want) {
			t.Errorf("section %s describes\n  %q\nthe wire has\n  %q", heading, got, want)
		}
	}
}

// fieldsOfTable are the names in the first column of the table whose heading begins with "field", in their order.
func fieldsOfTable(text string) []string {
	_, table, _ := strings.Cut(text, "| field |")
	table, _, _ = strings.Cut(table, "\n\n")
	var names []string
	for row := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
			names = append(names, name[1])
		}
	}
	return names
}

// fieldsOf are the fields of a wire struct as the page names them: "a.b" is b of the object a, "a[].b" that of each object of the array a.
func fieldsOf(of reflect.Type, within string) []string {
	var names []string
	for _, f := range reflect.VisibleFields(of) {
		if f.Anonymous || len(f.Index) > 1 && of.Field(f.Index[0]).Type != reflect.TypeFor[header]() {
			continue
		}
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, within+tag)
		inner, prefix := f.Type, within+tag+"."
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Slice {
			inner, prefix = inner.Elem(), within+tag+"[]."
		}
		if inner.Kind() == reflect.Struct && !slices.Contains(leaves(), inner) {
			names = append(names, fieldsOf(inner, prefix)...)
		}
	}
	return names
}

// leaves are the structs that are one value on the wire.
func leaves() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[time.Time](), reflect.TypeFor[PackID](), reflect.TypeFor[chunkWire]()}
}

func TestTheNumbersOfTheFormatPageAreTheConstants(t *testing.T) {
	page := formatPage(t)
	limits := section(t, page, "Limits")
	for name, want := range map[string]int{
		"prefix": MaxPrefix, "content of a chunk": ChunkSize, "pack": MaxPack, "commit, as stored": MaxCommit, "commit, decompressed": MaxCommitText,
		"`FORMAT.json`, epoch, gc object, pin": MaxSmall, "window of a zstd frame": ZstdWindow, "path": MaxPath, "segment of a path": MaxSegment,
	} {
		if row := "\n| " + name + " | " + strconv.Itoa(want) + " |"; !strings.Contains(limits, row) {
			t.Errorf("the limits do not say %q", row)
		}
	}
	if rows := strings.Count(limits, "\n| "); rows != 10 {
		t.Errorf("%d rows of limits, a heading among them", rows)
	}
	for heading, parts := range map[string][]string{
		"Text":        {"`written_by` | text, 1 to " + strconv.Itoa(MaxWrittenBy) + " bytes"},
		"FORMAT.json": {"`pipeline_name` | text, 1 to " + strconv.Itoa(MaxPipelineName), strconv.Itoa(ChunkSize) + " in format 1", "`" + HashName + "` in format 1"},
		"epoch":       {"`host` | text, 1 to " + strconv.Itoa(MaxHost)},
		"commit": {
			"array of 1 to " + strconv.Itoa(MaxReigns) + " objects", "`checkpoint.identity.kind` | text, 1 to " + strconv.Itoa(MaxIdentityKind), "window at most " + strconv.Itoa(ZstdWindow),
			"multiples of " + strconv.Itoa(ChunkSize), "| `" + string(Raw) + "` |", "| `" + string(Zstd) + "` |", "| `" + string(Hole) + "` |",
			"`kind` | `" + string(KindCheckpoint) + "` or `" + string(KindSeal) + "`", strconv.Itoa(NoPack) + " for a hole",
		},
		"pin":  {"`name` | text, 1 to " + strconv.Itoa(MaxPinName), "`by` | text, 1 to " + strconv.Itoa(MaxHost), "`note` | text, to " + strconv.Itoa(MaxPinNote)},
		"Keys": {"<" + strconv.Itoa(digits) + " digits>", "at most " + strconv.Itoa(MaxPinName) + " bytes"},
	} {
		text := section(t, page, heading)
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("section %s does not say %q", heading, part)
			}
		}
	}
}

func TestTheKeysOfTheFormatPageAreThoseOfTheCode(t *testing.T) {
	keys := section(t, formatPage(t), "Keys")
	shape := strings.NewReplacer(pad(1), "<20 digits>", Digest{}.String(), "<64 hex>")
	for _, key := range []string{
		FormatKey(""), ReadmeKey(""), EpochKey("", 1), CommitKey("", 1), GCKey("", 1), PackKey("", PackID{Epoch: 1, Number: 1}), PinKey("", "<name>"), ProbeKey("", "<owner>", "<name>"),
	} {
		if row := "\n| `" + shape.Replace(key) + "` |"; !strings.Contains(keys, row) {
			t.Errorf("there is no row %q", row)
		}
	}
	if rows := strings.Count(keys, "\n| `/"); rows != 8 {
		t.Errorf("%d keys have a row", rows)
	}
}

// An example is the object of the golden repository, folded: without the white space it is that object's bytes.
func TestEachExampleOfTheFormatPageIsAnObjectOfTheGoldenRepository(t *testing.T) {
	examples := regexp.MustCompile("(?s)Example, `([^`]+)`[^\n]*folded:\n\n```json\n(.*?)```\n(?:```\n([0-9a-f]{64})\n```)?").FindAllStringSubmatch(formatPage(t), -1)
	if len(examples) != 5 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, e := range examples {
		key, folded, sum := e[1], e[2], e[3]
		stored, err := os.ReadFile(filepath.Join("..", "syncer", "testdata", "golden", "v1-retired", "objects", "strikes", key))
		if err != nil {
			t.Fatal(err)
		}
		line := stored
		if strings.HasPrefix(key, commitDir) {
			if line, err = formatOne().commitLine(key, stored); err != nil {
				t.Fatal(err)
			}
			if Sum(line).String() != sum {
				t.Errorf("the second line of %s is %s", key, Sum(line))
			}
		}
		var unfolded bytes.Buffer
		if err := json.Compact(&unfolded, []byte(folded)); err != nil {
			t.Fatal(err)
		}
		if got := unfolded.String() + "\n"; got != string(line) {
			t.Errorf("%s is\n%sthe page says\n%s", key, line, got)
		}
		if err := decodeAny(key, stored); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// decodeAny decodes the object of a key below the prefix.
func decodeAny(key string, b []byte) error {
	key = "/" + key
	var err error
	switch {
	case key == FormatKey(""):
		_, err = DecodeFormat(b)
	case strings.HasPrefix(key, EpochPrefix("")):
		var n uint64
		if n, err = ParseEpochKey("", key); err == nil {
			_, err = DecodeEpoch(n, b)
		}
	case strings.HasPrefix(key, GCPrefix("")):
		var n uint64
		if n, err = ParseGCKey("", key); err == nil {
			_, err = DecodeGC(n, b)
		}
	case strings.HasPrefix(key, CommitPrefix("")):
		var n uint64
		if n, err = ParseCommitKey("", key); err == nil {
			_, err = DecodeCommit(n, b)
		}
	default:
		_, err = DecodePin(strings.TrimSuffix(strings.TrimPrefix(key, "/"+pinDir), ".json"), b)
	}
	return err
}
