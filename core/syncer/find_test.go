package syncer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// CASES A68
func TestACommitIsFoundByIDByNumberAndByTime(t *testing.T) {
	a := newAuthor(t)
	for step := uint64(10); step <= 50; step += 10 {
		a.commit(step, small(fmt.Sprint(step)))
	}
	at := func(seconds float64) time.Time {
		return startOfTime().Add(time.Duration(seconds * float64(time.Second)))
	}
	for _, row := range []struct {
		name string
		sel  Selector
		want uint64 // step; 0 = none
	}{
		{"the newest", Selector{}, 50},
		{"by id", Selector{Checkpoint: idOf(1030)}, 30},
		{"by an id that was never committed", Selector{Checkpoint: uuid.New()}, 0},
		{"by number", Selector{Number: 3}, 20},
		{"by the number of a seal", Selector{Number: 1}, 0},
		{"by a number beyond the head", Selector{Number: 7}, 0},
		{"as of the moment of a checkpoint", Selector{AsOf: at(30)}, 30},
		{"as of a moment between two", Selector{AsOf: at(39.9)}, 30},
		{"as of now", Selector{AsOf: at(1e6)}, 50},
		{"as of before the first", Selector{AsOf: at(9)}, 0},
	} {
		c, err := readerOf(t, a.mem).Find(t.Context(), row.sel)
		switch {
		case row.want == 0 && !errors.Is(err, ErrNoCommit):
			t.Errorf("%s: %+v, %v, want none", row.name, c, err)
		case row.want != 0 && (err != nil || c.Checkpoint.Step != row.want):
			t.Errorf("%s: %+v, %v, want step %d", row.name, c, err, row.want)
		}
	}
	if _, err := readerOf(t, sdktest.NewMem()).Find(t.Context(), Selector{Number: 3}); !errors.Is(err, ErrNoCommit) {
		t.Errorf("a commit of nothing: %v", err)
	}
}

// CASES A68
func TestAMomentNearTheNewestTakesAFewRequestsHoweverLongTheHistoryIs(t *testing.T) {
	t.Parallel()
	a := newAuthor(t)
	files := small("the same in all")
	const commits = 2 * mostCommits
	for step := range uint64(commits) {
		a.commit(step+1, files)
	}
	for _, row := range []struct {
		name   string
		step   uint64 // as of the moment of it
		within int64  // requests
	}{
		{"ten before the newest", commits - 10, 60},
		{"three hundred before the newest", commits - 300, 600},
		{"the first", 1, commits + 150},
	} {
		r := readerOf(t, a.mem)
		c, err := r.Find(t.Context(), Selector{AsOf: startOfTime().Add(time.Duration(row.step) * time.Second)})
		if err != nil || c.Checkpoint.Step != row.step {
			t.Fatalf("%s: %+v, %v", row.name, c, err)
		}
		if n := r.calls.note.snapshot().Requests; n > row.within {
			t.Errorf("%s: %d requests, want at most %d", row.name, n, row.within)
		}
	}
}

// CASES A25
func TestAMomentBeforeTheFirstCommitNamesTheFirst(t *testing.T) {
	a := newAuthor(t)
	a.commit(10, small("a"))
	a.commit(20, small("b"))
	a.retire(2)
	_, err := readerOf(t, a.mem).Find(t.Context(), Selector{AsOf: startOfTime().Add(15 * time.Second)})
	want := "commit 3, was taken at " + startOfTime().Add(20*time.Second).Format(time.RFC3339)
	if !errors.Is(err, ErrNoCommit) || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v, want %q", err, want)
	}
	a.retire(3)
	if _, err := readerOf(t, a.mem).Find(t.Context(), Selector{AsOf: startOfTime()}); !errors.Is(err, repository.ErrCorrupt) {
		t.Fatalf("a history that lost all its commits: %v", err)
	}
}

// CASES A9: damage elsewhere in the history keeps nothing whole from being restored, and is never passed over in silence.
func TestADamagedCommitStandsOnlyInTheWayOfWhatItMayBe(t *testing.T) {
	a := newAuthor(t)
	for step := uint64(10); step <= 40; step += 10 {
		a.commit(step, small(fmt.Sprint(step)))
	}
	a.plant(repository.CommitKey(testPrefix, 3), []byte("not a commit")) // of step 20
	at := func(seconds int) time.Time { return startOfTime().Add(time.Duration(seconds) * time.Second) }
	for _, row := range []struct {
		name string
		sel  Selector
		want uint64 // step; 0 = damage
	}{
		{"as of a moment above it", Selector{AsOf: at(35)}, 30},
		{"as of its moment", Selector{AsOf: at(25)}, 0},
		{"as of a moment below it, for clocks may be wrong", Selector{AsOf: at(15)}, 0},
		{"a checkpoint above it", Selector{Checkpoint: idOf(1040)}, 40},
		{"a checkpoint below it", Selector{Checkpoint: idOf(1010)}, 10},
		{"a checkpoint that it may hold", Selector{Checkpoint: idOf(1020)}, 0},
	} {
		c, err := readerOf(t, a.mem).Find(t.Context(), row.sel)
		switch {
		case row.want == 0 && !errors.Is(err, repository.ErrCorrupt):
			t.Errorf("%s: %+v, %v, want damage", row.name, c, err)
		case row.want != 0 && (err != nil || c.Checkpoint.Step != row.want):
			t.Errorf("%s: %v, want step %d", row.name, err, row.want)
		}
	}
}

// CASES A25, A30: a restore as of a moment said that there is no such commit, while an older one was there.
func TestAMomentWhoseCommitRetentionTakesWhileItIsLookedForIsAnsweredByTheOneBefore(t *testing.T) {
	a := newAuthor(t)
	for step := uint64(10); step <= 40; step += 10 {
		a.commit(step, small(fmt.Sprint(step)))
	}
	reads := 0
	store := &sdktest.Faulty{Target: a.mem, Before: func(_ context.Context, c sdktest.Call) error {
		if c.Op != "get" || c.Key != repository.CommitKey(testPrefix, 4) {
			return nil
		}
		if reads++; reads == 2 { // the search has found it, and it is read alone now
			a.retire(4, 3)
		}
		return nil
	}}
	c, err := readerOf(t, store).Find(t.Context(), Selector{AsOf: startOfTime().Add(30 * time.Second)})
	if err != nil || c.Checkpoint.Step != 20 {
		t.Fatalf("found %+v, %v", c, err)
	}
}
