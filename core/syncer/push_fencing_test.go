package syncer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// inherit gives this machine the newest commit's state to continue from, under a lineage of its own, as a restore does.
func (b *bench) inherit() {
	b.t.Helper()
	c := b.newest()
	b.continueFrom(c.Checkpoint)
}

// continueFrom gives this machine the state of a checkpoint, under a lineage of its own.
func (b *bench) continueFrom(c repository.Checkpoint) {
	b.history = nil
	for _, r := range (repository.Point{History: c.History, Step: c.Step}).Fork(uuid.Must(uuid.NewV7())) {
		b.history = append(b.history, checkpoint.Reign(r))
	}
}

// CASES A39, A43: two machines on one repository. The one that was taken over from stops, and says who took over.
func TestTheWriterThatWasTakenOverStopsAndNamesTheOther(t *testing.T) {
	a := newBench(t)
	b := newBenchOn(t, a.mem, "beta")
	wa, wb := a.worker(), b.worker()
	a.mustPush(wa, a.publish(1, map[string]string{"f": "a1"}), Periodic)
	b.inherit()
	b.mustPush(wb, b.publish(2, map[string]string{"f": "b2"}), Periodic)

	err := a.push(wa, a.publish(3, map[string]string{"f": "a3"}), Periodic)
	fenced, ok := errors.AsType[*FencedError](err)
	if !ok || fenced.By.Host != "beta" || fenced.By.Writer != b.writer || fenced.Epoch != 1 || fenced.By.Number != 2 {
		t.Fatalf("error %v", err)
	}
	s := wa.Status()
	if s.Condition != Fenced || !strings.Contains(s.Reason, `"beta"`) || s.TakenBy == nil || s.Failures != 0 {
		t.Errorf("status %+v", s)
	}
	calls := a.store.Calls()
	if err := a.push(wa, a.publish(4, map[string]string{"f": "a4"}), Periodic); !errors.As(err, &fenced) || a.store.Calls() != calls {
		t.Errorf("a fenced writer made %d calls, error %v", a.store.Calls()-calls, err)
	}
	if c := a.newest(); c.Writer != b.writer || a.content(c)["f"] != "b2" {
		t.Error("the newest commit is not that of the machine that took over")
	}
}

