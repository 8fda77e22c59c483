package repository

import (
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// line makes a point from pairs of lineage and step; the last step is the point's.
func line(pairs ...uint64) Point {
	var p Point
	for i := 0; i < len(pairs); i += 2 {
		p.History = append(p.History, Reign{Lineage: testID(byte(pairs[i])), UpTo: pairs[i+1]})
		p.Step = pairs[i+1]
	}
	return p
}

func TestACommitLiesOnOurHistoryWhenWeHavePassedThroughIt(t *testing.T) {
	for _, row := range []struct {
		name         string
		ours, theirs Point
		want         Relation
	}{
		{"the same state", line(1, 100), line(1, 100), Relation{true, 100, 0}},
		{"an earlier state of our lineage", line(1, 100), line(1, 40), Relation{true, 40, 0}},
		{"a later state of our lineage: we were set back", line(1, 100), line(1, 140), Relation{false, 100, 40}},
		{"a state before we left its lineage", line(1, 100, 2, 250), line(1, 80), Relation{true, 80, 0}},
		{"the state at which we left its lineage", line(1, 100, 2, 250), line(1, 100), Relation{true, 100, 0}},
		{"its lineage went on after we left it", line(1, 100, 2, 250), line(1, 130), Relation{false, 100, 30}},
		{"a sister that left where we left", line(1, 100, 2, 250), line(1, 100, 3, 120), Relation{false, 100, 20}},
		{"a sister that left before we did", line(1, 100, 2, 250), line(1, 60, 3, 300), Relation{false, 60, 240}},
		{"a sister that made no step since we parted", line(1, 100, 2, 250), line(1, 100, 3, 100), Relation{true, 100, 0}},
		{"a child of our state", line(1, 100), line(1, 100, 2, 110), Relation{false, 100, 10}},
		{"a fresh start over an existing history", line(2, 10), line(1, 5000), Relation{false, 0, 5000}},
		{"a fresh start and a commit at step 0", line(2, 0), line(1, 0), Relation{false, 0, 0}},
		{"a state without history", Point{Step: 5}, line(1, 3), Relation{false, 0, 3}},
	} {
		if got := Relate(row.ours, row.theirs); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}

func TestAReignWithoutAStepLeavesNoTrace(t *testing.T) {
	p := line(1, 100)
	for n := range byte(50) {
		p = Point{History: p.Fork(testID(100 + n)), Step: 100}
	}
	if len(p.History) != 2 || p.History[0] != (Reign{testID(1), 100}) {
		t.Fatalf("history after 50 restores without a step: %v", p.History)
	}
}

// world runs states forward and forks them at random, remembering by plain lists which steps each one passed through.
type world struct {
	points []Point
	passed []map[string]bool
}

func TestRelateAgreesWithAListOfEveryStepPassed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lineages := byte(1)
		name := func(id uuid.UUID, step uint64) string { return id.String() + string(rune(step)) }
		w := world{points: []Point{line(1, 0)}, passed: []map[string]bool{{name(testID(1), 0): true}}}
		for range rapid.IntRange(1, 12).Draw(t, "moves") {
			from := rapid.IntRange(0, len(w.points)-1).Draw(t, "from")
			p, seen := w.points[from], map[string]bool{}
			for k := range w.passed[from] {
				seen[k] = true
			}
			lineages++
			p = Point{History: p.Fork(testID(lineages)), Step: p.Step}
			for range rapid.IntRange(1, 3).Draw(t, "steps") {
				p.Step++
				seen[name(testID(lineages), p.Step)] = true
			}
			w.points, w.passed = append(w.points, p), append(w.passed, seen)
		}
		ours, theirs := rapid.IntRange(0, len(w.points)-1).Draw(t, "ours"), rapid.IntRange(0, len(w.points)-1).Draw(t, "theirs")
		lost := uint64(0)
		for k := range w.passed[theirs] {
			if !w.passed[ours][k] {
				lost++
			}
		}
		got := Relate(w.points[ours], w.points[theirs])
		if got.OnHistory != (lost == 0) || got.Diverged != lost {
			t.Fatalf("%v to %v: %+v, %d steps are not ours", w.points[theirs], w.points[ours], got, lost)
		}
	})
}
