package syncer

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
)

func TestWhatIsAheadOfAChosenState(t *testing.T) {
	a, b, c := uuid.UUID{1}, uuid.UUID{2}, uuid.UUID{3}
	at := func(step uint64, history ...repository.Reign) repository.Point {
		return repository.Point{History: history, Step: step}
	}
	reign := func(lineage uuid.UUID, upTo uint64) repository.Reign {
		return repository.Reign{Lineage: lineage, UpTo: upTo}
	}
	chosen := at(100, reign(a, 60), reign(b, 60))
	for name, test := range map[string]struct {
		here Standing
		want string // "" = it is not ahead
	}{
		"an older state of the line":      {Standing{Name: "x", Point: at(90, reign(a, 60), reign(b, 60))}, ""},
		"the state that it forked from":   {Standing{Name: "x", Point: at(60, reign(a, 0))}, ""},
		"the very state":                  {Standing{Name: "x", Point: chosen}, ""},
		"a later state of the line":       {Standing{Name: "x", Point: at(120, reign(a, 60), reign(b, 60))}, "x (step 120) holds what came after step 100"},
		"the line that it was forked off": {Standing{Name: "x", Point: at(70, reign(a, 0))}, "x (step 70) holds what came after step 60"},
		"a younger fork, of fewer steps":  {Standing{Name: "x", Point: at(95, reign(a, 60), reign(b, 80), reign(c, 80))}, "x (step 95) holds what came after step 80"},
		"another history":                 {Standing{Name: "x", Point: at(5, reign(c, 0))}, "x (step 5) is of another history"},
		"nothing that can be told":        {Standing{Name: "x", Unknown: errors.New("why")}, "x may hold more (why)"},
	} {
		got := AheadOf(chosen, []Standing{test.here})
		if said := len(got) == 1; said != (test.want != "") || said && got[0].String() != test.want {
			t.Errorf("%s: %v, want %q", name, got, test.want)
		}
	}
}

func (b *bench) syncFile() SyncFile {
	return SyncFile{File: b.dir.SyncFile("offsite"), Target: "offsite", Prefix: "strikes", Pipeline: pipelineID()}
}

// wantForgotten asks whether this machine made the newest commit and knows nothing of it.
func (b *bench) wantForgotten(want bool) {
	b.t.Helper()
	if got, err := b.syncFile().Forgotten(b.writer.ID, b.newest()); got != want || err != nil {
		b.t.Errorf("forgotten: %t (%v), want %t", got, err, want)
	}
	if got, err := b.syncFile().Forgotten(uuid.Must(uuid.NewV7()), b.newest()); got || err != nil {
		b.t.Errorf("another machine's commit is forgotten: %t (%v)", got, err)
	}
}

// rememberNewest notes that the state here goes on from the newest commit, as a restore in place does.
func (b *bench) rememberNewest() {
	b.t.Helper()
	c := b.newest()
	if err := b.syncFile().Remember(c.Number, c.Checkpoint.ID, c.Checkpoint.Step, time.Now()); err != nil {
		b.t.Fatal(err)
	}
}

// A storage path that was put back is held, because it knows nothing of a commit that was made from it. Once the operator has restored that very
// commit there, it does.
func TestAStoragePathThatWasPutBackGoesOnOnceItHoldsTheNewestCommit(t *testing.T) {
	b := newBench(t)
	b.mustPush(b.worker(), b.publish(3, map[string]string{"f": "three"}), Periodic)
	putBack := b.saved()
	b.mustPush(b.restart(), b.publish(5, map[string]string{"f": "five"}), Periodic)
	putBack()
	if _, ok := errors.AsType[*HeldError](b.push(b.restart(), b.publish(9, map[string]string{"f": "nine, of another five"}), Periodic)); !ok {
		t.Fatal("it is not held")
	}
	b.wantForgotten(true)
	b.rememberNewest()
	b.wantForgotten(false)
	if _, err := b.dir.Checkpoints().Collect(1); err != nil {
		t.Fatal(err)
	}
	b.inherit()
	w := b.restart()
	if s := w.Status(); s.Committed == nil || s.Committed.Step != 5 {
		t.Errorf("status knows of %+v", s.Committed)
	}
	b.mustPush(w, b.publish(10, map[string]string{"f": "ten, after five"}), Periodic)
	b.wantRestorableSteps(3, 5, 10)
}

func TestWhatIsRememberedKeepsTheRest(t *testing.T) {
	b := newBench(t)
	b.mustPush(b.worker(), b.publish(1, map[string]string{"f": "one"}), Requested)
	before := b.restart().Status()
	b.rememberNewest()
	after := b.restart().Status()
	if after.Success != before.Success || len(after.Jobs) != len(before.Jobs) || !slices.EqualFunc(after.Jobs, before.Jobs, func(a, b JobRecord) bool { return a.ID == b.ID }) {
		t.Errorf("before %+v, after %+v", before, after)
	}
}
