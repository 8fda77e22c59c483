package syncer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func small(s string) content { return content{"state.db": []byte(s)} }

// CASES A1
func TestNothingBelowThePrefixIsAProvenAbsence(t *testing.T) {
	mem := sdktest.NewMem()
	mem.Plant("strikes2/FORMAT.json", []byte("another repository"))
	mem.Plant("strike", []byte("a foreign object"))
	head, err := readerOf(t, mem).Discover(t.Context())
	if err != nil || head != (Head{}) {
		t.Fatalf("head %+v, %v", head, err)
	}
}

func TestTheHeadIsTheNewestCheckpointPastAnySeals(t *testing.T) {
	a := newAuthor(t)
	head, err := readerOf(t, a.mem).Discover(t.Context())
	if err != nil || head.Format == nil || head.Commit != nil {
		t.Fatalf("head of a repository without commits: %+v, %v", head, err)
	}
	a.commit(10, small("a"))
	a.commit(20, small("b"))
	a.reign()
	a.reign()
	a.plant(testPrefix+"/commit/notes.txt", []byte("left by a person"))
	a.plant(testPrefix+"/commit/99999999999999999999.json.zst", []byte("a number that is none"))
	head, err = readerOf(t, a.mem).Discover(t.Context())
	if err != nil || head.Commit == nil || head.Commit.Number != 3 || head.Commit.Checkpoint.Step != 20 || head.Format.PipelineID != idOf(2) {
		t.Fatalf("head %+v, %v", head, err)
	}
}

// Any one call that fails leaves the question open, and open is never absent.
// CASES A1
func TestACallThatFailsLeavesItOpenWhatThereIs(t *testing.T) {
	empty := sdktest.NewMem()
	full := newAuthor(t)
	full.commit(10, small("a"))
	full.commit(20, small("b"))
	full.retire(2)
	for name, mem := range map[string]*sdktest.Mem{"empty": empty, "full": full.mem, "only a seal": newAuthor(t).mem} {
		for _, code := range []sdk.Code{sdk.PermissionDenied, sdk.Unauthenticated, sdk.Unavailable, sdk.Internal} {
			probe := &sdktest.Faulty{Target: mem}
			if _, err := readerOf(t, probe).Discover(t.Context()); err != nil {
				t.Fatal(err)
			}
			for n := range probe.Calls() {
				faulty := &sdktest.Faulty{Target: mem, Before: func(_ context.Context, c sdktest.Call) error {
					if c.N > n {
						return &sdk.Error{Code: code, Op: c.Op, Key: c.Key}
					}
					return nil
				}}
				head, err := readerOf(t, faulty).Discover(t.Context())
				if err == nil || sdk.CodeOf(err) != code || head != (Head{}) || !strings.Contains(err.Error(), `"offsite"`) {
					t.Errorf("%s store, %v from call %d on: head %+v, %v", name, code, n+1, head, err)
				}
			}
		}
	}
}

