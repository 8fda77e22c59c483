package syncer

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
)

// pushed is a machine that has committed two checkpoints, as the commits 2 and 3; they share a pack.
func pushed(t *testing.T) (b *bench, w *Worker, newest uuid.UUID, files map[string]string) {
	b = newBench(t)
	w = b.worker()
	big := incompressible(1, 3<<20)
	b.mustPush(w, b.publish(1, map[string]string{"big": big, "text": "one"}), Requested)
	files = map[string]string{"big": big, "text": "two", "empty": ""}
	newest = b.publish(2, files)
	b.mustPush(w, newest, Requested)
	return b, w, newest, files
}

func (b *bench) change(key string, f func([]byte) []byte) {
	b.t.Helper()
	stored, ok := b.mem.Content(key)
	if !ok {
		b.t.Fatalf("there is no %s", key)
	}
	b.mem.Plant(key, f(slices.Clone(stored)))
}

func (b *bench) remove(keys ...string) {
	b.t.Helper()
	if err := b.mem.Delete(b.t.Context(), keys); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) packOf(number uint64) string {
	return repository.PackKey("strikes", b.commits()[number].Packs[0])
}

// restored gives the files of the newest commit as an operator gets them.
func (b *bench) restored(w *Worker) map[string]string {
	b.t.Helper()
	r, err := w.reader()
	if err != nil {
		b.t.Fatal(err)
	}
	dir := filepath.Join(b.t.TempDir(), "restored")
	if _, err := r.RestoreDir(b.t.Context(), RestoreRequest{Dir: dir, Spool: b.spool}); err != nil {
		b.t.Fatal(err)
	}
	got := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			b.t.Fatal(err)
		}
		got[e.Name()] = string(content)
	}
	return got
}

// CASES A9, A17: what was damaged on the target by hand is found, and the newest state is made whole there again.
func TestARepairMakesTheNewestStateWholeAgain(t *testing.T) {
	for _, row := range []struct {
		name   string
		harm   func(*bench)
		deep   bool
		broken []uint64
	}{
		{"a shared pack is deleted", func(b *bench) { b.remove(b.packOf(2)) }, false, []uint64{2, 3}},
		{"a byte of a shared pack is flipped", func(b *bench) { b.change(b.packOf(2), flip) }, true, []uint64{2, 3}},
		{"a shared pack is cut", func(b *bench) { b.change(b.packOf(2), cut) }, false, []uint64{2, 3}},
		{"the newest commit is deleted", func(b *bench) { b.remove(repository.CommitKey("strikes", 3)) }, false, []uint64{3}},
		{"the newest commit and its packs are deleted", func(b *bench) {
			for _, id := range b.commits()[3].Packs {
				b.remove(repository.PackKey("strikes", id))
			}
			b.remove(repository.CommitKey("strikes", 3))
		}, false, []uint64{2, 3}},
		{"a byte of the newest commit is flipped", func(b *bench) { b.change(repository.CommitKey("strikes", 3), flip) }, false, []uint64{3}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b, w, newest, files := pushed(t)
			row.harm(b)
			level := VerifyMetadata
			if row.deep {
				level = VerifyDeep
			}
			before, err := w.Verify(t.Context(), VerifyRequest{Level: level})
			if err != nil || before.Proof != nil || len(before.Problems) == 0 {
				t.Fatalf("verify finds %+v, %v", before.Problems, err)
			}
			rep, err := w.Repair(t.Context(), RepairRequest{Checkpoint: newest, Deep: row.deep})
			if err != nil || !rep.Restored || rep.Commit == nil || rep.Commit.Number != 4 || rep.Commit.Checkpoint != newest {
				t.Fatalf("repair %+v, %v", rep, err)
			}
			if !slices.Equal(rep.Broken, row.broken) {
				t.Errorf("broken for good: %v, want %v", rep.Broken, row.broken)
			}
			after, err := w.Verify(t.Context(), VerifyRequest{Level: VerifyDeep, From: &Selector{}})
			if err != nil || after.Proof == nil || after.Proof.Commit != 4 {
				t.Fatalf("verify afterwards: %+v, %v", after.Problems, err)
			}
			if got := b.restored(w); !maps.Equal(got, files) {
				t.Error("what is restored is not the checkpoint")
			}
			again, err := w.Repair(t.Context(), RepairRequest{Checkpoint: newest, Deep: row.deep})
			if err != nil || again.Restored || again.Commit != nil {
				t.Errorf("a second repair: %+v, %v", again, err)
			}
		})
	}
}

