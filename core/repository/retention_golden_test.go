package repository

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// daily makes a history: "s" is a seal, "c" a checkpoint commit, one a day up to testTime. Each seal begins an epoch.
func daily(line string) []CommitFacts {
	facts := make([]CommitFacts, len(line))
	epoch, step := uint64(0), uint64(0)
	for i, kind := range line {
		c := &facts[i]
		c.Number, c.Created = uint64(i)+1, testTime().AddDate(0, 0, i+1-len(line))
		if kind == 's' {
			epoch++
			c.Kind = KindSeal
		} else {
			step++
			c.Kind, c.Checkpoint, c.Step = KindCheckpoint, testID(byte(i+1)), step*100
		}
		c.Epoch = epoch
	}
	return facts
}

func pinned(name string, commit uint64) Pin {
	return Pin{Name: name, Commit: commit, Created: testTime(), By: "db-1.example", WrittenBy: "cairn 0.1.0"}
}

const day = 24 * time.Hour

// example is a policy and a repository; its plan is a page of testdata/retention.
type example struct {
	file, about string
	policy      Retention
	facts       RetentionFacts
}

func examples() []example {
	ahead := daily("sccccc")
	for i := 3; i < 6; i++ { // the host's clock was two months ahead when it made the last three, and is right now
		ahead[i].Created = ahead[i].Created.AddDate(0, 2, 0)
	}
	cp := Pin{Name: "release", Checkpoint: testID(3), Created: testTime(), By: "db-1.example", WrittenBy: "cairn 0.1.0"}
	return []example{
		{"min-count", "Keep the newest three.", Retention{MinCount: 3}, RetentionFacts{Commits: daily("sccccccc")}},
		{"min-age", "Keep what is younger than four days.", Retention{MinAge: 4 * day}, RetentionFacts{Commits: daily("sccccccc")}},
		{"both-rules", "Keep the newest two, and what is younger than four days.", Retention{MinCount: 2, MinAge: 4 * day}, RetentionFacts{Commits: daily("sccccccc")}},
		{"fewer-than-the-count", "Four shall be kept and one exists: that is normal.", Retention{MinCount: 4}, RetentionFacts{Commits: daily("sc")}},
		{"count-of-one", "The newest checkpoint alone.", Retention{MinCount: 1}, RetentionFacts{Commits: daily("scccc")}},
		{
			"everything-is-old", "No push for a month: every commit is older than min_age, and the newest stays all the same.",
			Retention{MinAge: day},
			RetentionFacts{Commits: daily("scccc"), Now: testTime().AddDate(0, 1, 0)},
		},
		{
			"pins", "A pin by number, one by checkpoint, and one whose commit is not there.",
			Retention{MinCount: 1},
			RetentionFacts{Commits: daily("sccccccc"), Pins: []Pin{pinned("before-migration", 4), cp, pinned("typo", 40)}},
		},
		{
			"newest-verified", "Commit 3 is the newest that was proven to restore: it stays until a newer one is proven.",
			Retention{MinCount: 1},
			RetentionFacts{Commits: daily("scccccc"), Verified: 3},
		},
		{
			"several-epochs", "Two takeovers. Seals hold no state: those below the boundary go, those above stay, and none counts for min_count.",
			Retention{MinCount: 2},
			RetentionFacts{Commits: daily("scccsccscs")},
		},
		{
			"clock-set-back", "The clock was set back by a month: every commit is from the future and counts as young.",
			Retention{MinCount: 1, MinAge: 2 * day},
			RetentionFacts{Commits: daily("scccc"), Now: testTime().AddDate(0, -1, 0)},
		},
		{
			"clock-was-ahead", "The clock was two months ahead for three commits. Order is by number, so the newest is still the newest.",
			Retention{MinCount: 1, MinAge: 2 * day},
			RetentionFacts{Commits: ahead},
		},
		{
			"clock-set-ahead", "The clock jumps a year ahead and everything looks old: the guard refuses the plan.",
			Retention{MinCount: 2, MinAge: 7 * day, MaxDelete: 4},
			RetentionFacts{Commits: daily("scccccccc"), Now: testTime().AddDate(1, 0, 0)},
		},
		{
			"second-run", "An earlier run was killed after it had created gc 1: what it retired is deleted now, and nothing more is retired.",
			Retention{MinCount: 3},
			RetentionFacts{Commits: daily("sccccccc"), GC: GC{Number: 1, UpTo: 5, Kept: []uint64{2}}, Pins: []Pin{pinned("first", 2)}},
		},
		{
			"unpinned", "The pin of commit 2 was removed: it goes with the next run.",
			Retention{MinCount: 2},
			RetentionFacts{Commits: []CommitFacts{daily("sc")[1], daily("sccccc")[4], daily("sccccc")[5]}, GC: GC{Number: 1, UpTo: 4, Kept: []uint64{2}}},
		},
	}
}

// render writes an example as a person reads it.
func (e example) render() string {
	if e.facts.Now.IsZero() {
		e.facts.Now = testTime()
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n\nretention {\n  min_count  = %d\n  min_age    = %q\n  max_delete = %d\n}\nnow        %s\n",
		e.about, e.policy.MinCount, short(e.policy.MinAge), e.policy.MaxDelete, e.facts.Now.Format(time.RFC3339))
	if e.facts.GC.Number != 0 {
		fmt.Fprintf(&out, "gc %d       retired up to %d, kept %v\n", e.facts.GC.Number, e.facts.GC.UpTo, e.facts.GC.Kept)
	}
	if e.facts.Verified != 0 {
		fmt.Fprintf(&out, "verified   commit %d\n", e.facts.Verified)
	}
	for _, pin := range e.facts.Pins {
		fmt.Fprintf(&out, "pin        %s: commit %d, checkpoint %s\n", pin.Name, pin.Commit, pin.Checkpoint)
	}
	plan, err := PlanRetention(e.policy, e.facts)
	if err != nil {
		fmt.Fprintf(&out, "\nREFUSED    %v\n", err)
	}
	if plan == nil {
		return out.String()
	}
	fmt.Fprintf(&out, "\n%6s  %-10s  %5s  %-20s  %-4s  %s\n", "commit", "kind", "epoch", "created", "", "why")
	for _, v := range plan.Verdicts {
		word := "GONE"
		if v.Keep {
			word = "kept"
		}
		fmt.Fprintf(&out, "%6d  %-10s  %5d  %-20s  %s  %s\n", v.Number, v.Kind, v.Epoch, v.Created.Format(time.RFC3339), word, v.Why)
	}
	fmt.Fprintf(&out, "\n%d checkpoints kept, %d retired by this run; gone are the commits up to %d but %v\n", plan.Keep, plan.Retire, plan.UpTo, plan.Kept)
	for _, pin := range plan.Dangling {
		fmt.Fprintf(&out, "pin %q names a commit that is not there\n", pin.Name)
	}
	return out.String()
}

// Each file of testdata/retention is an example of a policy, with the reason for each commit.
//
// CASES A31, A32, A33, A46
func TestRetentionPlansAreAsTheExamplesSay(t *testing.T) {
	for _, e := range examples() {
		t.Run(e.file, func(t *testing.T) {
			path, got := filepath.Join("testdata", "retention", e.file+".txt"), e.render()
			if *update {
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(got), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the plan is now\n%s\nand was\n%s", got, want)
			}
		})
	}
}

func TestEveryExampleFileBelongsToAnExample(t *testing.T) {
	files, err := os.ReadDir(filepath.Join("testdata", "retention"))
	if err != nil || len(files) != len(examples()) {
		t.Errorf("%d files for %d examples, %v", len(files), len(examples()), err)
	}
}
