package syncer

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func TestWhichCommitAStandbyPulls(t *testing.T) {
	commit := func(number, step uint64) *CommitInfo {
		return &CommitInfo{Number: number, Checkpoint: repository.Checkpoint{ID: idOf(1000 + step), Step: step}}
	}
	have := func(number, step uint64) *checkpoint.Followed {
		return &checkpoint.Followed{Target: "t", Prefix: "p", Number: number, Checkpoint: idOf(1000 + step), Step: step}
	}
	seeded := func(step uint64) *checkpoint.Followed {
		return &checkpoint.Followed{Target: "s", Prefix: "q", Number: 3, Checkpoint: idOf(1000 + step), Step: step, Seed: true}
	}
	for _, row := range []struct {
		name  string
		facts FollowFacts
		pulls uint64 // number; 0 = nothing
		seed  bool
		fails string
		why   string
	}{
		{name: "an empty standby pulls the newest commit", facts: FollowFacts{Own: commit(7, 70), Holds: true}, pulls: 7},
		{name: "a newer commit is pulled", facts: FollowFacts{Have: have(6, 60), Own: commit(7, 70), Holds: true}, pulls: 7},
		{name: "the commit that is here is not pulled again", facts: FollowFacts{Have: have(7, 70), Own: commit(7, 70), Holds: true}, why: "is here"},
		{name: "an adopted commit of a lower step is the newest all the same", facts: FollowFacts{Have: have(7, 70), Own: commit(9, 40), Holds: true}, pulls: 9},
		{name: "a repository that went back is not followed", facts: FollowFacts{Have: have(7, 70), Own: commit(5, 50), Holds: true}, fails: "put back"},
		{name: "a repository that was emptied is not followed", facts: FollowFacts{Have: have(7, 70)}, fails: "nothing is there now"},
		{name: "an empty repository is waited for", facts: FollowFacts{}, why: "holds no checkpoint yet"},
		{name: "the seed is taken while nothing of our own exists", facts: FollowFacts{SeedName: "s", Seed: commit(3, 30)}, pulls: 3, seed: true},
		{name: "an empty seed is waited for", facts: FollowFacts{SeedName: "s"}, why: `nor the seed "s"`},
		{name: "the seed's checkpoint is not pulled again", facts: FollowFacts{Have: seeded(30), SeedName: "s", Seed: commit(3, 30)}, why: "is here"},
		{name: "a commit of our own goes before the seed's, whatever their steps", facts: FollowFacts{Have: seeded(30), Own: commit(2, 1), Holds: true, SeedName: "s"}, pulls: 2},
		{name: "a checkpoint asked for by id is waited for", facts: FollowFacts{Pinned: idOf(1050), Holds: true}, why: "does not hold checkpoint"},
		{name: "a checkpoint asked for by id stays when it was retired", facts: FollowFacts{Pinned: idOf(1050), Have: have(5, 50), Holds: true}, why: "not on the target any more"},
		{name: "a checkpoint asked for by id may be older than the one that is here", facts: FollowFacts{Pinned: idOf(1050), Have: have(7, 70), Own: commit(5, 50), Holds: true}, pulls: 5},
		{name: "a copy of another repository does not count", facts: FollowFacts{Have: &checkpoint.Followed{Target: "old", Prefix: "p", Number: 99}, Own: commit(7, 70), Holds: true}, pulls: 7},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.facts.Target, row.facts.Prefix = "t", "p"
			step, err := NextPull(row.facts)
			if row.fails != "" {
				if err == nil || !strings.Contains(err.Error(), row.fails) || !strings.Contains(err.Error(), "kept") {
					t.Errorf("error %v", err)
				}
				return
			}
			var pulls uint64
			if step.Pull != nil {
				pulls = step.Pull.Number
			}
			if err != nil || pulls != row.pulls || step.Seed != row.seed || !strings.Contains(step.Why, row.why) {
				t.Errorf("%+v, %v", step, err)
			}
		})
	}
}