// CASES A3
func TestDataWithoutItsIndexIsCorruptionAndNotEmptiness(t *testing.T) {
	for _, row := range []struct {
		name   string
		damage func(*author)
	}{
		{"no FORMAT.json beside commits", func(a *author) { a.remove(repository.FormatKey(testPrefix)) }},
		{"an empty FORMAT.json", func(a *author) { a.plant(repository.FormatKey(testPrefix), nil) }},
		{"a cut FORMAT.json", func(a *author) { a.plant(repository.FormatKey(testPrefix), []byte(`{"format":1,`)) }},
		{"a damaged head", func(a *author) { a.plant(repository.CommitKey(testPrefix, 3), []byte("zeros")) }},
		{"an empty head", func(a *author) { a.plant(repository.CommitKey(testPrefix, 3), nil) }},
		{"every commit but the seal gone", func(a *author) {
			a.reign()
			a.remove(repository.CommitKey(testPrefix, 2))
			a.remove(repository.CommitKey(testPrefix, 3))
		}},
		{"every commit gone beside packs", func(a *author) {
			for n := range uint64(3) {
				a.remove(repository.CommitKey(testPrefix, n+1))
			}
		}},
		{"only the seal of the first epoch left, and gc", func(a *author) {
			a.retire(2, 1)
			a.remove(repository.CommitKey(testPrefix, 3))
		}},
		{"a damaged gc object", func(a *author) { a.plant(repository.GCKey(testPrefix, 1), []byte("{}")) }},
		{"a commit stored under another number", func(a *author) {
			b, _ := a.mem.Content(repository.CommitKey(testPrefix, 3))
			a.plant(repository.CommitKey(testPrefix, 4), b)
		}},
		{"a commit of a lower epoch above a seal", func(a *author) {
			a.reign()
			a.epoch--
			a.commit(30, small("c"))
		}},
		{"a commit on top of another one than is there", func(a *author) {
			a.sum = repository.Sum(nil)
			a.commit(30, small("c"))
		}},
	} {
		a := newAuthor(t)
		a.commit(10, small("a"))
		a.commit(20, small("b"))
		row.damage(a)
		head, err := readerOf(t, a.mem).Discover(t.Context())
		if !errors.Is(err, repository.ErrCorrupt) || head != (Head{}) {
			t.Errorf("%s: head %+v, %v", row.name, head, err)
		}
		// What can be read is listed, and never without the error.
		if _, err := readerOf(t, a.mem).ListCommits(t.Context()); !errors.Is(err, repository.ErrCorrupt) {
			t.Errorf("%s: list: %v", row.name, err)
		}
	}
}

func TestARepositoryOfANewerVersionIsRefusedAndNamesIt(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, small("a"))
	f, _ := a.mem.Content(repository.FormatKey(testPrefix))
	newer := strings.NewReplacer(`"format":1`, `"format":2`, "0.1.0", "9.0.0").Replace(string(f))
	a.plant(repository.FormatKey(testPrefix), []byte(newer))
	_, local := localOf(t)
	_, err := readerOf(t, a.mem).Pull(t.Context(), PullRequest{Local: local, Spool: spoolOf(t)})
	unsupported, ok := errors.AsType[*repository.UnsupportedError](err)
	if !ok || unsupported.WrittenBy != "cairn 9.0.0" {
		t.Fatalf("pull from format 2: %v", err)
	}
	if list, err := local.List(t.Context()); err != nil || len(list) != 0 {
		t.Fatalf("a refused pull leaves %v, %v", list, err)
	}
}

// onGet makes something happen in the store just before a key is read, once.
func onGet(mem *sdktest.Mem, key string, do func()) *sdktest.Faulty {
	done := false
	return &sdktest.Faulty{Target: mem, Before: func(_ context.Context, c sdktest.Call) error {
		if !done && (c.Op == "get" || c.Op == "list") && strings.HasPrefix(c.Key, key) {
			done = true
			do()
		}
		return nil
	}}
}

// CASES A25, A30
func TestAReaderThatMeetsRetentionLooksAgain(t *testing.T) {
	for _, row := range []struct{ name, key string }{
		{"when it reads the head", repository.CommitKey(testPrefix, 3)},
		{"when it has read the head and asks for gc", repository.GCPrefix(testPrefix)},
		{"when it reads the commit below", repository.CommitKey(testPrefix, 2)},
	} {
		a := newAuthor(t)
		a.commit(10, small("a"))
		a.commit(20, small("b"))
		store := onGet(a.mem, row.key, func() {
			a.commit(30, small("c"))
			a.retire(3)
		})
		head, err := readerOf(t, store).Discover(t.Context())
		if err != nil || head.Commit == nil || head.Commit.Checkpoint.Step != 30 {
			t.Errorf("%s: head %+v, %v", row.name, head, err)
		}
	}
}

