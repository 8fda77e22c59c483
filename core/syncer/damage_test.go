package syncer

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func TestDamageIsKnownUntilALookAsDeepFindsItWholeOrRetentionTakesIt(t *testing.T) {
	early, late := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	wrong := []Problem{{}}
	deep := &Damage{At: early, Level: VerifyDeep, Commits: []uint64{10, 11}}
	sampled := &Damage{At: early, Level: VerifySample, Fraction: 0.5, Commits: []uint64{11}}
	listed := &Damage{At: early, Level: VerifyMetadata, Commits: []uint64{11}}
	noCommit := &Damage{At: early, Level: VerifyDeep}
	for _, row := range []struct {
		name  string
		known *Damage
		rep   VerifyReport
		alone bool
		want  *Damage
	}{
		{"nothing is known and nothing found", nil, VerifyReport{Level: VerifyDeep}, false, nil},
		{"it is found", nil, VerifyReport{Level: VerifyDeep, Problems: wrong, Broken: []uint64{10, 11}, Finished: early}, false, deep},
		{"a shallower look does not see it", deep, VerifyReport{Level: VerifyMetadata}, false, deep},
		{"a sample may have missed it", deep, VerifyReport{Level: VerifySample, Fraction: 0.9}, false, deep},
		{"a sample reads other chunks than the one before", sampled, VerifyReport{Level: VerifySample, Fraction: 0.9}, false, sampled},
		{"a sample of everything is deep", sampled, VerifyReport{Level: VerifySample, Fraction: 1}, false, nil},
		{"a deep look finds it whole", deep, VerifyReport{Level: VerifyDeep}, false, nil},
		{"a listing shows again what a listing showed", listed, VerifyReport{Level: VerifyMetadata}, false, nil},
		{"one commit alone is whole again", deep, VerifyReport{Level: VerifyDeep, Newest: &CommitInfo{Number: 11}}, true, &Damage{At: early, Level: VerifyDeep, Commits: []uint64{10}}},
		{"another commit alone is whole", deep, VerifyReport{Level: VerifyDeep, Newest: &CommitInfo{Number: 12}}, true, deep},
		{"retention takes one", deep, VerifyReport{Level: VerifyMetadata, gc: repository.GC{UpTo: 10}}, false, &Damage{At: early, Level: VerifyDeep, Commits: []uint64{11}}},
		{"retention takes all", deep, VerifyReport{Level: VerifyMetadata, gc: repository.GC{UpTo: 11}}, false, nil},
		{"a shallower look finds more", deep, VerifyReport{Level: VerifyMetadata, Problems: wrong, Broken: []uint64{3}, Finished: late}, false, &Damage{At: late, Level: VerifyDeep, Commits: []uint64{3, 10, 11}}},
		{"a deeper look finds other damage", listed, VerifyReport{Level: VerifyDeep, Problems: wrong, Broken: []uint64{3}, Finished: late}, false, &Damage{At: late, Level: VerifyDeep, Commits: []uint64{3}}},
		{"what breaks no commit is seen at each level", noCommit, VerifyReport{Level: VerifyMetadata}, false, nil},
		{"but not by a look at one commit", noCommit, VerifyReport{Level: VerifyDeep, Newest: &CommitInfo{Number: 11}}, true, noCommit},
	} {
		if got := row.known.after(row.rep, row.alone); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}

// CASES A17: what a deep verification has found broken is not told to be proven because a shallower one does not see it.
func TestAShallowVerificationDoesNotHideWhatADeepOneHasFound(t *testing.T) {
	b, w, newest, files := pushed(t)
	if rep, err := w.Verify(t.Context(), VerifyRequest{}); err != nil || rep.Proof == nil {
		t.Fatalf("verify %+v, %v", rep.Problems, err)
	}
	b.change(b.packOf(3), flip)
	if rep, err := w.Verify(t.Context(), VerifyRequest{Level: VerifyDeep}); err != nil || !slices.Contains(rep.Broken, 3) || rep.Known != nil {
		t.Fatalf("a deep verification: %+v, %v", rep, err)
	}
	w = b.restart()
	known := func(when string) {
		t.Helper()
		if s := w.Status(); s.Proof != nil || s.Damage == nil || s.Damage.Level != VerifyDeep || !slices.Contains(s.Damage.Commits, 3) {
			t.Errorf("status %s: proof %+v, damage %+v", when, s.Proof, s.Damage)
		}
	}
	known("after a restart")
	for _, from := range []*Selector{nil, {}} {
		rep, err := w.Verify(t.Context(), VerifyRequest{From: from})
		if err != nil || rep.Proof != nil || rep.Known == nil || !slices.Contains(rep.Known.Commits, 3) {
			t.Errorf("a shallow verification from %v: proof %+v, known %+v, %v", from, rep.Proof, rep.Known, err)
		}
	}
	known("after a shallow verification")

	rep, err := w.Repair(t.Context(), RepairRequest{Checkpoint: newest})
	if err != nil || !rep.Restored || !slices.Contains(rep.Broken, 3) {
		t.Fatalf("a repair that was not asked to be deep: %+v, %v", rep, err)
	}
	if got := b.restored(w); !maps.Equal(got, files) {
		t.Error("what is restored is not the checkpoint")
	}
	known("after the repair")
	again, err := w.Repair(t.Context(), RepairRequest{Checkpoint: newest})
	if err != nil || again.Commit != nil || !slices.Contains(again.Broken, 3) || again.Found.Proof != nil {
		t.Errorf("a second repair: %+v, %v", again, err)
	}
}

// CASES A17: two verifications at once, and the damage comes between the looks of the first.
func TestAVerificationTakesNothingBackThatAnotherHasFoundWhileItRan(t *testing.T) {
	b, w, _, _ := pushed(t)
	var once atomic.Bool
	b.store.Before = func(ctx context.Context, c sdktest.Call) error {
		if c.Op != "list" || c.Key != repository.PackPrefix("strikes") || !once.CompareAndSwap(false, true) {
			return nil
		}
		b.remove(repository.CommitKey("strikes", 2)) // the first has read it
		if rep, err := w.Verify(ctx, VerifyRequest{}); err != nil || !slices.Equal(rep.Broken, []uint64{2}) {
			t.Errorf("the second verification: broken %v, %v", rep.Broken, err)
		}
		return nil
	}
	rep, err := w.Verify(t.Context(), VerifyRequest{})
	if err != nil || !once.Load() || rep.Proof != nil || rep.Known == nil {
		t.Errorf("the first verification: proof %+v, known %+v, %v", rep.Proof, rep.Known, err)
	}
	if s := w.Status(); s.Proof != nil || s.Damage == nil || !slices.Equal(s.Damage.Commits, []uint64{2}) {
		t.Errorf("status: proof %+v, damage %+v", s.Proof, s.Damage)
	}
}

func TestWhatWasPutBackIsProvenOnceItWasReadAgain(t *testing.T) {
	b, w, newest, _ := pushed(t)
	key := b.packOf(3)
	b.change(key, flip)
	if _, err := w.Verify(t.Context(), VerifyRequest{Level: VerifyDeep}); err != nil || w.Status().Damage == nil {
		t.Fatalf("damage %+v, %v", w.Status().Damage, err)
	}
	b.change(key, flip)
	rep, err := w.Repair(t.Context(), RepairRequest{Checkpoint: newest})
	if err != nil || rep.Commit != nil || len(rep.Found.Problems) != 0 {
		t.Errorf("a repair of what was put back: %+v, %v", rep, err)
	}
	if _, err := w.Verify(t.Context(), VerifyRequest{Level: VerifyDeep}); err != nil {
		t.Fatal(err)
	}
	if s := w.Status(); s.Damage != nil || s.Proof == nil || s.Proof.Commit != 3 || s.Proof.Level != VerifyDeep {
		t.Errorf("proof %+v, damage %+v", s.Proof, s.Damage)
	}
}
