package trigger

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata/*.txt; read the diff before you commit it")

// TestStories plays every story of testdata. testdata/README.md gives the language.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				t.Errorf("another story now, from %s on (rewrite with -update, then read the diff)", firstDifference(string(text), got))
			}
		})
	}
}

func firstDifference(was, now string) string {
	before, after := strings.Split(was, "\n"), strings.Split(now, "\n")
	n := 0
	for n < len(before)-1 && n < len(after)-1 && before[n] == after[n] {
		n++
	}
	return fmt.Sprintf("line %d:\n  was %s\n  now %s", n+1, before[n], after[n])
}

// answerIndent marks the lines that the loop wrote.
const answerIndent = "    "

// play tells a story anew: its own lines as they stand, after each what the loop did then.
func play(t *testing.T, text string) string {
	t.Helper()
	tale := &tale{t: t}
	var out strings.Builder
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, answerIndent) {
			continue
		}
		out.WriteString(line + "\n")
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			tale.tell(words)
			out.WriteString(tale.answers())
		}
	}
	return out.String()
}

// tale is a story while it is told. Its world begins with the first line that is not about policy.
type tale struct {
	t      *testing.T
	policy Policy
	world  *world
	told   int // events already written
}

func (s *tale) tell(words []string) {
	s.t.Helper()
	switch words[0] {
	case "policy":
		for _, word := range words[1:] {
			s.setPolicy(word)
		}
		return
	case "target":
		target := TargetPolicy{Name: words[1]}
		for _, word := range words[2:] {
			s.setTarget(&target, word)
		}
		s.policy.Targets = append(s.policy.Targets, target)
		return
	}
	if s.world == nil {
		s.world = newWorld(s.t, s.policy)
	}
	if s.event(words[0], words[1:]) {
		s.world.run()
	}
}

// event makes one line happen, and tells whether it wakes the loop.
func (s *tale) event(verb string, args []string) bool {
	s.t.Helper()
	w := s.world
	switch verb {
	case "wait":
		w.advance(s.duration(args[0]))
		return false
	case "input":
		w.f.Buffered += s.number(args[0])
	case "ask-step":
		w.f.StepAsked = true
	case "pause", "resume":
		w.f.Paused = verb == "pause"
	case "replay", "bootstrap":
		w.replay = s.number(args[0])
		w.f.Phase = map[string]Phase{"replay": Replaying, "bootstrap": Bootstrapping}[verb]
	case "steps-take":
		w.stepTakes = s.duration(args[0])
		return false
	case "restart":
		w.restart(s.duration(args[0]))
	case "block", "unblock":
		w.f.CheckpointBlocked = strings.Join(args, " ")
	case "ask-checkpoint":
		w.asks = append(w.asks, w.f.Step)
	case "checkpoint":
		w.checkpointEnds(s.outcome(args[0]))
	case "ask-sync", "push", "fence", "hold", "adopt":
		s.targetEvent(verb, s.target(args[0]), args[1:])
	default:
		s.t.Fatalf("unknown verb %q", verb)
	}
	return true
}

func (s *tale) targetEvent(verb string, i int, args []string) {
	s.t.Helper()
	w := s.world
	switch verb {
	case "ask-sync":
		w.queues[i] = append(w.queues[i], c(byte(s.number(strings.TrimPrefix(args[0], "c")))))
	case "push":
		w.pushEnds(i, s.outcome(args[0]))
	case "fence":
		w.f.Targets[i].Fenced = true
	case "hold", "adopt":
		w.f.Targets[i].Held = verb == "hold"
	}
}

// answers writes the events since the last line; a run of equal ones becomes one with a count.
func (s *tale) answers() string {
	if s.world == nil {
		return ""
	}
	var out strings.Builder
	events := s.world.events[s.told:]
	s.told = len(s.world.events)
	for len(events) > 0 {
		e, n := events[0], 1
		for n < len(events) && events[n].what == e.what && events[n].why == e.why {
			n++
		}
		what := e.what
		if n > 1 {
			what += fmt.Sprintf(" (%d times)", n)
		}
		fmt.Fprintf(&out, "%s%-12s  %-24s  %s\n", answerIndent, clock(e.at), what, e.why)
		events = events[n:]
	}
	return out.String()
}

func (s *tale) setPolicy(word string) {
	s.t.Helper()
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "checkpoint-every":
		s.policy.CheckpointEvery = s.duration(value)
	case "min-batch":
		s.policy.MinBatch = s.number(value)
	case "max-delay":
		s.policy.MaxDelay = s.duration(value)
	default:
		s.t.Fatalf("unknown policy %q", word)
	}
}

func (s *tale) setTarget(target *TargetPolicy, word string) {
	s.t.Helper()
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "push-every":
		target.PushEvery = s.duration(value)
	case "retry":
		least, most, _ := strings.Cut(value, "..")
		target.RetryMin, target.RetryMax = s.duration(least), s.duration(most)
	default:
		s.t.Fatalf("unknown target setting %q", word)
	}
}

func (s *tale) duration(text string) time.Duration {
	s.t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *tale) number(text string) int {
	s.t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *tale) outcome(text string) bool {
	s.t.Helper()
	if text != "done" && text != "fails" {
		s.t.Fatalf("%q is neither done nor fails", text)
	}
	return text == "done"
}

func (s *tale) target(name string) int {
	s.t.Helper()
	for i, target := range s.policy.Targets {
		if target.Name == name {
			return i
		}
	}
	s.t.Fatalf("unknown target %q", name)
	return 0
}
