package syncer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

func advisory(c *Config) { c.Fencing = FencingAdvisory }

// lying makes the bench's store ignore conditions from now on.
func (b *bench) lying() {
	b.store.Target = odd{Mem: b.mem, put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
		req.IfAbsent = false
		return b.mem.Put(ctx, req)
	}}
}

// refusing makes it answer that it knows no conditions.
func (b *bench) refusing() {
	b.store.Target = odd{Mem: b.mem, put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
		if req.IfAbsent {
			return sdk.PutResult{}, &sdk.Error{Code: sdk.Unsupported, Op: "put", Key: req.Key}
		}
		return b.mem.Put(ctx, req)
	}}
}

func TestAStoreWithoutCreateIfAbsentIsRefusedAndNothingIsClaimed(t *testing.T) {
	for name, plant := range map[string]func(*bench){"it lies": (*bench).lying, "it says so": (*bench).refusing} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			plant(b)
			w := b.worker()
			id := b.publish(1, map[string]string{"f": "1"})
			err := b.push(w, id, Periodic)
			refused, ok := errors.AsType[*RefusedError](err)
			if !ok || !errors.Is(err, sdk.Unsupported) || !strings.Contains(refused.Reason, "two writers") || !strings.Contains(err.Error(), `fencing = "advisory"`) {
				t.Fatalf("error %v", err)
			}
			if keys := b.mem.Keys(); len(keys) != 0 {
				t.Errorf("a refused store got %q", keys)
			}
			s := w.Status()
			if s.Condition != Refused || s.Reason != err.Error() || s.Epoch != 0 || s.Rights == nil || s.Rights.Conditional.State != RightFailed || s.Rights.Write.State != RightOK {
				t.Errorf("status %+v, rights %+v", s, s.Rights)
			}
			if s := b.restart().Status(); s.Rights == nil || s.Rights.Conditional.State != RightFailed || s.Rights.At.IsZero() {
				t.Errorf("after a restart the rights are %+v", s.Rights)
			}

			b.store.Target = b.mem // somebody has put another store in its place: every job looks again
			b.mustPush(w, id, Periodic)
			if s := w.Status(); s.Condition != Ready || s.Rights.Conditional.State != RightOK {
				t.Errorf("status %+v", s)
			}
		})
	}
}

func TestUnderAdvisoryFencingAStoreWithoutCreateIfAbsentIsPushedTo(t *testing.T) {
	for name, plant := range map[string]func(*bench){"it lies": (*bench).lying, "it says so": (*bench).refusing, "it keeps it": func(*bench) {}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			plant(b)
			w := b.worker(advisory)
			files := map[string]string{"f": incompressible(20, 3<<20), "g": "1"}
			b.mustPush(w, b.publish(1, files), Periodic)
			files["g"] = "2"
			b.mustPush(w, b.publish(2, files), Periodic)
			files["g"] = "3"
			id := b.publish(3, files)
			w = b.restart(advisory)
			b.mustPush(w, id, Requested)
			if got := b.content(b.newest()); got["g"] != "3" || got["f"] != files["f"] || b.newest().Checkpoint.ID != id {
				t.Error("the newest commit does not hold the checkpoint")
			}
			s := w.Status()
			if s.Fencing != FencingAdvisory || s.Condition != Ready || !slices.Contains(Warnings(s.Fencing, s.Rights), AdvisoryWarning) {
				t.Errorf("status %+v", s)
			}
		})
	}
}

// CASES A43, where nothing but looking keeps two hosts apart.
func TestUnderAdvisoryFencingAWriterThatIsTakenOverFromBetweenItsPushesIsFenced(t *testing.T) {
	a := newBench(t)
	b := newBenchOn(t, a.mem, "beta")
	a.lying()
	b.lying()
	wa, wb := a.worker(advisory), b.worker(advisory)
	a.mustPush(wa, a.publish(1, map[string]string{"f": "a1"}), Periodic)
	b.inherit()
	b.mustPush(wb, b.publish(2, map[string]string{"f": "b2"}), Periodic)
	err := a.push(wa, a.publish(3, map[string]string{"f": "a3"}), Periodic)
	if fenced, ok := errors.AsType[*FencedError](err); !ok || fenced.By.Host != "beta" {
		t.Fatalf("error %v", err)
	}
	if a.content(a.newest())["f"] != "b2" {
		t.Error("the newest commit is not that of the machine that took over")
	}
}

