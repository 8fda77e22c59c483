package syncer

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/sdk"
)

func at(n, step uint64) *StatePoint { return &StatePoint{ID: idOf(n), Step: step} }

func holds(name string, n, step uint64) TargetState {
	return TargetState{Name: name, Commit: at(n, step), Number: step / 10}
}

func seeded(name string, n, step uint64) *TargetState {
	t := holds(name, n, step)
	return &t
}

func denied(name string) TargetState {
	return TargetState{Name: name, Err: &sdk.Error{Code: sdk.PermissionDenied, Op: "list", Key: name}}
}

// CASES A45, E18
func TestWhichStateStarts(t *testing.T) {
	damaged := errors.New("integrity check failed")
	latest, none := StartFrom{Latest: true}, StartFrom{}
	byID := func(n uint64) StartFrom { return StartFrom{Checkpoint: idOf(n)} }
	for _, row := range []struct {
		name  string
		facts StartFacts
		want  Choice // without Why
		asks  bool
		fails string // what the error says, in place of want
		why   string // what a sentence says
	}{
		{
			name:  "live state that is not behind the newest local checkpoint is kept",
			facts: StartFacts{Live: LiveFacts{Exists: true, Exact: true, Step: 120}, Local: at(1, 100), From: latest, Targets: []TargetState{holds("a", 9, 900)}},
			want:  Choice{Kind: KeepLive, Step: 120}, why: "intact at step 120",
		},
		{
			name:  "live state as far as the newest local checkpoint is kept",
			facts: StartFacts{Live: LiveFacts{Exists: true, Exact: true, Step: 100}, Local: at(1, 100)},
			want:  Choice{Kind: KeepLive, Step: 100},
		},
		{
			name:  "live state whose step cannot be told is kept whatever else there is",
			facts: StartFacts{Live: LiveFacts{Exists: true}, Local: at(1, 100), LocalErr: damaged, From: byID(5), FailIfAbsent: true},
			want:  Choice{Kind: KeepLive}, why: "cannot be told",
		},
		{
			name:  "live state behind the newest local checkpoint gives way to it",
			facts: StartFacts{Live: LiveFacts{Exists: true, Exact: true, Step: 90}, Local: at(1, 100)},
			want:  Choice{Kind: FromLocal, Checkpoint: idOf(1), Step: 100, NewLineage: true}, why: "is behind",
		},
		{
			name:  "damaged live state gives way to the newest local checkpoint",
			facts: StartFacts{Live: LiveFacts{Exists: true, Damaged: damaged}, Local: at(1, 100)},
			want:  Choice{Kind: FromLocal, Checkpoint: idOf(1), Step: 100, NewLineage: true}, why: "integrity check failed",
		},
		{
			name:  "E18: what is only local goes before the targets' newest",
			facts: StartFacts{Local: at(2, 200), From: latest, Targets: []TargetState{holds("a", 1, 100)}},
			want:  Choice{Kind: FromLocal, Checkpoint: idOf(2), Step: 200, NewLineage: true},
		},
		{
			name:  "E25: a checkpoint asked for that is the newest local one is restored from there and honoured",
			facts: StartFacts{Local: at(2, 200), From: byID(2)},
			want:  Choice{Kind: FromLocal, Checkpoint: idOf(2), Step: 200, Honours: idOf(2), NewLineage: true},
		},
		{
			name:  "a checkpoint asked for does not displace local state, and a sentence says so",
			facts: StartFacts{Live: LiveFacts{Exists: true, Exact: true, Step: 120}, From: byID(5)},
			want:  Choice{Kind: KeepLive, Step: 120}, why: "is not followed",
		},
		{
			name:  "an unreadable local checkpoint is of no consequence beside good live state",
			facts: StartFacts{Live: LiveFacts{Exists: true, Exact: true, Step: 120}, LocalErr: damaged},
			want:  Choice{Kind: KeepLive, Step: 120}, why: "some local checkpoints cannot be read",
		},
		{
			name:  "an unreadable local checkpoint stops a start that needs the newest",
			facts: StartFacts{Local: at(1, 100), LocalErr: damaged, From: latest, Targets: []TargetState{holds("a", 1, 100)}},
			fails: "the newest local checkpoint cannot be known",
		},
		{
			name:  "E19: the seed is restored where no target holds anything",
			facts: StartFacts{From: latest, Targets: []TargetState{{Name: "a"}}, SeedName: "s", Seed: seeded("s", 3, 300)},
			want:  Choice{Kind: FromSeed, Checkpoint: idOf(3), Step: 300, Target: "s", Number: 30, NewLineage: true}, asks: true, why: `of the seed "s" is restored`,
		},
		{
			name:  "E20: a checkpoint asked for is honoured from the seed",
			facts: StartFacts{From: byID(3), Targets: []TargetState{{Name: "a"}}, SeedName: "s", Seed: seeded("s", 3, 300)},
			want:  Choice{Kind: FromSeed, Checkpoint: idOf(3), Step: 300, Target: "s", Number: 30, Honours: idOf(3), NewLineage: true}, asks: true,
		},
		{
			name:  "E23: what the targets hold goes before the seed, whatever the steps",
			facts: StartFacts{From: latest, Targets: []TargetState{holds("a", 1, 10)}, SeedName: "s", Seed: seeded("s", 3, 300)},
			want:  Choice{Kind: FromTarget, Checkpoint: idOf(1), Step: 10, Target: "a", Number: 1, NewLineage: true}, asks: true,
		},
		{
			name:  "the seed is not for a checkpoint that is missing among others of our own",
			facts: StartFacts{From: byID(3), Targets: []TargetState{{Name: "a", Holds: true}}, SeedName: "s", Seed: seeded("s", 3, 300)},
			want:  Choice{Kind: StartFreshly, NewLineage: true}, asks: true, why: `the seed "s" was not asked`,
		},
		{
			name:  "E29: an empty seed beside empty targets is no checkpoint",
			facts: StartFacts{From: latest, FailIfAbsent: true, Targets: []TargetState{{Name: "a"}}, SeedName: "s", Seed: &TargetState{Name: "s"}},
			asks:  true, fails: `nor does the seed "s" hold what is wanted`,
		},
		{
			name:  "a seed that cannot be read is not empty",
			facts: StartFacts{From: latest, Targets: []TargetState{{Name: "a"}}, SeedName: "s", Seed: func() *TargetState { d := denied("s"); return &d }()},
			asks:  true, fails: `seed "s" cannot be read`,
		},
		{
			name:  "E26: what is only local goes before the seed",
			facts: StartFacts{Local: at(2, 200), From: latest, SeedName: "s", Seed: seeded("s", 3, 300)},
			want:  Choice{Kind: FromLocal, Checkpoint: idOf(2), Step: 200, NewLineage: true},
		},
		{
			name:  "local state only: without start_from_checkpoint no target is asked",
			facts: StartFacts{From: none, Targets: []TargetState{holds("a", 1, 100)}},
			want:  Choice{Kind: StartFreshly, NewLineage: true}, why: "no live state and no local checkpoint",
		},
		{
			name:  "the newest commit among all targets, by step",
			facts: StartFacts{From: latest, Targets: []TargetState{holds("a", 1, 100), holds("b", 3, 300), {Name: "c"}, holds("d", 2, 200)}},
			want:  Choice{Kind: FromTarget, Checkpoint: idOf(3), Step: 300, Target: "b", Number: 30, NewLineage: true}, asks: true, why: `"c" has no such checkpoint`,
		},
		{
			name:  "of equal commits that of the target named first",
			facts: StartFacts{From: latest, Targets: []TargetState{holds("a", 1, 100), holds("b", 1, 100)}},
			want:  Choice{Kind: FromTarget, Checkpoint: idOf(1), Step: 100, Target: "a", Number: 10, NewLineage: true}, asks: true,
		},
		{
			name:  "E7: a target that cannot be read stops a strict start and is named",
			facts: StartFacts{From: latest, FailIfAbsent: true, Targets: []TargetState{denied("a")}},
			asks:  true, fails: `target "a" cannot be read`,
		},
		{
			name:  "E8: a target that cannot be read stops a start that is not strict just the same",
			facts: StartFacts{From: latest, Targets: []TargetState{denied("a")}},
			asks:  true, fails: `target "a" cannot be read`,
		},
		{
			name:  "a target that cannot be read stops a start though another has a commit, and what that holds is told",
			facts: StartFacts{From: latest, Targets: []TargetState{holds("a", 1, 100), denied("b"), denied("c")}},
			asks:  true, fails: `target "b", "c" cannot be read and may hold what is wanted (target "a" holds checkpoint ` + idOf(1).String() + ` (step 100`,
		},
		{
			name:  "a target that the operator has excluded is not waited for",
			facts: StartFacts{From: latest, Targets: []TargetState{holds("a", 1, 100), {Name: "b", Excluded: true, Err: damaged}}},
			want:  Choice{Kind: FromTarget, Checkpoint: idOf(1), Step: 100, Target: "a", Number: 10, NewLineage: true}, asks: true, why: `"b" was excluded`,
		},
		{
			name:  "a checkpoint asked for by id is taken from whichever target has it, though another cannot be read",
			facts: StartFacts{From: byID(4), Targets: []TargetState{denied("a"), holds("b", 4, 100)}},
			want:  Choice{Kind: FromTarget, Checkpoint: idOf(4), Step: 100, Target: "b", Number: 10, Honours: idOf(4), NewLineage: true}, asks: true,
		},
		{
			name:  "a checkpoint asked for by id that may be on a target that cannot be read stops the start",
			facts: StartFacts{From: byID(4), Targets: []TargetState{{Name: "a"}, denied("b")}},
			asks:  true, fails: `target "b" cannot be read`,
		},
		{
			name:  "an id that was honoured before means the newest",
			facts: StartFacts{From: byID(4), Honoured: []uuid.UUID{idOf(4)}, Targets: []TargetState{holds("a", 7, 700)}},
			want:  Choice{Kind: FromTarget, Checkpoint: idOf(7), Step: 700, Target: "a", Number: 70, NewLineage: true}, asks: true,
		},
		{
			name:  "E11: absent uuid, strict = failure that names it",
			facts: StartFacts{From: byID(4), FailIfAbsent: true, Targets: []TargetState{{Name: "a"}, {Name: "b"}}},
			asks:  true, fails: "checkpoint " + idOf(4).String() + " is on none of the targets: a, b, and fail_if_no_checkpoint",
		},
		{
			name:  "E12: absent uuid, not strict = fresh start and held target",
			facts: StartFacts{From: byID(4), Targets: []TargetState{{Name: "a"}}},
			want:  Choice{Kind: StartFreshly, NewLineage: true}, asks: true, why: "is held until the operator adopts it",
		},
		{
			name:  "nothing anywhere is a fresh start",
			facts: StartFacts{From: latest, Targets: []TargetState{{Name: "a"}}},
			want:  Choice{Kind: StartFreshly, NewLineage: true}, asks: true, why: "none of the targets holds a checkpoint: a",
		},
		{
			name:  "nothing anywhere is a failure where a checkpoint is required",
			facts: StartFacts{FailIfAbsent: true},
			fails: `no target was asked, for start_from_checkpoint is left out, and fail_if_no_checkpoint is set: set start_from_checkpoint = "latest"`,
		},
		{
			name:  "nothing on the targets is a failure where a checkpoint is required",
			facts: StartFacts{From: latest, FailIfAbsent: true, Targets: []TargetState{{Name: "a"}}},
			asks:  true, fails: "none of the targets holds a checkpoint: a, and fail_if_no_checkpoint is set: take it away to start with nothing",
		},
		{
			name:  "damaged live state is replaced by the targets' newest",
			facts: StartFacts{Live: LiveFacts{Exists: true, Damaged: damaged}, From: latest, Targets: []TargetState{holds("a", 1, 100)}},
			want:  Choice{Kind: FromTarget, Checkpoint: idOf(1), Step: 100, Target: "a", Number: 10, NewLineage: true}, asks: true, why: "integrity check failed",
		},
		{
			name:  "damaged live state with nothing to go back to is never taken for an empty one",
			facts: StartFacts{Live: LiveFacts{Exists: true, Damaged: damaged}, From: latest, Targets: []TargetState{{Name: "a"}}},
			asks:  true, fails: "no checkpoint to go back to",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := ChooseStart(row.facts)
			if asks := row.facts.AskTargets(); asks != row.asks {
				t.Errorf("asks the targets: %v", asks)
			}
			if row.fails != "" {
				if !errors.Is(err, ErrNoStart) || !strings.Contains(err.Error(), row.fails) {
					t.Fatalf("error %v, want one that says %q", err, row.fails)
				}
				return
			}
			why := strings.Join(got.Why, "; ")
			got.Why = nil
			if err != nil || got.Kind != row.want.Kind || !equalChoice(got, row.want) {
				t.Fatalf("%+v, %v\nwant %+v", got, err, row.want)
			}
			if why == "" || !strings.Contains(why, row.why) {
				t.Errorf("why: %q, want %q in it", why, row.why)
			}
		})
	}
}

func equalChoice(a, b Choice) bool {
	return a.Checkpoint == b.Checkpoint && a.Step == b.Step && a.Target == b.Target && a.Number == b.Number &&
		a.Honours == b.Honours && a.NewLineage == b.NewLineage
}

func TestAnUnreadableTargetsOwnErrorStaysInTheChain(t *testing.T) {
	_, err := ChooseStart(StartFacts{From: StartFrom{Latest: true}, Targets: []TargetState{denied("a")}})
	if !errors.Is(err, sdk.PermissionDenied) {
		t.Fatalf("%v does not carry the target's code", err)
	}
}

func TestTheTargetsAreAskedForWhatIsWanted(t *testing.T) {
	asked := StartFacts{From: StartFrom{Checkpoint: idOf(4)}}
	if got := asked.Selector(); got != (Selector{Checkpoint: idOf(4)}) {
		t.Errorf("selector %+v", got)
	}
	asked.Honoured = []uuid.UUID{idOf(3), idOf(4)}
	if got := asked.Selector(); got != (Selector{}) {
		t.Errorf("selector for an id that was honoured: %+v", got)
	}
}