// CASES A36
func TestACommitThatGCHidesIsNeverTakenThoughItsObjectIsStillThere(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, small("a"))
	old, _ := a.mem.Content(repository.CommitKey(testPrefix, 2))
	a.commit(20, small("b"))
	a.commit(30, small("c"))
	a.retire(3, 3)
	a.plant(repository.CommitKey(testPrefix, 2), old)
	r := readerOf(t, a.mem)
	list, err := r.ListCommits(t.Context())
	if err != nil || len(list) != 2 || list[0].Number != 3 || list[1].Number != 4 {
		t.Fatalf("list %+v, %v", list, err)
	}
	if c, err := r.Find(t.Context(), Selector{Number: 2}); !errors.Is(err, ErrNoCommit) {
		t.Fatalf("commit 2 is found: %+v, %v", c, err)
	}
	if _, err := r.Find(t.Context(), Selector{Checkpoint: idOf(1010)}); !errors.Is(err, ErrNoCommit) {
		t.Fatalf("the hidden checkpoint is found: %v", err)
	}
}

// Wrong clocks do not reorder commits: number, not time, decides which is newest.
// CASES A32, A46
func TestOrderIsByNumberWhateverTheClocksSay(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, small("a"))
	a.number += 100_000 // its clock is months ahead
	ahead := a.at()
	a.number -= 100_000
	a.add(&repository.Commit{Kind: repository.KindCheckpoint, Checkpoint: repository.Checkpoint{
		ID: idOf(7), Step: 20, Created: ahead, Incarnation: idOf(8), Identity: repository.Identity{Kind: "sql"},
		History: repository.History{{Lineage: idOf(50)}},
	}})
	a.commit(30, small("c"))
	head, err := readerOf(t, a.mem).Discover(t.Context())
	if err != nil || head.Commit.Checkpoint.Step != 30 {
		t.Fatalf("head %+v, %v", head, err)
	}
}

// CASES A34
func TestMoreCommitsThanAnyPageHoldsAreAllSeen(t *testing.T) {
	t.Parallel()
	a := newAuthor(t)
	files := small("the same in all")
	for step := range uint64(1100) {
		a.commit(step+1, files)
	}
	list, err := readerOf(t, a.mem).ListCommits(t.Context())
	if err != nil || len(list) != 1100 || list[0].Checkpoint.Step != 1 || list[1099].Checkpoint.Step != 1100 {
		t.Fatalf("%d commits, %v", len(list), err)
	}
}

// CASES A1
func TestAStartAsksATargetAndTellsAbsentFromUnknown(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, small("a"))
	a.commit(20, small("b"))
	refused := &sdktest.Faulty{Target: a.mem, Before: func(context.Context, sdktest.Call) error { return sdk.PermissionDenied }}
	if got := readerOf(t, a.mem).Ask(t.Context(), Selector{}); got.Err != nil || *got.Commit != (StatePoint{ID: idOf(1020), Step: 20}) || got.Number != 3 || got.Name != "offsite" {
		t.Errorf("the newest: %+v", got)
	}
	if got := readerOf(t, a.mem).Ask(t.Context(), Selector{Checkpoint: idOf(9)}); got.Err != nil || got.Commit != nil {
		t.Errorf("an id that is proven absent: %+v", got)
	}
	if got := readerOf(t, refused).Ask(t.Context(), Selector{Checkpoint: idOf(9)}); sdk.CodeOf(got.Err) != sdk.PermissionDenied || got.Commit != nil {
		t.Errorf("a target that refuses: %+v", got)
	}
}

// CASES E9
func TestAnotherPipelinesRepositoryIsRefusedAndItsOwnerNamed(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, small("a"))
	r, err := NewReader(ReaderConfig{
		Target: "offsite", Prefix: testPrefix, Store: Direct(a.mem), Now: ticking(), Pipeline: idOf(77), PipelineName: "other",
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Discover(t.Context())
	owned, ok := errors.AsType[*OwnedError](err)
	if !ok || owned.Owner != idOf(2) || owned.Pipeline != idOf(77) || !strings.Contains(err.Error(), idOf(2).String()) {
		t.Fatalf("another pipeline's repository: %v", err)
	}
	if _, err := r.ListCommits(t.Context()); err == nil {
		t.Error("its commits are listed")
	}
}
