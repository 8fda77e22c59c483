package repository

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// drawRepository draws a repository as it can be: contiguous above the boundary, kept checkpoints and remains below it. No gc object keeps a seal.
func drawRepository(t *rapid.T) RetentionFacts {
	line := rapid.StringOfN(rapid.SampledFrom([]rune("ccccs")), 0, 30, -1).Draw(t, "line")
	all := daily("s" + line)
	for i := range all {
		all[i].Created = testTime().Add(time.Duration(rapid.IntRange(-300, 50).Draw(t, "hours")) * time.Hour)
	}
	facts := RetentionFacts{Now: testTime()}
	if rapid.Bool().Draw(t, "has gc") {
		facts.GC = GC{Number: 1, UpTo: rapid.Uint64Range(1, uint64(len(all))).Draw(t, "up to")}
	}
	for _, c := range all {
		below := c.Number <= facts.GC.UpTo
		switch {
		case !below, rapid.IntRange(0, 3).Draw(t, "remains") == 0:
			facts.Commits = append(facts.Commits, c)
			if below && c.Kind == KindCheckpoint && rapid.Bool().Draw(t, "kept") {
				facts.GC.Kept = append(facts.GC.Kept, c.Number)
			}
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "pins") {
		pin := pinned(string(rune('a'+i)), rapid.Uint64Range(0, uint64(len(all))).Draw(t, "pinned"))
		if pin.Commit == 0 {
			pin.Checkpoint = testID(rapid.Byte().Draw(t, "pinned checkpoint"))
		}
		facts.Pins = append(facts.Pins, pin)
	}
	facts.Verified = rapid.Uint64Range(0, uint64(len(all))).Draw(t, "verified")
	return facts
}

func drawRetention(t *rapid.T) Retention {
	return Retention{
		MinCount: rapid.IntRange(0, 5).Draw(t, "min count"), MinAge: time.Duration(rapid.IntRange(0, 200).Draw(t, "min age")) * time.Hour,
	}
}

// after is the repository when a plan was carried out whole.
func (f RetentionFacts) after(plan *RetentionPlan) RetentionFacts {
	f.GC = GC{Number: f.GC.Number + 1, UpTo: plan.UpTo, Kept: plan.Kept}
	gone := plan.Gone()
	f.Commits = slices.DeleteFunc(slices.Clone(f.Commits), func(c CommitFacts) bool { return slices.Contains(gone, c.Number) })
	return f
}

// CASES A24, A26: what a restore may need is never gone, whatever the policy.
func TestTheNewestTheVerifiedAndThePinnedAreNeverGone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts, policy := drawRepository(t), drawRetention(t)
		plan, err := PlanRetention(policy, facts)
		if err != nil {
			if !errors.Is(err, ErrKeepsNothing) {
				t.Fatal(err)
			}
			return
		}
		next := GC{Number: facts.GC.Number + 1, UpTo: plan.UpTo, Kept: plan.Kept}
		checkpoints := 0
		for i := len(plan.Verdicts) - 1; i >= 0; i-- {
			v := plan.Verdicts[i]
			must := facts.GC.Visible(v.Number) && v.Kind == KindCheckpoint && (checkpoints < max(1, policy.MinCount) || v.Number == facts.Verified ||
				policy.MinAge > 0 && facts.Now.Sub(v.Created) < policy.MinAge || slices.ContainsFunc(facts.Pins, func(p Pin) bool { return p.Commit == v.Number }))
			switch {
			case must && !v.Keep:
				t.Fatalf("commit %d is gone: %s", v.Number, v.Why)
			case v.Why == "":
				t.Fatalf("commit %d: no reason", v.Number)
			case next.Visible(v.Number) != v.Keep:
				t.Fatalf("commit %d: keep %v, and the next gc object says %v", v.Number, v.Keep, next.Visible(v.Number))
			case v.Keep && !facts.GC.Visible(v.Number):
				t.Fatalf("commit %d came back", v.Number)
			}
			if v.Kind == KindCheckpoint && facts.GC.Visible(v.Number) {
				checkpoints++
			}
		}
		if n := len(plan.Verdicts); n > 0 && facts.GC.Visible(plan.Verdicts[n-1].Number) && !plan.Verdicts[n-1].Keep {
			t.Fatal("the head is gone: its number would be given again")
		}
	})
}

// CASES A29: a run that was killed is run again.
func TestAPlanThatWasCarriedOutLeavesNothingToDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts, policy := drawRepository(t), drawRetention(t)
		plan, err := PlanRetention(policy, facts)
		if err != nil {
			return
		}
		for name, then := range map[string]RetentionFacts{
			"whole": facts.after(plan),
			"before a commit was deleted": {
				GC: facts.after(plan).GC, Commits: facts.Commits, Pins: facts.Pins, Verified: facts.Verified, Now: facts.Now,
			},
		} {
			again, err := PlanRetention(policy, then)
			if err != nil {
				if plan.Keep == 0 && errors.Is(err, ErrKeepsNothing) {
					continue
				}
				t.Fatal(err)
			}
			if again.Retire != 0 || again.UpTo != plan.UpTo || !slices.Equal(again.Kept, plan.Kept) {
				t.Fatalf("%s: again %d to retire, up to %d kept %v; before up to %d kept %v", name, again.Retire, again.UpTo, again.Kept, plan.UpTo, plan.Kept)
			}
		}
	})
}

