package sqlcircuit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rowsOf is a CSV file with so many rows, whose keys begin with the prefix.
func rowsOf(prefix string, n int) string {
	var b strings.Builder
	b.WriteString("k,n\n")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "%s%d,%d\n", prefix, i, i)
	}
	return b.String()
}

// putInPlace replaces a file as sed -i, an editor or mv does: by a rename, at once. With a backup the old one keeps that name.
func putInPlace(t *testing.T, path, text, backup string) {
	t.Helper()
	if backup != "" {
		if err := os.Link(path, backup); err != nil {
			t.Fatal(err)
		}
	}
	write(t, path+"~new", text)
	if err := os.Rename(path+"~new", path); err != nil {
		t.Fatal(err)
	}
}

// down ends the circuit, so that all of a change is seen at once by the next.
func (r *rig) down(t *testing.T) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// A replacement is told apart from a rotation whether the circuit runs meanwhile or not.
func TestAFileThatIsReplacedStopsTheInputAndCountsOnce(t *testing.T) {
	twenty, long := rowsOf("a", 20), rowsOf("a", 2000)
	edited := strings.Replace(twenty, "a3,3", "a3,3333", 1)
	for _, row := range []struct {
		name, first, second string
		backup              string // name of the old file; "" = it is gone
		stopped             string
		only                string // "live": only the open file tells it; "down": the backup, a file of the pattern, must not be seen before the new one
	}{
		{name: "sed -i", first: twenty, second: edited, stopped: "it was replaced"},
		{name: "mv of another file", first: twenty, second: rowsOf("b", 40), stopped: "it was replaced"},
		{name: "mv of a shorter file", first: twenty, second: rowsOf("b", 2), stopped: "it shrank"},
		{name: "sed -i with a backup", first: twenty, second: edited, backup: "saved", stopped: "it was replaced by a rewritten copy of itself", only: "live"},
		{name: "sed -i with a backup of the pattern, behind it", first: twenty, second: edited, backup: "z.csv", stopped: "it was replaced by a rewritten copy of itself", only: "down"},
		{name: "sed -i with a backup of the pattern, before it", first: twenty, second: edited, backup: "a.csv", stopped: "it was replaced by a rewritten copy of itself", only: "down"},
		{name: "an edit behind the head", first: long, second: strings.Replace(long, "a1999,1999", "a1999,19", 1) + "b,1\nb,2\n", stopped: "it was replaced by a rewritten copy of itself", only: "live"},
	} {
		for _, when := range []string{"live", "down"} {
			if row.only != "" && row.only != when {
				continue
			}
			t.Run(row.name+", "+when, func(t *testing.T) {
				down := when == "down"
				dir, state := t.TempDir(), t.TempDir()
				path := filepath.Join(dir, "in.csv")
				write(t, path, row.first)
				cfg := linesConfig(dir+"/*.csv", CSV, true)
				r := open(t, state, cfg)
				n := int64(strings.Count(row.first, "\n") - 1)
				r.runFor(t, n)
				if down {
					r.down(t)
				}
				backup := row.backup
				if backup != "" {
					backup = filepath.Join(dir, backup)
				}
				putInPlace(t, path, row.second, backup)
				if down {
					r = open(t, state, cfg)
				}
				r.runUntil(t, func() bool { return strings.Contains(r.Stats().Inputs[0].Stopped, "in.csv: "+row.stopped+": ") })
				wantRows(t, r.Circuit, "SELECT count(*) FROM lines", fmt.Sprint(n))
			})
		}
	}
}