func TestARepairWorksAfterARestartToo(t *testing.T) {
	b, _, newest, files := pushed(t)
	b.remove(b.packOf(2))
	w := b.restart()
	rep, err := w.Repair(t.Context(), RepairRequest{Checkpoint: newest})
	if err != nil || !rep.Restored || rep.Commit.Number != 5 { // 4 is the new reign's seal
		t.Fatalf("repair %+v, %v", rep, err)
	}
	if got := b.restored(w); !maps.Equal(got, files) {
		t.Error("what is restored is not the checkpoint")
	}
	next := b.publish(3, files)
	b.mustPush(w, next, Periodic)
	if c := b.newest(); c.Checkpoint.ID != next || c.Totals.New != 0 {
		t.Errorf("the push after a repair stores %d bytes anew", c.Totals.New)
	}
}

func TestAWholeRepositoryIsNotRepaired(t *testing.T) {
	b, w, newest, _ := pushed(t)
	before := b.mem.Keys()
	rep, err := w.Repair(t.Context(), RepairRequest{Checkpoint: newest, Deep: true})
	if err != nil || rep.Restored || rep.Found.Proof == nil || rep.Found.Chunks == 0 {
		t.Fatalf("repair %+v, %v", rep, err)
	}
	if !slices.Equal(b.mem.Keys(), before) {
		t.Error("a repair of what is whole writes")
	}
}

// Each of them leaves no commit that is broken by itself, so a repair called the newest one whole.
func TestARepairDoesNotCallWholeWhatNobodyCanRead(t *testing.T) {
	for name, harm := range map[string]func(*bench){
		"FORMAT.json is deleted": func(b *bench) { b.remove(repository.FormatKey("strikes")) },
		"gc is damaged":          func(b *bench) { b.mem.Plant(repository.GCKey("strikes", 1), []byte("{")) },
	} {
		b, w, newest, _ := pushed(t)
		harm(b)
		rep, err := w.Repair(t.Context(), RepairRequest{Checkpoint: newest})
		if !errors.Is(err, repository.ErrCorrupt) || !strings.Contains(err.Error(), remedyCopy) || rep.Restored {
			t.Errorf("%s: %+v, %v", name, rep, err)
		}
	}
}

func TestAnOlderCommitThatIsBrokenIsNamedAndLeftToRetention(t *testing.T) {
	b, w, newest, _ := pushed(t)
	b.mustPush(w, b.publish(3, map[string]string{"text": "three"}), Requested)
	b.remove(repository.CommitKey("strikes", 3))
	rep, err := w.Repair(t.Context(), RepairRequest{Checkpoint: newest})
	if err != nil || rep.Restored || !slices.Equal(rep.Broken, []uint64{3}) {
		t.Fatalf("repair %+v, %v", rep, err)
	}
}

func TestWithoutLocalDataARepairIsRefusedAndSaysTheWaysOn(t *testing.T) {
	b, w, _, _ := pushed(t)
	b.remove(b.packOf(3))
	before := b.mem.Keys()
	_, err := w.Repair(t.Context(), RepairRequest{})
	if !errors.Is(err, ErrNothingLocal) || !strings.Contains(err.Error(), "--number") || !strings.Contains(err.Error(), "commit 3") {
		t.Fatalf("repair without local data: %v", err)
	}
	if !slices.Equal(b.mem.Keys(), before) {
		t.Error("a refused repair writes")
	}
}

