package sqlcircuit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// folders are two places of one configuration, and a state that goes from one to the other.
type folders struct{ here, there, state string }

// based is the configuration of a folder: every file of a pattern that is written relative to it.
func based(folder, pattern string) Config {
	cfg := linesConfig(filepath.Join(folder, pattern), NDJSON, true)
	cfg.Inputs[0].File.Base = folder
	return cfg
}

// absolute is what a configuration was before files had names: its state knows them by their absolute paths.
func absolute(folder, pattern string) Config {
	return linesConfig(filepath.Join(folder, pattern), NDJSON, true)
}

// copies puts the same files into both folders, as a copied configuration finds them.
func (f folders) copies(t *testing.T, files map[string]string) {
	t.Helper()
	for _, folder := range []string{f.here, f.there} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			path := filepath.Join(folder, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, path, text)
		}
	}
}

func TestAStateGoesOnWhereverItsConfigurationLies(t *testing.T) {
	long := strings.Repeat("1", 5000) // more than a head
	for _, row := range []struct {
		name    string
		pattern string
		files   map[string]string
		before  func(folder, pattern string) Config // the first run's
		after   func(folder, pattern string) Config // the second run's, in the other folder; nil = based
		change  func(t *testing.T, f folders)
		want    string // records in the end
		stopped string
		note    string
	}{
		{
			name: "the same file: only what is new is read, though the old one is still there", pattern: "a.log",
			files: map[string]string{"a.log": "1\n2\n"}, before: based,
			change: func(t *testing.T, f folders) { appendTo(t, f.there+"/a.log", "3\n") }, want: "1 2 3",
		},
		{
			name: "a copy that was made too early: the input stops", pattern: "a.log",
			files: map[string]string{"a.log": "1\n2\n"}, before: based,
			change: func(t *testing.T, f folders) { write(t, f.there+"/a.log", "1\n") }, want: "1 2", stopped: "/a.log: it shrank: all 4 bytes",
		},
		{
			name: "another file of that name: the input stops", pattern: "a.log",
			files: map[string]string{"a.log": "1\n2\n"}, before: based,
			change: func(t *testing.T, f folders) { write(t, f.there+"/a.log", "7\n8\n9\n") }, want: "1 2", stopped: "/a.log: it was replaced",
		},
		{
			name: "the file comes later: it is gone until then, and read on", pattern: "a.log",
			files: map[string]string{"a.log": "1\n2\n"}, before: based,
			change: func(t *testing.T, f folders) { remove(t, f.there+"/a.log") }, want: "1 2", note: "gone: ",
		},
		{
			name: "files of a folder that begin alike: each goes on where it was", pattern: "in/*.log",
			files:  map[string]string{"in/a.log": long + "\n2\n", "in/b.log": long + "\n3\n4\n", "in/c.log": long + "\n"},
			before: based, change: func(t *testing.T, f folders) {
				appendTo(t, f.there+"/in/a.log", "5\n")
				appendTo(t, f.there+"/in/b.log", "6\n")
				appendTo(t, f.there+"/in/c.log", "7\n")
			}, want: long + " 2 " + long + " 3 4 " + long + " 5 6 7",
		},
		{
			name: "a file beside the configuration's folder", pattern: "../beside.log",
			files: map[string]string{"../beside.log": "1\n"}, before: based,
			change: func(t *testing.T, f folders) { appendTo(t, f.there+"/../beside.log", "2\n") }, want: "1 2",
		},
		{
			name: "a state with absolute paths, the old file still there", pattern: "in/a.log",
			files: map[string]string{"in/a.log": "1\n2\n"}, before: absolute,
			change: func(t *testing.T, f folders) { appendTo(t, f.there+"/in/a.log", "3\n") }, want: "1 2 3",
		},
		{
			name: "a state with absolute paths, the old file gone and the new one too short: the input stops", pattern: "in/a.log",
			files: map[string]string{"in/a.log": "1\n2\n"}, before: absolute, change: func(t *testing.T, f folders) {
				remove(t, f.here+"/in/a.log")
				write(t, f.there+"/in/a.log", "1\n")
			}, want: "1 2", stopped: "it shrank",
		},
		{
			name: "a state with absolute paths that was read in both folders: the place decides", pattern: "a.log",
			files: map[string]string{"a.log": "1\n"}, before: absolute, change: func(t *testing.T, f folders) {
				appendTo(t, f.there+"/a.log", "2\n")
				r := open(t, f.state, absolute(f.there, "a.log"))
				r.runFor(t, 3)
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				appendTo(t, f.there+"/a.log", "3\n")
			}, want: "1 1 2 3",
		},
		{
			name: "a relative path that is written absolute now", pattern: "a.log",
			files: map[string]string{"a.log": "1\n2\n"}, before: based, after: absolute,
			change: func(t *testing.T, f folders) { appendTo(t, f.there+"/a.log", "3\n") }, want: "1 2 3",
		},
		{
			name: "another absolute path is another file", pattern: "a.log",
			files: map[string]string{"a.log": "1\n2\n"}, before: absolute, after: absolute,
			change: func(*testing.T, folders) {}, want: "1 2 1 2",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := folders{here: temp(t, "conf"), there: temp(t, "conf"), state: t.TempDir()}
			f.copies(t, row.files)
			r := open(t, f.state, row.before(f.here, row.pattern))
			r.runFor(t, int64(lines(row.files)))
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			row.change(t, f)
			if row.after == nil {
				row.after = based
			}
			again := open(t, f.state, row.after(f.there, row.pattern))
			again.runUntil(t, func() bool {
				in := again.Stats().Inputs[0]
				switch {
				case row.stopped != "":
					return strings.Contains(in.Stopped, row.stopped)
				case row.note != "":
					return strings.HasPrefix(in.Note, row.note)
				}
				return in.Applied >= int64(len(strings.Fields(row.want)))
			})
			numbers(t, again, row.want)
		})
	}
}