func TestUnderAdvisoryFencingAKeyThatIsTakenBetweenTheLookAndTheWriteIsFoundOutByReadingBack(t *testing.T) {
	b := newBench(t)
	b.lying()
	other := repository.Epoch{Number: 1, Writer: repository.Writer{ID: uuid.New(), Incarnation: uuid.New()}, Host: "beta", Started: startOfTime(), WrittenBy: "cairn test"}
	text, err := repository.EncodeEpoch(other)
	if err != nil {
		t.Fatal(err)
	}
	b.store.After = func(_ ctxt, c callt, err error) error {
		if c.Op == "put" && strings.Contains(c.Key, "epoch/00000000000000000001") {
			b.mem.Plant(c.Key, text) // theirs lands on top of ours
		}
		return err
	}
	w := b.worker(advisory)
	b.mustPush(w, b.publish(1, map[string]string{"f": "1"}), Periodic)
	if s := w.Status(); s.Epoch != 2 {
		t.Errorf("epoch %d: the first is another writer's", s.Epoch)
	}
}

func TestUnderAdvisoryFencingAnOverwrittenCommitIsFoundOutByTheNextPush(t *testing.T) {
	b := newBench(t)
	b.lying()
	w := b.worker(advisory)
	first := b.publish(1, map[string]string{"f": "1"})
	b.mustPush(w, first, Periodic)
	seal, _ := b.mem.Content(repository.CommitKey("strikes", 1))
	b.mem.Plant(repository.CommitKey("strikes", 2), seal) // whatever another writer put there
	err := b.push(w, b.publish(2, map[string]string{"f": "2"}), Periodic)
	if vanished, ok := errors.AsType[*VanishedError](err); !ok || vanished.Commit != 2 || !strings.Contains(err.Error(), "one host alone") {
		t.Fatalf("error %v", err)
	}
	if s := w.Status(); s.Condition != Refused || s.Committed != nil {
		t.Errorf("status %+v", s)
	}
}

// Without a condition the request that lands last wins: it must not be an older one that its caller gave up.
func TestUnderAdvisoryFencingANumberIsAimedAtWithTheSameBytesUntilTheyAreThere(t *testing.T) {
	b := newBench(t)
	b.lying()
	w := b.worker(advisory)
	b.mustPush(w, b.publish(1, map[string]string{"f": "1"}), Periodic)
	key := repository.CommitKey("strikes", 3)
	b.failOn("put", key, 1, sdk.Unavailable, false) // given up, and under way still
	older := b.publish(2, map[string]string{"f": "2"})
	if err := b.push(w, older, Periodic); !errors.Is(err, ErrUnresolved) {
		t.Fatalf("error %v", err)
	}
	b.heal()
	newer := b.publish(3, map[string]string{"f": "3"})
	b.mustPush(w, newer, Periodic)
	all := b.commits()
	if len(all) != 4 || all[3].Checkpoint.ID != older || all[4].Checkpoint.ID != newer {
		t.Errorf("%d commits: a late request for commit 3 would put another content there", len(all))
	}
}

func TestAMissingRightIsNamedAndNothingIsWrittenToFindOut(t *testing.T) {
	for op, say := range map[string]string{"list": "the right to list is missing", "get": "the right to read is missing"} {
		t.Run(op, func(t *testing.T) {
			b := newBench(t)
			wrote := false
			b.store.Before = func(_ ctxt, c callt) error {
				wrote = wrote || c.Op == "put"
				if c.Op == op {
					return &sdk.Error{Code: sdk.PermissionDenied, Hint: "grant it to the user cairn"}
				}
				return nil
			}
			w := b.worker()
			err := b.push(w, b.publish(1, map[string]string{"f": "1"}), Periodic)
			if _, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(err.Error(), say) || !errors.Is(err, sdk.PermissionDenied) || wrote {
				t.Fatalf("wrote: %t, error %v", wrote, err)
			}
			if s := w.Status(); s.Condition != Refused || !strings.Contains(s.PeriodicFailure.Error, "grant it to the user cairn") {
				t.Errorf("status %+v", s)
			}
		})
	}
}