// A policy that asks for more keeps no less, and as time goes by nothing comes back.
func TestRetentionIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts, policy := drawRepository(t), drawRetention(t)
		more := Retention{MinCount: policy.MinCount + rapid.IntRange(0, 3).Draw(t, "more"), MinAge: policy.MinAge + time.Hour}
		less, err := PlanRetention(policy, facts)
		if err != nil {
			return
		}
		wider, err := PlanRetention(more, facts)
		if err != nil {
			t.Fatal(err)
		}
		facts.Now = facts.Now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "later")) * time.Hour)
		later, err := PlanRetention(policy, facts)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range less.Verdicts {
			if v.Kind != KindCheckpoint {
				continue
			}
			if v.Keep && !wider.Verdicts[i].Keep {
				t.Fatalf("commit %d is kept by %+v and not by %+v", v.Number, policy, more)
			}
			if !v.Keep && later.Verdicts[i].Keep {
				t.Fatalf("commit %d is gone and comes back later", v.Number)
			}
		}
	})
}

// CASES A31: a plan that keeps nothing is refused; so is a policy that means nothing.
func TestPlansThatCannotBeRightAreRefused(t *testing.T) {
	all := daily("scccc")
	for _, row := range []struct {
		name   string
		policy Retention
		facts  RetentionFacts
		want   error
		text   string
	}{
		{"negative count", Retention{MinCount: -1}, RetentionFacts{Commits: all}, nil, "min_count = -1"},
		{"negative age", Retention{MinAge: -time.Hour}, RetentionFacts{Commits: all}, nil, "min_age = -1h"},
		{"an age above ten years", Retention{MinAge: MaxRetention + time.Hour}, RetentionFacts{Commits: all}, nil, "at most ten years"},
		{"a negative guard", Retention{MaxDelete: -1}, RetentionFacts{Commits: all}, nil, "max_delete = -1"},
		{"gc hides all", Retention{MinCount: 1}, RetentionFacts{Commits: all, GC: GC{Number: 2, UpTo: 5}}, ErrKeepsNothing, "gc 2 hides each of the 4"},
		{"nothing is left", Retention{MinCount: 1}, RetentionFacts{GC: GC{Number: 2, UpTo: 5}}, ErrKeepsNothing, "gc 2 has retired some"},
		{"only a seal is left", Retention{MinCount: 1}, RetentionFacts{Commits: daily("sccccs")[5:], GC: GC{Number: 2, UpTo: 5}}, ErrKeepsNothing, "gc 2"},
		{"out of order", Retention{MinCount: 1}, RetentionFacts{Commits: []CommitFacts{all[1], all[0]}, GC: GC{Number: 1, UpTo: 9}}, ErrCorrupt, "listed after"},
	} {
		row.facts.Now = testTime()
		plan, err := PlanRetention(row.policy, row.facts)
		if plan != nil || err == nil || row.want != nil && !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.text) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestWhatAListingMustHoldAndDoesNotIsNamed(t *testing.T) {
	for _, row := range []struct {
		name   string
		gc     GC
		listed []uint64
		want   []uint64
	}{
		{"nothing", GC{}, nil, nil},
		{"whole", GC{}, []uint64{1, 2, 3}, nil},
		{"the first page is missing", GC{}, []uint64{3, 4}, []uint64{1, 2}},
		{"a gap", GC{}, []uint64{1, 4}, []uint64{2, 3}},
		{"what is retired may be there or not", GC{UpTo: 4}, []uint64{2, 5, 6}, nil},
		{"a kept one", GC{UpTo: 4, Kept: []uint64{2, 3}}, []uint64{3, 5}, []uint64{2}},
		{"the one above the boundary", GC{UpTo: 4}, []uint64{6}, []uint64{5}},
	} {
		if got := MissingCommits(row.gc, row.listed); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

func TestARepositoryWithoutACheckpointHasNothingToRetire(t *testing.T) {
	for _, line := range []string{"", "s", "sss"} {
		plan, err := PlanRetention(Retention{MinCount: 1}, RetentionFacts{Commits: daily(line), Now: testTime()})
		if err != nil || plan.Retire != 0 || len(plan.Gone()) != 0 {
			t.Errorf("%q: %+v, %v", line, plan, err)
		}
	}
}

func TestTheGuardNamesTheNumbers(t *testing.T) {
	plan, err := PlanRetention(Retention{MinCount: 2, MaxDelete: 3}, RetentionFacts{Commits: daily("sccccccc"), Now: testTime()})
	guard, ok := errors.AsType[*MaxDeleteError](err)
	if !ok || guard.Retire != 5 || guard.Keep != 2 || guard.Limit != 3 || plan == nil || plan.Retire != 5 {
		t.Fatalf("%+v, %v", plan, err)
	}
	for _, want := range []string{"retire 5", "keep 2", "max_delete = 3", "nothing was retired"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if _, err := PlanRetention(Retention{MinCount: 2, MaxDelete: 5}, RetentionFacts{Commits: daily("sccccccc"), Now: testTime()}); err != nil {
		t.Error(err)
	}
}

func TestAPinOfACheckpointKeepsTheNewestCommitOfIt(t *testing.T) {
	all := daily("sccccc")
	all[2].Checkpoint = all[4].Checkpoint
	pin := Pin{Name: "p", Checkpoint: all[4].Checkpoint}
	plan, err := PlanRetention(Retention{MinCount: 1}, RetentionFacts{Commits: all, Pins: []Pin{pin}, Now: testTime()})
	if err != nil || plan.Keep != 2 || !plan.Verdicts[4].Keep || len(plan.Dangling) != 0 {
		t.Errorf("%+v, %v", plan, err)
	}
}

// A gc object names only what is kept below the boundary, so it stays small where a year of commits is young.
func TestTheGCObjectOfALongHistoryIsSmall(t *testing.T) {
	line := "s" + strings.Repeat("c", 20_000)
	all := daily(line)
	for i := range all {
		all[i].Created = testTime().Add(-time.Duration(len(all)-i) * time.Minute)
	}
	pins := []Pin{pinned("a", 2), pinned("b", 300)}
	plan, err := PlanRetention(Retention{MinAge: 10_000 * time.Minute}, RetentionFacts{Commits: all, Pins: pins, Now: testTime()})
	if err != nil || !slices.Equal(plan.Kept, []uint64{2, 300}) {
		t.Fatalf("kept %d numbers, %v", len(plan.Kept), err)
	}
	b, err := EncodeGC(GC{Number: 1, Epoch: 1, Writer: testWriter(), UpTo: plan.UpTo, Kept: plan.Kept, Created: testTime(), WrittenBy: "cairn 0.1.0"})
	if err != nil || len(b) > 1000 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestFactsOfTakesWhatRetentionAsks(t *testing.T) {
	c := push(t, nil, 2, []Source{source("f", "ab")})
	got := FactsOf(c)
	want := CommitFacts{Number: 2, Kind: KindCheckpoint, Epoch: 3, Created: testTime(), Checkpoint: testID(9), Step: 1002}
	if got != want {
		t.Errorf("%+v", got)
	}
	if seal := FactsOf(testSeal(4)); seal.Kind != KindSeal || seal.Checkpoint != uuid.Nil {
		t.Errorf("%+v", seal)
	}
}

func TestPlanSweepCondemnsOnlyWhatNoCommitCanComeToName(t *testing.T) {
	id := func(epoch, number uint64) PackID {
		return PackID{Epoch: epoch, Number: number, SHA256: Sum([]byte("x"))}
	}
	named := map[PackID]struct{}{id(2, 5): {}, id(4, 9): {}}
	var packs []StoredPack
	for _, p := range []PackID{id(2, 5), id(2, 6), id(3, 7), id(4, 8), id(4, 9), id(4, 10), id(4, 11), id(5, 9)} {
		packs = append(packs, StoredPack{ID: p, Size: 10})
	}
	got := PlanSweep(SweepFacts{Packs: packs, Named: named, Epoch: 4, Last: 10})
	want := SweepPlan{
		Packs: 8, Bytes: 80, Condemned: []StoredPack{packs[1], packs[2], packs[3], packs[5]}, CondemnedBytes: 40, Spared: 2, SparedBytes: 20,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// CASES A27, A28, A38: neither order nor age says that a pack is not needed.
func TestASweepNeverCondemnsAPackOfAnUndecidedAttempt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Uint64Range(1, 6)
		f := SweepFacts{Epoch: number.Draw(t, "epoch"), Last: number.Draw(t, "last"), Named: map[PackID]struct{}{}}
		for range rapid.IntRange(0, 12).Draw(t, "packs") {
			p := StoredPack{ID: PackID{Epoch: number.Draw(t, "e"), Number: number.Draw(t, "n"), SHA256: Sum([]byte{rapid.Byte().Draw(t, "sum")})}, Size: 1}
			f.Packs = append(f.Packs, p)
			if rapid.Bool().Draw(t, "named") {
				f.Named[p.ID] = struct{}{}
			}
		}
		plan := PlanSweep(f)
		for _, p := range plan.Condemned {
			_, named := f.Named[p.ID]
			if named || p.ID.Epoch > f.Epoch || p.ID.Epoch == f.Epoch && p.ID.Number > f.Last {
				t.Fatalf("pack %s is condemned", p.ID)
			}
		}
		if plan.Packs != int64(len(f.Packs)) || plan.CondemnedBytes != int64(len(plan.Condemned)) {
			t.Fatalf("%+v", plan)
		}
	})
}