func lines(files map[string]string) (n int) {
	for _, text := range files {
		n += strings.Count(text, "\n")
	}
	return n
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestAStateWithAbsolutePathsGoesOnUnderNames(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	write(t, dir+"/a.log", "1\n")
	r := open(t, state, absolute(dir, "*.log"))
	r.runFor(t, 1)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, state, based(dir, "*.log"))
	named := func() bool {
		return strings.Join(ask(t, again.Circuit, "SELECT path FROM cairn_files"), " ") == "a.log"
	}
	again.runUntil(t, named) // without a record that is new
	appendTo(t, dir+"/a.log", "2\n")
	again.runFor(t, 2)
	wantRows(t, again.Circuit, "SELECT position, record FROM lines ORDER BY id", dir+"/a.log:0|1", "a.log:2|2")
}

func TestAPositionShowsTheNameOfTheFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.log", "1\nno json\n")
	cfg := based(dir, "a.log")
	cfg.Inputs[0].Apply = []string{"INSERT INTO lines (position, record) VALUES (:position, json(:record))"}
	r := open(t, t.TempDir(), cfg)
	r.runFor(t, 2)
	wantRows(t, r.Circuit, "SELECT position FROM lines UNION ALL SELECT position FROM cairn_errors", "a.log:0", "a.log at byte 2")
}

func TestABaseIsAbsolute(t *testing.T) {
	cfg := based("conf", "a.log")
	cfg.Now = time.Now
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), `input "in": file: base "conf" and path "conf/a.log" are not both absolute`) {
		t.Fatal(err)
	}
}

func TestAnInputMayStopWhileAStepAppliesWhatItRead(t *testing.T) {
	in := newInput(based("/conf", "a.log").withDefaults().Inputs[0], func() {})
	if !in.put(t.Context(), []item{{text: "1", end: 2}, {text: "2", end: 4}}) {
		t.Fatal("not taken")
	}
	applied := in.ahead()
	in.stop("it shrank")
	in.take(len(applied))
	if n, asked := in.buffered(); n != 0 || asked {
		t.Errorf("%d records wait, asked: %v", n, asked)
	}
}
