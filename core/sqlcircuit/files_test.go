package sqlcircuit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

func numbers(t *testing.T, r *rig, want string) {
	t.Helper()
	wantRows(t, r.Circuit, "SELECT group_concat(record, ' ') FROM (SELECT record FROM lines ORDER BY id)", want)
}

// A story changes the input's files between two runs of the circuit, or while it follows them.
func TestWhatHappensToAFileBetweenTwoRuns(t *testing.T) {
	move := func(t *testing.T, from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name    string
		first   string
		change  func(t *testing.T, dir string)
		want    string // records in the end
		stopped string
		note    string
	}{
		{name: "nothing: nothing is read twice", first: "1\n2\n", change: func(*testing.T, string) {}, want: "1 2"},
		{
			name: "lines are appended: only they are read", first: "1\n2\n",
			change: func(t *testing.T, dir string) { appendTo(t, dir+"/a.log", "3\n4\n") }, want: "1 2 3 4",
		},
		{
			name: "a second file appears: it is read", first: "1\n",
			change: func(t *testing.T, dir string) { write(t, dir+"/b.log", "2\n") }, want: "1 2",
		},
		{
			name: "another file stands there: the input stops", first: "1\n2\n",
			change: func(t *testing.T, dir string) { write(t, dir+"/a.log", "7\n8\n9\n") }, want: "1 2", stopped: "it was replaced",
		},
		{
			name: "the file is shorter: the input stops", first: "1\n2\n",
			change: func(t *testing.T, dir string) { write(t, dir+"/a.log", "1\n") }, want: "1 2", stopped: "it shrank",
		},
		{
			name: "the file is empty: the input stops", first: "1\n2\n",
			change: func(t *testing.T, dir string) { write(t, dir+"/a.log", "") }, want: "1 2", stopped: "it shrank",
		},
		{
			name: "it was rotated to a name of the pattern: both are read on", first: "1\n2\n",
			change: func(t *testing.T, dir string) {
				appendTo(t, dir+"/a.log", "3\n")
				move(t, dir+"/a.log", dir+"/z.log")
				write(t, dir+"/a.log", "4\n")
			}, want: "1 2 4 3",
		},
		{
			name: "it was only renamed: it is read on", first: "1\n2\n",
			change: func(t *testing.T, dir string) {
				move(t, dir+"/a.log", dir+"/b.log")
				appendTo(t, dir+"/b.log", "3\n")
			}, want: "1 2 3",
		},
		{
			name: "it is gone: that is noted", first: "1\n2\n",
			change: func(t *testing.T, dir string) { move(t, dir+"/a.log", dir+"/other") }, want: "1 2", note: "gone: ",
		},
		{
			name: "a last line was counted and now gets its newline: nothing is lost", first: "1\n2",
			change: func(t *testing.T, dir string) { appendTo(t, dir+"/a.log", "\n3\n") }, want: "1 2 3",
		},
		{
			name: "a last line was counted and now is continued: the input stops", first: "1\n2",
			change: func(t *testing.T, dir string) { appendTo(t, dir+"/a.log", "2\n3\n") }, want: "1 2", stopped: "its last line",
		},
		{
			name: "a directory has a name of the pattern: the input stops", first: "1\n",
			change: func(t *testing.T, dir string) {
				if err := os.Mkdir(dir+"/d.log", 0o700); err != nil {
					t.Fatal(err)
				}
			}, want: "1", stopped: "is not a regular file",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			files, state := t.TempDir(), t.TempDir()
			cfg := linesConfig(filepath.Join(files, "*.log"), NDJSON, false)
			write(t, files+"/a.log", row.first)
			r := open(t, state, cfg)
			r.runFor(t, int64(len(strings.Fields(row.first))))
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			row.change(t, files)
			again := open(t, state, cfg)
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

func TestAFollowedFileGrows(t *testing.T) {
	path := temp(t, "in.log")
	write(t, path, "1\n2")
	r := open(t, t.TempDir(), linesConfig(path, NDJSON, true))
	r.runFor(t, 1)
	appendTo(t, path, "2\n")
	r.runFor(t, 2)
	numbers(t, r, "1 22") // the half line waited
	appendTo(t, path, "3\n")
	r.runFor(t, 3)
	numbers(t, r, "1 22 3")
}

func TestAFollowedCSVWaitsForItsHeaderAndForOpenQuotes(t *testing.T) {
	path := temp(t, "in.csv")
	write(t, path, "a,")
	r := open(t, t.TempDir(), linesConfig(path, CSV, true))
	appendTo(t, path, "b\n1,\"x\n")
	appendTo(t, path, "2,y\n")
	appendTo(t, path, "\"\n3,z\n")
	r.runFor(t, 2)
	numbers(t, r, `{"a":"1","b":"x\n2,y\n"} {"a":"3","b":"z"}`)
}

func TestAFollowedFileIsRotatedAwayAndReadToItsEnd(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	path := dir + "/in.log"
	write(t, path, "1\n")
	cfg := linesConfig(path, NDJSON, true)
	r := open(t, state, cfg)
	r.runFor(t, 1)
	appendTo(t, path, "2\n3") // the old file's last line has no newline: it counts, for nobody will finish it
	if err := os.Rename(path, dir+"/old"); err != nil {
		t.Fatal(err)
	}
	write(t, path, "4\n")
	r.runFor(t, 4)
	numbers(t, r, "1 2 3 4")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	appendTo(t, path, "5\n")
	again := open(t, state, cfg)
	again.runFor(t, 5)
	numbers(t, again, "1 2 3 4 5")
}

func TestAFollowedFileThatIsTruncatedStopsTheInput(t *testing.T) {
	path := temp(t, "in.log")
	write(t, path, "1\n2\n")
	r := open(t, t.TempDir(), linesConfig(path, NDJSON, true))
	r.runFor(t, 2)
	write(t, path, "9\n")
	r.runUntil(t, func() bool {
		return strings.Contains(r.Stats().Inputs[0].Stopped, "it shrank: all 4 bytes of the file")
	})
}

func TestAPatternWithoutFilesIsNoted(t *testing.T) {
	path := temp(t, "*.log")
	r := open(t, t.TempDir(), linesConfig(path, NDJSON, false))
	r.runUntil(t, func() bool { return r.Stats().Inputs[0].Note == "no file matches "+path })
}

func TestABadCSVHeaderRefusesToStart(t *testing.T) {
	path := temp(t, "in.csv")
	write(t, path, "a,a\n1,2\n")
	c := newCircuit(t, linesConfig(path, CSV, false))
	err := c.Open(t.Context(), envIn(t.TempDir()))
	if err == nil || !strings.Contains(err.Error(), `input "in": `+path+`: header: name "a" stands there twice`) {
		t.Fatal(err)
	}
}

func TestAFollowedFileIsLookedAtOnceASecond(t *testing.T) {
	path := temp(t, "in.log")
	write(t, path, "")
	synctest.Test(t, func(t *testing.T) {
		cfg := linesConfig(path, NDJSON, true)
		in := newInput(cfg.withDefaults().Inputs[0], func() {})
		s := newFileSource(in, hclog.NewNullLogger(), defaultLimits().lookEach, map[string]*tracked{})
		go s.run(t.Context())
		synctest.Wait()
		time.Sleep(time.Millisecond) // of the bubble's time, as below: never at the moment of a look
		for second := range 5 {
			appendTo(t, path, "1\n")
			time.Sleep(time.Second - 2*time.Millisecond)
			synctest.Wait()
			if n, _ := in.buffered(); n != second {
				t.Fatalf("%d records before second %d is over", n, second+1)
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if n, _ := in.buffered(); n != second+1 {
				t.Fatalf("%d records after %d seconds; stopped: %q", n, second+1, in.stats().Stopped)
			}
		}
	})
}