func TestLocalDataThatIsDamagedIsNotPushedByARepair(t *testing.T) {
	b, w, newest, _ := pushed(t)
	b.remove(b.packOf(2))
	if err := os.WriteFile(b.file(newest, "big"), []byte(incompressible(9, 3<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := w.Repair(t.Context(), RepairRequest{Checkpoint: newest})
	if _, corrupt := errors.AsType[*checkpoint.CorruptError](err); !corrupt {
		t.Fatalf("repair from damaged local data: %v", err)
	}
	if n := len(b.commits()); n != 3 {
		t.Errorf("%d commits afterwards", n)
	}
}

func TestAProofIsKeptOverARestartAndGoesWithWhatItProved(t *testing.T) {
	b, w, newest, _ := pushed(t)
	if w.Status().Proof != nil {
		t.Error("a proof without a verification")
	}
	rep, err := w.Verify(t.Context(), VerifyRequest{Level: VerifySample, Fraction: 0.5})
	if err != nil || rep.Proof == nil {
		t.Fatalf("verify %+v, %v", rep.Problems, err)
	}
	w = b.restart()
	if got := w.Status().Proof; got == nil || got.Commit != 3 || got.Checkpoint != newest || got.Level != VerifySample || got.Fraction != 0.5 {
		t.Fatalf("proof after a restart: %+v", got)
	}
	b.wipe()
	if err := b.push(w, newest, Requested); err == nil {
		t.Fatal("success in a wiped store")
	}
	if got := w.Status().Proof; got != nil {
		t.Errorf("a proof of what is gone: %+v", got)
	}
}

func TestAShallowerProofStandsBesideTheDeeperOnesAndADeeperOneAlone(t *testing.T) {
	b, w, newest, _ := pushed(t)
	verify := func(req VerifyRequest) {
		t.Helper()
		if rep, err := w.Verify(t.Context(), req); err != nil || rep.Proof == nil {
			t.Fatalf("verify %+v, %v", rep.Problems, err)
		}
	}
	shown := func() []string {
		s := w.Status()
		var all []string
		for _, p := range append([]Proof{*s.Proof}, s.Deeper...) {
			all = append(all, fmt.Sprintf("%s %g of %d", p.Level, p.Fraction, p.Commit))
		}
		return all
	}
	verify(VerifyRequest{Level: VerifyDeep})
	before := w.Status().Proof.At
	if err := b.push(w, newest, Requested); err != nil {
		t.Fatal(err)
	}
	verify(VerifyRequest{Level: VerifySample, Fraction: 0.2})
	verify(VerifyRequest{})
	verify(VerifyRequest{Level: VerifySample, Fraction: 0.5})
	verify(VerifyRequest{})
	verify(VerifyRequest{})
	w = b.restart()
	if got, want := shown(), []string{"metadata 0 of 3", "sample 0.5 of 3", "deep 0 of 3"}; !slices.Equal(got, want) {
		t.Errorf("proofs %q, want %q", got, want)
	}
	if got := w.Status().Deeper[1].At; !got.Equal(before) {
		t.Errorf("the deepest proof is of %s, want %s", got, before)
	}
	verify(VerifyRequest{Level: VerifyDeep})
	if got, want := shown(), []string{"deep 0 of 3"}; !slices.Equal(got, want) {
		t.Errorf("proofs %q, want %q", got, want)
	}
}

func TestAProofOfABrokenCommitLeavesADeeperOneOfAnother(t *testing.T) {
	s := state{}
	s.proven(Proof{Level: VerifyDeep, Commit: 3})
	s.proven(Proof{Level: VerifyMetadata, Commit: 5})
	s.damaged(&Damage{Level: VerifyDeep, Commits: []uint64{5}})
	if s.Proof == nil || s.Proof.Commit != 3 || len(s.Deeper) != 0 {
		t.Errorf("proof %+v, deeper %+v", s.Proof, s.Deeper)
	}
	s.proven(Proof{Level: VerifyMetadata, Commit: 6})
	s.damaged(&Damage{Level: VerifyDeep, Commits: []uint64{3}})
	if s.Proof == nil || s.Proof.Commit != 6 || len(s.Deeper) != 0 {
		t.Errorf("proof %+v, deeper %+v", s.Proof, s.Deeper)
	}
}

func TestARepairMovesNeitherRequestedNorPeriodicSuccess(t *testing.T) {
	b, w, newest, _ := pushed(t)
	before := w.Status()
	b.remove(b.packOf(2))
	if _, err := w.Repair(t.Context(), RepairRequest{Checkpoint: newest}); err != nil {
		t.Fatal(err)
	}
	after := w.Status()
	last := after.Jobs[len(after.Jobs)-1]
	if after.Success != before.Success || after.Periodic != before.Periodic || last.Trigger != Repairing || last.State != JobSucceeded {
		t.Errorf("status %+v", after)
	}
}
