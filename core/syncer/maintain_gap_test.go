package syncer

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/repository"
)

// loses takes commits, and the packs that were made for them.
func (b *bench) loses(numbers ...uint64) {
	b.t.Helper()
	for _, n := range numbers {
		b.remove(repository.CommitKey("strikes", n))
	}
	for _, id := range b.packsStored() {
		if slices.Contains(numbers, id.Number) {
			b.remove(repository.PackKey("strikes", id))
		}
	}
}

// The store was put back to an older copy, and a commit came on top that needs what went: the older ones are all that restores.
//
// CASES A17
func TestWhileACommitIsMissingNoAutomaticRunRetiresOrSweepsAnything(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 1}))
	b.pushes(w, 1, 8)
	b.loses(6, 7, 8)
	packs := len(b.packsStored())
	for range 3 {
		r, err := w.Maintain(t.Context(), MaintainRequest{})
		if err == nil || !slices.Equal(r.Missing, []uint64{6, 7, 8}) || r.Retired != 0 || r.Deleted != 0 || r.GC != 0 || r.Kept != 5 {
			t.Fatalf("error %v, report %+v", err, r)
		}
		for _, say := range []string{"not retired", "commits [6 7 8] are missing", "cairn remote sweep"} {
			if !strings.Contains(err.Error(), say) {
				t.Errorf("%v does not say %q", err, say)
			}
		}
		if m := w.Status().Maintenance; !slices.Equal(m.Missing, []uint64{6, 7, 8}) || m.Error == "" {
			t.Errorf("status %+v", m)
		}
	}
	if got := len(b.packsStored()); got != packs {
		t.Errorf("%d of %d packs are left", got, packs)
	}
	if listed := b.listed(); listed[len(listed)-2].Checkpoint.Step != 4 || !maps.Equal(b.content(b.commits()[5]), b.filesOf(4)) {
		t.Errorf("listed are %+v", listed)
	}
}

// CASES A17
func TestASweepThatIsAskedForGivesUpWhatIsMissingAndKeepsTheNewestThatIsWhole(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 1}))
	b.pushes(w, 1, 8)
	b.loses(6, 7, 8) // the pack that the commits 6 to 9 share among them
	if _, err := w.Maintain(t.Context(), MaintainRequest{Thorough: true}); err == nil || !strings.Contains(err.Error(), "commits [9] need 1 packs that are not there") {
		t.Errorf("error %v", err)
	}
	listed := b.listed()
	if len(listed) != 2 || listed[0].Checkpoint.Step != 4 || !maps.Equal(b.content(b.commits()[5]), b.filesOf(4)) {
		t.Fatalf("listed are %+v", listed)
	}
	if r, err := w.Maintain(t.Context(), MaintainRequest{}); err != nil || len(r.Missing) != 0 || r.Retired != 0 {
		t.Errorf("the next run: error %v, report %+v", err, r)
	}
	if d := w.Status().Damage; d == nil || !slices.Equal(d.Commits, []uint64{9}) || len(d.Packs) != 1 {
		t.Errorf("status shows the damage %+v", d)
	}
	b.pushes(w, 9, 9)
	b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(9)
}

// What is given up is given up also where nothing else goes.
func TestGivingUpWhatIsMissingHidesItsNumbersAlthoughNothingIsRetired(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 9}))
	b.pushes(w, 1, 5)
	b.loses(4)
	content := b.listed()
	if r := b.mustMaintain(w, MaintainRequest{Thorough: true}); r.GC != 1 || r.Retired != 0 || r.Kept != 4 || len(r.Missing) != 0 {
		t.Errorf("report %+v", r)
	}
	if r := b.mustMaintain(w, MaintainRequest{}); r.GC != 0 || len(r.Missing) != 0 {
		t.Errorf("the next run: report %+v", r)
	}
	if !slices.EqualFunc(content, b.listed(), func(x, y CommitInfo) bool { return x.Number == y.Number }) {
		t.Errorf("listed are %+v, and were %+v", b.listed(), content)
	}
}

// CASES A17: packs that were deleted by hand, no commit among them.
func TestRetentionRetiresNoWholeCommitForOneWhosePacksAreNotThere(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 1}))
	b.pushes(w, 1, 4)
	for _, id := range b.packsStored() {
		if id.Number == 5 {
			b.remove(repository.PackKey("strikes", id))
		}
	}
	r, err := w.Maintain(t.Context(), MaintainRequest{})
	if err == nil || r.Kept != 2 || r.Retired != 2 || w.Status().Maintenance.Error == "" {
		t.Errorf("error %v, report %+v", err, r)
	}
	if listed := b.listed(); len(listed) != 2 || !maps.Equal(b.content(b.commits()[4]), b.filesOf(3)) {
		t.Fatalf("listed are %+v", listed)
	}
	b.pushes(w, 5, 5)
	b.mustMaintain(w, MaintainRequest{})
	b.wantRestorable(5)
}

// What is known to be broken by reading is there, and does not count as whole either.
//
// CASES A17
func TestRetentionKeepsTheNewestCommitThatIsNotKnownToBeBroken(t *testing.T) {
	b := newBench(t)
	w := b.worker(keeps(repository.Retention{MinCount: 1}))
	b.pushes(w, 1, 3)
	for _, id := range b.packsStored() {
		if id.Number >= 4 {
			b.change(repository.PackKey("strikes", id), flip)
		}
	}
	if _, err := w.Verify(t.Context(), VerifyRequest{Level: VerifyDeep}); err != nil {
		t.Fatal(err)
	}
	r := b.mustMaintain(w, MaintainRequest{})
	if r.Kept != 2 || !strings.Contains(r.Verdicts[len(r.Verdicts)-2].Why, "newest that is not known to be broken") {
		t.Errorf("report %+v", r)
	}
	if !maps.Equal(b.content(b.commits()[3]), b.filesOf(2)) {
		t.Error("the newest whole commit is gone")
	}
}

// CASES A17: what the run goes by is looked at again where it counts.
func TestAStoreThatIsPutBackWhileRetentionRunsLosesNothingOfWhatIsLeft(t *testing.T) {
	for name, on := range map[string]string{"before the gc object": "list strikes/pack/", "before the commits are deleted": "list strikes/epoch/"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			w := b.worker(keeps(repository.Retention{MinCount: 1}))
			b.pushes(w, 1, 4)
			putBack := b.rewind()
			b.pushes(w, 5, 8)
			done := false
			b.store.Before = func(_ ctxt, c callt) error {
				if !done && strings.HasPrefix(c.Op+" "+c.Key, on) {
					done = true
					putBack()
				}
				return nil
			}
			if _, err := w.Maintain(t.Context(), MaintainRequest{}); err == nil || !strings.Contains(err.Error(), "put back to an earlier state") {
				t.Errorf("error %v", err)
			}
			b.wantRestorable(1, 2, 3, 4)
		})
	}
}