// CASES A43, A45: fifty alternating pushes, each an operator's decision, make one line and never mix two states.
func TestFiftyAlternatingTakeoversMakeOneLine(t *testing.T) {
	machines := []*bench{newBench(t)}
	machines = append(machines, newBenchOn(t, machines[0].mem, "beta"))
	workers := []*Worker{machines[0].worker(), machines[1].worker()}
	for i := range 50 {
		m, w := machines[i%2], workers[i%2]
		id := m.publish(uint64(i/2+1), map[string]string{"f": fmt.Sprint(m.host, i), "g": fmt.Sprint(i)})
		if i > 0 {
			err := m.push(w, id, Requested)
			_, fenced := errors.AsType[*FencedError](err)
			_, held := errors.AsType[*HeldError](err)
			if !fenced && !held {
				t.Fatalf("push %d without the operator's word: %v", i, err)
			}
			if err := w.Adopt(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		m.mustPush(w, id, Requested)
		if c := m.newest(); m.content(c)["f"] != fmt.Sprint(m.host, i) || m.content(c)["g"] != fmt.Sprint(i) {
			t.Fatalf("push %d: a mixed state", i)
		}
	}
	all := machines[0].commits()
	epoch := uint64(0)
	for n := uint64(1); n <= uint64(len(all)); n++ {
		if all[n] == nil || all[n].Epoch < epoch {
			t.Fatalf("commit %d: %+v after epoch %d", n, all[n], epoch)
		}
		epoch = all[n].Epoch
	}
}

// CASES A47: a writer that was stopped in the middle of a commit, while another one took over.
func TestAWriterThatSleptThroughATakeoverDoesNotReportSuccess(t *testing.T) {
	for _, row := range []struct {
		call string
		nth  int
	}{{"list strikes/epoch/", 1}, {"list strikes/commit/", 1}, {"put strikes/commit/00000000000000000003", 1}, {"list strikes/epoch/", 2}} {
		t.Run(fmt.Sprintf("%s, %d", row.call, row.nth), func(t *testing.T) {
			a := newBench(t)
			b := newBenchOn(t, a.mem, "beta")
			wa, wb := a.worker(), b.worker()
			first := a.publish(1, map[string]string{"f": "a1"})
			a.mustPush(wa, first, Periodic)
			seen := 0
			a.store.Before = func(_ ctxt, c callt) error {
				if !strings.HasPrefix(c.Op+" "+c.Key, row.call) {
					return nil
				}
				if seen++; seen == row.nth {
					b.inherit()
					b.mustPush(wb, b.publish(3, map[string]string{"f": "b2"}), Periodic)
				}
				return nil
			}
			err := a.push(wa, a.publish(2, map[string]string{"f": "a2"}), Periodic)
			if _, ok := errors.AsType[*FencedError](err); !ok || seen < row.nth {
				t.Fatalf("error %v", err)
			}
			if s := wa.Status(); s.Periodic != first || s.Committed.Checkpoint != first {
				t.Errorf("status %+v", s)
			}
			if a.content(a.newest())["f"] != "b2" {
				t.Error("the newest commit is not that of the machine that took over")
			}
		})
	}
}

// CASES A42, E12: a fresh start over existing commits runs, is held, claims nothing and loses nothing.
func TestAFreshStateOverExistingCommitsIsHeldAndClaimsNothing(t *testing.T) {
	a := newBench(t)
	a.mustPush(a.worker(), a.publish(9, map[string]string{"f": "a"}), Periodic)
	keys := len(a.mem.Keys())
	b := newBenchOn(t, a.mem, "beta")
	w := b.worker()
	id := b.publish(1, map[string]string{"f": "fresh"})
	err := b.push(w, id, Periodic)
	held, ok := errors.AsType[*HeldError](err)
	if !ok || held.Commit != 2 || held.Behind != 9 || held.Fork != 0 {
		t.Fatalf("error %v", err)
	}
	if n := len(a.mem.Keys()); n != keys {
		t.Errorf("a held target got %d new objects", n-keys)
	}
	if s := w.Status(); s.Condition != Held || s.Behind != 9 || s.Committed != nil || s.Jobs[0].State != JobHeld || s.Failures != 0 {
		t.Errorf("status %+v", s)
	}

	if err := w.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := w.Status(); s.Condition != Ready || len(a.mem.Keys()) != keys {
		t.Errorf("adopt wrote something, or left %s", s.Condition)
	}
	w = b.restart() // the operator's word survives a restart
	b.mustPush(w, id, Periodic)
	if c := b.newest(); c.Checkpoint.ID != id || len(b.commits()) != 4 {
		t.Errorf("newest commit %+v", c.Checkpoint)
	}
}

func TestAnAdoptionHoldsOnlyForWhatTheOperatorSaw(t *testing.T) {
	a := newBench(t)
	wa := a.worker()
	a.mustPush(wa, a.publish(1, map[string]string{"f": "a"}), Periodic)
	b := newBenchOn(t, a.mem, "beta")
	wb := b.worker()
	if err := wb.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.mustPush(wa, a.publish(2, map[string]string{"f": "a2"}), Periodic) // comes between
	err := b.push(wb, b.publish(1, map[string]string{"f": "b"}), Periodic)
	if held, ok := errors.AsType[*HeldError](err); !ok || held.Commit != 3 {
		t.Fatalf("error %v", err)
	}
	a.mustPush(wa, a.publish(3, map[string]string{"f": "a3"}), Periodic)
}

// A commit that comes between the look and the claim: the claim stands, and still nothing is written over a history that is not ours.
func TestACommitBetweenTheLookAndTheClaimHoldsTheTarget(t *testing.T) {
	a := newBench(t)
	wa := a.worker()
	a.mustPush(wa, a.publish(1, map[string]string{"f": "a1"}), Periodic)
	b := newBenchOn(t, a.mem, "beta")
	b.inherit()
	wb := b.worker()
	b.store.Before = func(_ ctxt, c callt) error {
		if c.Op == "put" && strings.Contains(c.Key, "epoch/00000000000000000002") {
			a.mustPush(wa, a.publish(2, map[string]string{"f": "a2"}), Periodic)
		}
		return nil
	}
	id := b.publish(2, map[string]string{"f": "b2"})
	err := b.push(wb, id, Periodic)
	if held, ok := errors.AsType[*HeldError](err); !ok || held.Commit != 3 || held.Behind != 1 {
		t.Fatalf("error %v", err)
	}
	if _, ok := errors.AsType[*FencedError](a.push(wa, a.publish(3, map[string]string{"f": "a3"}), Periodic)); !ok {
		t.Error("the claim was made, so the other must be fenced")
	}
	if err := wb.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.mustPush(wb, id, Periodic)
}

// CASES E9: the repository of another pipeline.
func TestARepositoryOfAnotherPipelineIsRefusedNamingBoth(t *testing.T) {
	a := newBench(t)
	wa := a.worker()
	a.mustPush(wa, a.publish(1, map[string]string{"f": "a"}), Periodic)
	b := newBenchOn(t, a.mem, "beta")
	other := uuid.Must(uuid.NewV7())
	w := b.worker(func(c *Config) { c.Pipeline, c.PipelineName = other, "other" })
	keys := len(a.mem.Keys())
	err := b.push(w, b.publish(1, map[string]string{"f": "b"}), Requested)
	owned, ok := errors.AsType[*OwnedError](err)
	if !ok || owned.Owner != pipelineID() || !strings.Contains(err.Error(), other.String()) || !strings.Contains(err.Error(), pipelineID().String()) {
		t.Fatalf("error %v", err)
	}
	if s := w.Status(); s.Condition != Refused || len(a.mem.Keys()) != keys {
		t.Errorf("condition %s, %d new objects", s.Condition, len(a.mem.Keys())-keys)
	}
	a.mustPush(wa, a.publish(2, map[string]string{"f": "a2"}), Periodic)
}

// CASES A48: a repository that a newer version made.
func TestARepositoryOfANewerFormatIsRefusedNamingItsVersion(t *testing.T) {
	b := newBench(t)
	b.mem.Plant(repository.FormatKey("strikes"), []byte(`{"format":2,"written_by":"cairn 9.1.0"}`+"\n"))
	w := b.worker()
	err := b.push(w, b.publish(1, map[string]string{"f": "1"}), Requested)
	var unsupported *repository.UnsupportedError
	if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "cairn 9.1.0") {
		t.Fatalf("error %v", err)
	}
	if n := len(b.mem.Keys()); n != 1 || w.Status().Condition != Refused {
		t.Errorf("%d objects, %s", n, w.Status().Condition)
	}
}

func TestATargetThatCannotCreateIfAbsentIsRefused(t *testing.T) {
	b := newBench(t)
	b.failOn("put", "FORMAT", 1, sdk.Unsupported, false)
	w := b.worker()
	err := b.push(w, b.publish(1, map[string]string{"f": "1"}), Requested)
	if _, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(err.Error(), "two writers") || w.Status().Condition != Refused {
		t.Fatalf("error %v, %s", err, w.Status().Condition)
	}
}

// CASES A3
func TestCommitsWithoutFormatAreDamageNotAnEmptyRepository(t *testing.T) {
	b := newBench(t)
	b.mustPush(b.worker(), b.publish(1, map[string]string{"f": "1"}), Periodic)
	if err := b.mem.Delete(t.Context(), []string{repository.FormatKey("strikes")}); err != nil {
		t.Fatal(err)
	}
	err := b.push(b.restart(), b.publish(2, map[string]string{"f": "2"}), Periodic)
	if !errors.Is(err, repository.ErrCorrupt) || !strings.Contains(err.Error(), "FORMAT.json") {
		t.Errorf("error %v", err)
	}
}

// CASES A44: many machines at the same moment on an empty prefix.
func TestOfManyFirstStartsAtOnceOneLineComes(t *testing.T) {
	first := newBench(t)
	machines := []*bench{first}
	for range 5 {
		machines = append(machines, newBenchOn(t, first.mem, "other"))
	}
	type result struct {
		id  uuid.UUID
		err error
	}
	results := make(chan result, len(machines))
	for _, m := range machines {
		id, w := m.publish(1, map[string]string{"f": m.root}), m.worker()
		go func() { results <- result{id, w.Push(t.Context(), Job{Checkpoint: id, Trigger: Periodic})} }()
	}
	told := map[uuid.UUID]bool{}
	for range machines {
		r := <-results
		_, fenced := errors.AsType[*FencedError](r.err)
		_, held := errors.AsType[*HeldError](r.err)
		switch {
		case r.err == nil:
			told[r.id] = true
		case !fenced && !held:
			t.Errorf("error %v", r.err)
		}
	}
	committed := map[uuid.UUID]bool{}
	for _, c := range first.commits() {
		committed[c.Checkpoint.ID] = true
	}
	for id := range told {
		if !committed[id] {
			t.Errorf("%s was told and is not committed", id)
		}
	}
}

// CASES A46: a clock that is wrong by two months changes nothing; order is by number.
func TestAWrongClockDoesNotChangeTheOrderOfPushes(t *testing.T) {
	b := newBench(t)
	at := func(months int) func(*Config) {
		return func(c *Config) { c.Now = func() time.Time { return time.Now().AddDate(0, months, 0) } }
	}
	b.mustPush(b.worker(at(2)), b.publish(1, map[string]string{"f": "1"}), Periodic)
	id := b.publish(2, map[string]string{"f": "2"})
	b.mustPush(b.restart(at(-2)), id, Periodic)
	if b.newest().Checkpoint.ID != id {
		t.Error("the newest commit is not the last one")
	}
}