func TestARotationIsNotedAndCountsBothFilesOnce(t *testing.T) {
	for _, row := range []struct {
		name   string
		first  map[string]string
		change func(t *testing.T, r *rig, dir string)
		want   int64 // records in all
		note   string
	}{
		{
			name: "by renaming", first: map[string]string{"in.csv": rowsOf("a", 3)}, want: 5, note: "rotated since the start: DIR/in.csv (1)",
			change: func(t *testing.T, _ *rig, dir string) { putInPlace(t, dir+"/in.csv", rowsOf("b", 2), dir+"/old") },
		},
		{
			name: "to a name of the pattern", first: map[string]string{"in.csv": rowsOf("a", 3)}, want: 5, note: "rotated since the start: DIR/in.csv (1)",
			change: func(t *testing.T, r *rig, dir string) {
				r.down(t)
				putInPlace(t, dir+"/in.csv", rowsOf("b", 2), dir+"/z.csv")
			},
		},
		{
			name: "with the old file deleted before the new one comes", first: map[string]string{"in.csv": rowsOf("a", 3)}, want: 5,
			note: "rotated since the start: DIR/in.csv (1)",
			change: func(t *testing.T, r *rig, dir string) {
				if err := os.Rename(dir+"/in.csv", dir+"/old"); err != nil {
					t.Fatal(err)
				}
				r.runUntil(t, func() bool { return r.Stats().Inputs[0].Note == "gone: "+dir+"/in.csv" })
				if err := os.Remove(dir + "/old"); err != nil {
					t.Fatal(err)
				}
				putInPlace(t, dir+"/in.csv", rowsOf("b", 2), "")
			},
		},
		{
			name: "of several, each moving up by one", first: map[string]string{"in.csv": rowsOf("a", 30), "in.1.csv": rowsOf("b", 3)}, want: 35,
			note: "rotated since the start: DIR/in.1.csv (1); rotated since the start: DIR/in.csv (1)",
			change: func(t *testing.T, r *rig, dir string) {
				r.down(t)
				putInPlace(t, dir+"/in.1.csv", rowsOf("a", 30), dir+"/in.2.csv")
				putInPlace(t, dir+"/in.csv", rowsOf("c", 2), "")
			},
		},
		{
			name: "not at all: a copy that has grown", first: map[string]string{"in.csv": rowsOf("a", 3)}, want: 5,
			change: func(t *testing.T, _ *rig, dir string) { putInPlace(t, dir+"/in.csv", rowsOf("a", 5), "") },
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir, state, n := t.TempDir(), t.TempDir(), int64(0)
			for name, text := range row.first {
				write(t, filepath.Join(dir, name), text)
				n += int64(strings.Count(text, "\n") - 1)
			}
			cfg := linesConfig(dir+"/*.csv", CSV, true)
			r := open(t, state, cfg)
			r.runFor(t, n)
			row.change(t, r, dir)
			if !r.life.isOpen() {
				r = open(t, state, cfg)
			}
			want := strings.ReplaceAll(row.note, "DIR", dir)
			r.runUntil(t, func() bool { return r.handled() >= row.want && r.Stats().Inputs[0].Note == want })
			wantRows(t, r.Circuit, "SELECT count(*) FROM lines", fmt.Sprint(row.want))
		})
	}
}

func TestARecordThatStaysOpenIsNoted(t *testing.T) {
	path := temp(t, "in.csv")
	write(t, path, "k,n\na,1\n\"b,2\nc,3\n")
	r := open(t, t.TempDir(), linesConfig(path, CSV, true))
	noted := func(note string) {
		t.Helper()
		r.runUntil(t, func() bool { return r.Stats().Inputs[0].Note == note })
	}
	noted(path + ": a record has been open since byte 8: a quote is not closed, and 9 bytes wait for it")
	appendTo(t, path, "\",4\n")
	noted("")
	r.runFor(t, 2)
	appendTo(t, path, "d,5")
	noted(path + ": the record at byte 21 waits for its newline")
	appendTo(t, path, "\n")
	noted("")
	r.runFor(t, 3)
}

func TestALongOpenRecordIsNotedAtOnce(t *testing.T) {
	quote := unfinished{}
	quote.see(8, openBytes, true)
	if got := quote.note(); !strings.Contains(got, "since byte 8") {
		t.Errorf("note of a quote: %q", got)
	}
	line := unfinished{}
	for range openLooks - 1 {
		line.see(8, 2*openBytes, false)
		if got := line.note(); got != "" {
			t.Errorf("note of a line that is being written: %q", got)
		}
	}
	line.see(9, 1, false)
	if line.looks != 1 {
		t.Errorf("another record was seen %d times", line.looks)
	}
}
