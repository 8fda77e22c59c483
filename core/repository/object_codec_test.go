package repository

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func testFormat() Format {
	return Format{RepositoryID: testID(5), PipelineID: testID(6), PipelineName: "strikes", Created: testTime(), WrittenBy: "cairn 0.1.0"}
}

func testEpoch() Epoch {
	return Epoch{Number: 7, Writer: testWriter(), Host: "db-1.example", Started: testTime(), WrittenBy: "cairn 0.1.0"}
}

func testGC() GC {
	return GC{Number: 3, Epoch: 7, Writer: testWriter(), UpTo: 40, Kept: []uint64{12, 40}, Created: testTime(), WrittenBy: "cairn 0.1.0"}
}

func TestSmallObjectsAreReadBackAsTheyWereWritten(t *testing.T) {
	f, err := EncodeFormat(testFormat())
	if err != nil {
		t.Fatal(err)
	}
	if back, err := DecodeFormat(f); err != nil || back != testFormat() {
		t.Errorf("format %+v, %v", back, err)
	}
	e, err := EncodeEpoch(testEpoch())
	if err != nil {
		t.Fatal(err)
	}
	if back, err := DecodeEpoch(7, e); err != nil || back != testEpoch() {
		t.Errorf("epoch %+v, %v", back, err)
	}
	g, err := EncodeGC(testGC())
	if err != nil {
		t.Fatal(err)
	}
	if back, err := DecodeGC(3, g); err != nil || !reflect.DeepEqual(back, testGC()) {
		t.Errorf("gc %+v, %v", back, err)
	}
	for name, b := range map[string][]byte{"format": f, "epoch": e, "gc": g} {
		if bytes.Count(b, []byte("\n")) != 1 || b[len(b)-1] != '\n' {
			t.Errorf("%s is not one line: %q", name, b)
		}
	}
}

func TestSmallObjectsThatNoCairnWritesAreRefused(t *testing.T) {
	f, _ := EncodeFormat(testFormat())
	e, _ := EncodeEpoch(testEpoch())
	g, _ := EncodeGC(testGC())
	decode := map[string]func([]byte) error{
		"format": func(b []byte) error { _, err := DecodeFormat(b); return err },
		"epoch":  func(b []byte) error { _, err := DecodeEpoch(7, b); return err },
		"gc":     func(b []byte) error { _, err := DecodeGC(3, b); return err },
	}
	good := map[string][]byte{"format": f, "epoch": e, "gc": g}
	for _, row := range []struct{ name, object, old, new string }{
		{"an empty FORMAT", "format", string(f), ""},
		{"a cut FORMAT", "format", "}\n", ""},
		{"FORMAT twice", "format", string(f), string(f) + string(f)},
		{"no pipeline", "format", testID(6).String(), "00000000-0000-0000-0000-000000000000"},
		{"no name", "format", `"strikes"`, `""`},
		{"a format that is text", "format", `"format":1`, `"format":"1"`},
		{"an epoch under another's key", "epoch", `"number":7`, `"number":8`},
		{"an epoch with a field of its own", "epoch", `"number":7`, `"number":7,"lease":1`},
		{"a host of many lines", "epoch", "db-1.example", `db\n-1`},
		{"a host longer than its bound", "epoch", "db-1.example", strings.Repeat("x", MaxHost+1)},
		{"kept above the boundary", "gc", `[12,40]`, `[12,41]`},
		{"kept out of order", "gc", `[12,40]`, `[40,12]`},
		{"kept twice", "gc", `[12,40]`, `[12,12]`},
		{"kept 0", "gc", `[12,40]`, `[0,40]`},
		{"an object above its bound", "gc", "}\n", "}\n" + strings.Repeat(" ", MaxSmall)},
	} {
		changed := strings.Replace(string(good[row.object]), row.old, row.new, 1)
		if changed == string(good[row.object]) {
			t.Errorf("%s: %q does not occur", row.name, row.old)
		}
		if err := decode[row.object]([]byte(changed)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v, want corrupt", row.name, err)
		}
	}
}

// CASES A48
func TestARepositoryOfANewerFormatIsRefusedWithTheVersionThatWroteIt(t *testing.T) {
	f, _ := EncodeFormat(testFormat())
	for _, row := range []struct{ old, new, what string }{
		{`"format":1`, `"format":2,"encryption":"age"`, "format 2"},
		{`"chunk_size":1048576`, `"chunk_size":4194304`, `chunk size 4194304 with hash "sha256"`},
		{`"sha256"`, `"blake3"`, `chunk size 1048576 with hash "blake3"`},
	} {
		_, err := DecodeFormat([]byte(strings.Replace(string(f), row.old, row.new, 1)))
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.What != row.what || unsupported.WrittenBy != "cairn 0.1.0" {
			t.Errorf("%s: %v", row.what, err)
		}
	}
}

func TestGCHidesWhatIsAtOrBelowItsBoundaryAndNotKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := GC{UpTo: rapid.Uint64Range(0, 30).Draw(t, "up to")}
		kept := map[uint64]bool{}
		for n := uint64(1); n <= g.UpTo; n++ {
			if rapid.Bool().Draw(t, "keep") {
				g.Kept = append(g.Kept, n)
				kept[n] = true
			}
		}
		for n := uint64(1); n < 40; n++ {
			if want := n > g.UpTo || kept[n]; g.Visible(n) != want {
				t.Fatalf("commit %d of %+v: visible %v", n, g, !want)
			}
		}
	})
	if !(GC{}).Visible(1) {
		t.Error("no gc object hides commit 1")
	}
}

func TestTheReadmeSaysHowToReadTheRepositoryWithoutCairn(t *testing.T) {
	text := string(ReadmeText(testFormat()))
	for _, want := range []string{`"strikes"`, testID(5).String(), "2026-12-01", "zstd -d", "sha256sum", "1048576 bytes"} {
		if !strings.Contains(text, want) {
			t.Errorf("README.txt does not say %q:\n%s", want, text)
		}
	}
}

// The text stays on targets for ever: it names no command that this version does not have.
func TestTheReadmeNamesOnlyCommandsThatExist(t *testing.T) {
	have := []string{"cairn remote list", "cairn checkpoint restore"}
	text := string(ReadmeText(testFormat()))
	named := regexp.MustCompile(`"cairn [a-z ]+"`).FindAllString(text, -1)
	if len(named) != len(have) {
		t.Errorf("it names %q", named)
	}
	for _, command := range named {
		if !slices.Contains(have, strings.Trim(command, `"`)) {
			t.Errorf("it names %s", command)
		}
	}
	if !strings.Contains(text, `"seal"`) {
		t.Error("it does not say that some commits are seals")
	}
}

func TestTheReadmeEndsWithTheScriptOfTheFormatPage(t *testing.T) {
	text := string(ReadmeText(testFormat()))
	at := strings.Index(text, "#!/bin/sh\n")
	if at < 0 || text[at:] != restoreScript {
		t.Error("README.txt does not end with restore.sh")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "format.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```sh\n"+restoreScript+"```\n") {
		t.Error("docs/format.md does not hold restore.sh")
	}
}
