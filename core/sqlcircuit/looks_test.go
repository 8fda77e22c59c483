package sqlcircuit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// scene is a folder of followed files, whose looks a test makes itself.
type scene struct {
	dir    string
	source *fileSource
}

func newScene(t *testing.T, pattern string) scene {
	t.Helper()
	format := NDJSON
	if strings.HasSuffix(pattern, ".csv") {
		format = CSV
	}
	dir := t.TempDir()
	in := newInput(based(dir, pattern).withDefaults().Inputs[0], func() {})
	in.cfg.File.Format = format
	source := newFileSource(in, hclog.NewNullLogger(), 0, map[string]*tracked{})
	t.Cleanup(source.close)
	return scene{dir: dir, source: source}
}

// play does one line of a story: what happens to a file, or a look and all the records that were queued by then. A | is a line end.
func (s scene) play(t *testing.T, line string) {
	t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	name, text, _ := strings.Cut(rest, " ")
	path, text := filepath.Join(s.dir, name), strings.ReplaceAll(text, "|", "\n")
	switch verb {
	case "put":
		write(t, path, text)
	case "add":
		appendTo(t, path, text)
	case "mv":
		if err := os.Rename(path, filepath.Join(s.dir, text)); err != nil {
			t.Fatal(err)
		}
	case "look":
		if err := s.source.look(t.Context()); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		s.wantQueued(t, rest)
	case "stop":
		if err := s.source.look(t.Context()); err == nil || !strings.Contains(err.Error(), ": "+rest) {
			t.Fatalf("%s: got %v", line, err)
		}
	default:
		t.Fatalf("%s: no such verb", line)
	}
}

func (s scene) wantQueued(t *testing.T, want string) {
	t.Helper()
	got := []string{}
	for _, it := range s.source.in.ahead() {
		if !it.mark {
			got = append(got, strings.NewReplacer(`{"k":"`, "", `"}`, "").Replace(it.text))
		}
	}
	if strings.Join(got, " ") != want {
		t.Fatalf("queued %q, want %q", got, want)
	}
}

func TestWhatTheLooksOfARotationTake(t *testing.T) {
	for name, lines := range map[string][]string{
		"a file that was empty: what was written before the rename is read": {
			"in.log", "put in.log ", "look", "add in.log 1|", "mv in.log old", "put in.log 2|", "look 1", "look 1 2",
		},
		"a file that held its header alone": {
			"in.csv", "put in.csv k|", "look", "add in.csv a|", "mv in.csv old", "put in.csv k|b|", "look a", "look a b",
		},
		"a file that held its header alone, of a writer that flushes after the rename": {
			"in.csv", "put in.csv k|", "look", "mv in.csv old", "put in.csv k|b|", "look", "add old a|", "look a b",
		},
		"a file that held its header alone, to a name of the pattern": {
			"*.csv", "put in.csv k|", "look", "add in.csv a|", "mv in.csv in.1.csv", "put in.csv k|b|", "look a b",
			"add in.1.csv c|", "look a b c", "look a b c",
		},
		"an empty file that stays empty": {
			"in.csv", "put in.csv k|", "look", "mv in.csv old", "put in.csv k|b|", "look", "look b", "add in.csv c|", "look b c",
		},
		"a first record that never changes: the old file is read, then the input stops": {
			"in.log", "put in.log 0|", "look 0", "add in.log 1|", "mv in.log old", "put in.log 0|2|", "look 0 1", "stop it was replaced by a rewritten copy",
		},
		"several, each moving up by one, of which the last is empty": {
			"*.csv", "put in.csv k|a|", "put in.1.csv k|b|", "look b a", "mv in.1.csv in.2.csv", "mv in.csv in.1.csv", "put in.csv k|", "look b a",
			"add in.csv c|", "add in.1.csv d|", "add in.2.csv e|", "look b a d e c",
		},
		"a second one while the new file is still empty": {
			"in.log", "put in.log 1|", "look 1", "mv in.log old", "put in.log ", "look 1", "look 1", "add in.log 2|", "mv in.log older", "put in.log 3|",
			"look 1 2", "look 1 2 3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, lines[0])
			for _, line := range lines[1:] {
				s.play(t, line)
			}
		})
	}
}

func TestWhatTheLooksOfAReplacementTake(t *testing.T) {
	const copied = "stop it was replaced by a rewritten copy of itself: "
	for name, lines := range map[string][]string{
		"a copy that is seen before its first record is whole": {
			"in.csv", "put in.csv k|a|", "look a", "mv in.csv old", "put in.csv ", "look a", "look a", "add in.csv k|", "look a", "add in.csv a", "look a", "add in.csv |b|", copied,
		},
		"a copy that is seen within its first record": {
			"in.csv", "put in.csv k|abc|", "look abc", "mv in.csv old", "put in.csv k|ab", "look abc", "look abc", "add in.csv c|d|", copied,
		},
		"another file that is seen before its first record is whole is none": {
			"in.csv", "put in.csv k|abc|", "look abc", "mv in.csv old", "put in.csv k|ab", "look abc", "look abc", "add in.csv d|abc|", "look abc abd abc",
		},
		"a copy with a backup of the pattern": {
			"*.csv", "put in.csv k|a|", "look a", "mv in.csv z.csv", "put in.csv k|", "look a", "look a", "add in.csv a|b|", copied,
		},
		"a copy with a backup of the pattern that comes later": {
			"*.csv", "put in.csv k|a|", "look a", "mv in.csv z.csv", "look a", "put in.csv k|a|b|", copied,
		},
		"a copy that replaces an empty new file": {
			"in.log", "put in.log 1|", "look 1", "mv in.log old", "put in.log ", "look 1", "look 1", "put new 1|2|", "mv new in.log", copied,
		},
		"a copy that replaces an empty new file that was kept": {
			"in.log", "put in.log 1|", "look 1", "mv in.log old", "put in.log ", "look 1", "look 1", "mv in.log older", "put in.log 1|2|", "look 1", copied,
		},
		"a copy that lacks the latest row": {
			"in.csv", "put in.csv k|a|", "look a", "add in.csv b|", "put new k|a|c|", "mv new in.csv", copied,
		},
		"a file that was moved away and back, and is replaced then": {
			"in.csv", "put in.csv k|a|", "look a", "mv in.csv old", "put in.csv k|x|", "look a", "mv old in.csv", "look a", "put new k|y|", "mv new in.csv", "stop it was replaced: ",
		},
		"a copy that has grown, with a backup, and is replaced then": {
			"in.csv", "put in.csv k|a|", "look a", "mv in.csv old", "put in.csv k|a|b|", "look a", "look a b", "put new k|y|z|", "mv new in.csv", "stop it was replaced: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, lines[0])
			for _, line := range lines[1:] {
				s.play(t, line)
			}
		})
	}
}

func TestACopyThatWasSeenEmptyStopsTheInputAfterARestartToo(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	cfg := based(dir, "in.log")
	write(t, dir+"/in.log", "1\n2\n")
	r := open(t, state, cfg)
	r.runFor(t, 2)
	if err := os.Rename(dir+"/in.log", dir+"/old"); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/in.log", "")
	r.runUntil(t, func() bool { return ask(t, r.Circuit, "SELECT length FROM cairn_files")[0] == "0" })
	r.down(t)
	write(t, dir+"/in.log", "1\n2\n3\n")
	again := open(t, state, cfg)
	again.runUntil(t, func() bool {
		return strings.Contains(again.Stats().Inputs[0].Stopped, "in.log: it was replaced by a rewritten copy of itself: ")
	})
	numbers(t, again, "1 2")
}