func TestATargetThatCannotBeWrittenIsNotPushedTo(t *testing.T) {
	b := newBench(t)
	b.store.Before = func(_ ctxt, c callt) error {
		if c.Op == "put" {
			return &sdk.Error{Code: sdk.PermissionDenied}
		}
		return nil
	}
	w := b.worker()
	err := b.push(w, b.publish(1, map[string]string{"f": "1"}), Periodic)
	if _, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(err.Error(), "restores work") {
		t.Fatalf("error %v", err)
	}
}

func TestATargetWithoutTheRightToDeleteIsPushedToAndSaysSo(t *testing.T) {
	b := newBench(t)
	b.store.Before = func(_ ctxt, c callt) error {
		if c.Op == "delete" {
			return &sdk.Error{Code: sdk.PermissionDenied}
		}
		return nil
	}
	w := b.worker()
	b.mustPush(w, b.publish(1, map[string]string{"f": "1"}), Periodic)
	s := w.Status()
	if s.Condition != Ready || s.Rights.Delete.State != RightDenied {
		t.Errorf("status %+v", s)
	}
	if got := Warnings(s.Fencing, s.Rights); len(got) != 1 || !strings.Contains(got[0], "the right to delete is denied") {
		t.Errorf("warnings %q", got)
	}
}

// A store that is down is no store that lies: the job fails as any other, and the next one succeeds.
func TestAStoreThatIsDownDuringTheProbeFailsTheJobAndIsNotRefused(t *testing.T) {
	for _, op := range []string{"get", "put", "list", "delete"} {
		t.Run(op, func(t *testing.T) {
			b := newBench(t)
			b.store.Before = func(_ ctxt, c callt) error {
				if c.Op == op && strings.HasPrefix(c.Key, repository.ProbePrefix("strikes")) {
					return &sdk.Error{Code: sdk.Unavailable}
				}
				return nil
			}
			w := b.worker()
			id := b.publish(1, map[string]string{"f": "1"})
			err := b.push(w, id, Periodic)
			s := w.Status()
			if op == "delete" { // what a push needs is known by then
				if err != nil || s.Rights.Delete.State != RightUnknown {
					t.Errorf("error %v, rights %+v", err, s.Rights)
				}
				return
			}
			if !errors.Is(err, sdk.Unavailable) || s.Condition != Ready || s.Jobs[0].State != JobFailed || s.Failures != 1 || s.Epoch != 0 {
				t.Fatalf("error %v, status %+v", err, s)
			}
			b.heal()
			b.mustPush(w, id, Periodic)
			for _, key := range b.mem.Keys() {
				if strings.HasPrefix(key, repository.ProbePrefix("strikes")) {
					t.Errorf("%s is left", key)
				}
			}
		})
	}
}

func TestTheStoreIsProbedOnceAnIncarnationAndBeforeTheFirstClaim(t *testing.T) {
	b := newBench(t)
	var calls []string
	b.store.Before = record(&calls)
	w := b.worker()
	probes := func() int {
		return len(slices.DeleteFunc(slices.Clone(calls), func(c string) bool { return !strings.HasPrefix(c, "delete "+repository.ProbePrefix("strikes")) }))
	}
	b.mustPush(w, b.publish(1, map[string]string{"f": "1"}), Periodic)
	probe := slices.IndexFunc(calls, func(c string) bool { return strings.HasPrefix(c, "delete ") })
	claim := slices.IndexFunc(calls, func(c string) bool { return strings.HasPrefix(c, "put strikes/FORMAT") })
	if probes() != 1 || probe < 0 || claim < probe {
		t.Errorf("%d probes, at %d, the claim at %d", probes(), probe, claim)
	}
	b.mustPush(w, b.publish(2, map[string]string{"f": "2"}), Periodic)
	if probes() != 1 {
		t.Errorf("%d probes after the second push", probes())
	}
	b.mustPush(b.restart(), b.publish(3, map[string]string{"f": "3"}), Periodic)
	if probes() != 2 {
		t.Errorf("%d probes after a restart", probes())
	}
}