func TestALagIsANumberOnlyWhereBothCommitsAreCountedAlike(t *testing.T) {
	at := func(seconds int) time.Time { return startOfTime().Add(time.Duration(seconds) * time.Second) }
	seen := &CommitInfo{Number: 9, Checkpoint: repository.Checkpoint{ID: idOf(9), Step: 90, Created: at(90)}}
	have := func(target string, seed bool, number, step uint64) *checkpoint.Followed {
		return &checkpoint.Followed{Target: target, Prefix: "p", Seed: seed, Number: number, Checkpoint: idOf(1), Step: step, Created: at(60)}
	}
	own, seed := Place{Target: "t", Prefix: "p"}, Place{Target: "s", Prefix: "p", Seed: true}
	for _, row := range []struct {
		name string
		have *checkpoint.Followed
		in   Place
		want Lag
	}{
		{"nothing is here", nil, own, Lag{Steps: 90, Commits: 9}},
		{"of the same repository", have("t", false, 7, 60), own, Lag{Age: 30 * time.Second, Steps: 30, Commits: 2}},
		{"of another repository of the pipeline, which has come to a higher number", have("u", false, 400, 60), own, Lag{Age: 30 * time.Second, Steps: 30, NoCommits: true}},
		{"below another prefix", &checkpoint.Followed{Target: "t", Prefix: "q", Number: 7, Step: 60, Created: at(60)}, own, Lag{Age: 30 * time.Second, Steps: 30, NoCommits: true}},
		{"of the seed, which counts steps of its own", have("s", true, 7, 4000), own, Lag{Age: 30 * time.Second, NoSteps: true, NoCommits: true}},
		{"of the seed, which still is the newest", have("s", true, 7, 60), seed, Lag{Age: 30 * time.Second, Steps: 30, Commits: 2}},
		{"a copy of which no commit is known", have("t", false, 0, 60), own, Lag{Age: 30 * time.Second, Steps: 30, NoCommits: true}},
		{"the same checkpoint, wherever it lies", &checkpoint.Followed{Target: "u", Checkpoint: idOf(9), Number: 400}, own, Lag{}},
	} {
		if got := LagOf(row.have, seen, row.in); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}

func TestTheWaitAfterFailuresGrowsToAMinuteOrTheInterval(t *testing.T) {
	for _, row := range []struct {
		every    time.Duration
		failures int
		jitter   float64
		want     time.Duration
	}{
		{5 * time.Second, 0, 0.9, 5 * time.Second},
		{5 * time.Second, 1, 0, 5 * time.Second},
		{5 * time.Second, 1, 1, 2500 * time.Millisecond},
		{5 * time.Second, 3, 0, 20 * time.Second},
		{5 * time.Second, 1_000_000, 0, time.Minute},
		{time.Hour, 1_000_000, 0, time.Hour},
	} {
		if got := NextLook(row.every, row.failures, row.jitter); got != row.want {
			t.Errorf("after %d failures, every %s: %s, want %s", row.failures, row.every, got, row.want)
		}
	}
}

// follows is a standby of an author's repository.
type follows struct {
	*Follower

	t     *testing.T
	local *checkpoint.Store
	store *sdktest.Faulty
	kept  []checkpoint.Followed
}

func followerOf(t *testing.T, mem sdk.Target, change ...func(*FollowerConfig)) *follows {
	t.Helper()
	f := &follows{t: t, store: &sdktest.Faulty{Target: mem}}
	_, f.local = localOf(t)
	cfg := FollowerConfig{
		Target: "offsite", Prefix: testPrefix, Own: readerOf(t, f.store), Every: 5 * time.Second, Local: f.local, Spool: spoolOf(t), Copies: 1,
		Now: startOfTime, Jitter: func() float64 { return 0 }, Log: hclog.NewNullLogger(),
		Keep: func(now checkpoint.Followed, _ uuid.UUID) error {
			pin, err := f.local.Pin(now.Checkpoint)
			if err != nil {
				t.Errorf("noted before it is whole: %v", err)
				return err
			}
			pin.Release()
			f.kept = append(f.kept, now)
			return nil
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	f.Follower = NewFollower(cfg)
	return f
}

func (f *follows) mustPull() FollowStatus {
	f.t.Helper()
	if err := f.Pull(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	return f.Status()
}

// steps of the local checkpoints, in their order.
func (f *follows) steps() []uint64 {
	f.t.Helper()
	list, err := f.local.List(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	var steps []uint64
	for _, m := range list {
		steps = append(steps, m.Step)
	}
	return steps
}

func TestAStandbyKeepsTheNewestCopyAndTheOneBefore(t *testing.T) {
	a := newAuthor(t)
	f := followerOf(t, a.mem)
	if s := f.mustPull(); s.Have != nil || !strings.Contains(s.Doing, "no checkpoint yet") || !s.Next.Equal(startOfTime().Add(5*time.Second)) {
		t.Errorf("an empty repository: %+v", s)
	}
	for _, step := range []uint64{10, 20, 30} {
		a.commit(step, content{"f": noise(step, 1000)})
		if s := f.mustPull(); s.Have.Step != step || s.Lag != (Lag{}) || s.Seen.Number != a.number {
			t.Errorf("step %d: %+v", step, s)
		}
	}
	if got := f.steps(); !slices.Equal(got, []uint64{20, 30}) {
		t.Errorf("copies of the steps %v", got)
	}
	if len(f.kept) != 3 || f.kept[2].Number != a.number || f.kept[2].Target != "offsite" {
		t.Errorf("noted %+v", f.kept)
	}
}

func TestTheCopyBeforeStaysUntilTheNewOneIsWholeAndNoted(t *testing.T) {
	a := newAuthor(t)
	full := errors.New("disk full")
	var refuse error
	f := followerOf(t, a.mem, func(c *FollowerConfig) {
		keep := c.Keep
		c.Keep = func(now checkpoint.Followed, p uuid.UUID) error { return errors.Join(refuse, keep(now, p)) }
	})
	for _, step := range []uint64{10, 20} {
		a.commit(step, content{"f": noise(step, 1000)})
		f.mustPull()
	}
	a.commit(30, content{"f": noise(30, 1000)})
	f.store.Before = func(_ ctxt, c callt) error {
		if strings.Contains(c.Key, "/pack/") && c.Op == "get" {
			return &sdk.Error{Code: sdk.PermissionDenied, Op: c.Op, Key: c.Key}
		}
		return nil
	}
	err := f.Pull(t.Context())
	s := f.Status()
	if !errors.Is(err, sdk.PermissionDenied) || s.Failures != 1 || s.Error == "" || s.Have.Step != 20 {
		t.Fatalf("%v, %+v", err, s)
	}
	if want := (Lag{Age: 10 * time.Second, Steps: 10, Commits: 1}); s.Lag != want {
		t.Errorf("lag %+v, want %+v", s.Lag, want)
	}
	f.store.Before, refuse = nil, full
	if err := f.Pull(t.Context()); !errors.Is(err, full) || f.Status().Have.Step != 20 || f.Status().Failures != 2 {
		t.Fatalf("%v, %+v", err, f.Status())
	}
	if got := f.steps(); !slices.Equal(got, []uint64{10, 20, 30}) {
		t.Errorf("before it is noted: copies of the steps %v", got)
	}
	refuse = nil
	if s := f.mustPull(); s.Have.Step != 30 || s.Failures != 0 || s.Error != "" {
		t.Errorf("%+v", s)
	}
	if got := f.steps(); !slices.Equal(got, []uint64{20, 30}) {
		t.Errorf("copies of the steps %v", got)
	}
}

func TestALookThatFindsNothingNewIsOneListing(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, content{"f": noise(1, 1000)})
	f := followerOf(t, a.mem)
	f.mustPull()
	f.mustPull() // of what was just pulled the listing is not known yet
	calls := f.store.Calls()
	f.mustPull()
	if n := f.store.Calls() - calls; n != 1 {
		t.Errorf("%d calls", n)
	}
	a.reign() // a seal without a commit is looked at once, and then is nothing new either
	f.mustPull()
	calls = f.store.Calls()
	f.mustPull()
	if n := f.store.Calls() - calls; n != 1 {
		t.Errorf("behind a seal: %d calls", n)
	}
	a.commit(20, content{"f": noise(2, 1000)})
	if s := f.mustPull(); s.Have.Step != 20 {
		t.Errorf("%+v", s)
	}
}

// CASES A30: a reader leaves no mark on the target that would hold retention back. A standby whose commit was retired takes the newest instead,
// and what it has already is whole on its own disk.
func TestAStandbyOlderThanRetentionPullsTheNewestInstead(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, content{"f": noise(1, 1000)})
	f := followerOf(t, a.mem)
	f.mustPull()
	a.commit(20, content{"f": noise(2, 1000)})
	retired := false
	f.store.Before = func(_ ctxt, c callt) error {
		if c.Op == "get" && strings.Contains(c.Key, "/pack/") && !retired {
			retired = true // between the plan and the first pack
			newest := a.commit(30, content{"f": noise(3, 1000)})
			a.retire(newest.Number - 1)
		}
		return nil
	}
	if s := f.mustPull(); !retired || s.Have.Step != 30 || s.Lag != (Lag{}) {
		t.Errorf("%+v", s)
	}
	if got := f.steps(); !slices.Equal(got, []uint64{10, 30}) {
		t.Errorf("copies of the steps %v", got)
	}
}

func TestAHistoryThatWasOverruledLeavesTheStandby(t *testing.T) {
	a := newAuthor(t)
	f := followerOf(t, a.mem)
	for _, step := range []uint64{10, 40, 20} { // 20 was adopted over 40
		a.commit(step, content{"f": noise(step, 1000)})
		f.mustPull()
	}
	if got := f.steps(); !slices.Equal(got, []uint64{10, 20}) {
		t.Errorf("copies of the steps %v", got)
	}
}

func TestAStandbyKeepsItsCopyWhenTheRepositoryIsGoneOrAnothers(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, content{"f": noise(1, 1000)})
	f := followerOf(t, a.mem)
	f.mustPull()
	for _, key := range a.mem.Keys() {
		a.remove(key)
	}
	if err := f.Pull(t.Context()); !errors.Is(err, repository.ErrCorrupt) || f.Status().Have.Step != 10 {
		t.Errorf("%v, %+v", err, f.Status())
	}
	other := newAuthor(t)
	f.store.Target = other.mem
	other.plant(repository.FormatKey(testPrefix), must(repository.EncodeFormat(repository.Format{
		RepositoryID: idOf(1), PipelineID: idOf(77), PipelineName: "other", Created: startOfTime(), WrittenBy: "cairn 0.1.0",
	})))
	other.commit(50, content{"f": noise(5, 1000)})
	if _, ok := errors.AsType[*OwnedError](f.Pull(t.Context())); !ok || f.Status().Have.Step != 10 || f.Status().Failures != 2 {
		t.Errorf("%+v", f.Status())
	}
}

func TestASeedIsFollowedUntilThereIsSomethingOfOurOwn(t *testing.T) {
	seed, own := newAuthor(t), newAuthor(t)
	for _, step := range []uint64{80, 90} {
		seed.commit(step, content{"f": noise(step, 1000)})
	}
	asked := &sdktest.Faulty{Target: seed.mem}
	f := followerOf(t, own.mem, func(c *FollowerConfig) { c.Seed, c.SeedName = readerOf(t, asked), "elsewhere" })
	keys := seed.mem.Keys()
	if s := f.mustPull(); s.Have.Step != 90 || !s.Have.Seed || s.Have.Target != "elsewhere" {
		t.Errorf("%+v", s)
	}
	own.commit(5, content{"f": noise(5, 1000)})
	calls := asked.Calls()
	if s := f.mustPull(); s.Have.Step != 5 || s.Have.Seed || asked.Calls() != calls {
		t.Errorf("%+v", s)
	}
	if got := f.steps(); !slices.Equal(got, []uint64{5}) || !slices.Equal(seed.mem.Keys(), keys) {
		t.Errorf("copies of the steps %v; the seed holds %v", got, seed.mem.Keys())
	}
}
