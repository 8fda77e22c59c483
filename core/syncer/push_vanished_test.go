package syncer

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// wipe takes everything below the prefix, as rm -rf or an emptied bucket does.
func (b *bench) wipe() {
	b.t.Helper()
	keys := slices.DeleteFunc(b.mem.Keys(), func(k string) bool { return !strings.HasPrefix(k, "strikes/") })
	if err := b.mem.Delete(b.t.Context(), keys); err != nil {
		b.t.Fatal(err)
	}
}

func TestAStoreThatIsWipedWhileTheHostRunsIsNeverToldAsSuccess(t *testing.T) {
	for name, row := range map[string]struct {
		step  uint64
		files map[string]string
		on    string // the call before which the store is wiped; "" = between two pushes
		left  bool   // the push had begun to write when it happened
	}{
		"between two pushes":                        {2, map[string]string{"f": "2"}, "", false},
		"between two pushes, the content unchanged": {2, map[string]string{"f": "1"}, "", false},
		"while packs are uploaded":                  {2, map[string]string{"f": "2"}, "put strikes/pack/", true},
		"before the commit":                         {2, map[string]string{"f": "2"}, "put strikes/commit/", true},
		"before a commit without packs":             {2, map[string]string{"f": "1"}, "put strikes/commit/", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			w := b.worker()
			first := b.publish(1, map[string]string{"f": "1"})
			b.mustPush(w, first, Periodic)
			id := b.publish(row.step, row.files)
			if row.on == "" {
				b.wipe()
			}
			wiped := false
			b.store.Before = func(_ ctxt, c callt) error {
				if row.on != "" && !wiped && strings.HasPrefix(c.Op+" "+c.Key, row.on) {
					wiped = true
					b.wipe()
				}
				return nil
			}
			err := b.push(w, id, Periodic)
			if vanished, ok := errors.AsType[*VanishedError](err); !ok || vanished.Epoch != 1 || !strings.Contains(err.Error(), "mounted") {
				t.Fatalf("error %v", err)
			}
			if s := w.Status(); s.Periodic != first || s.Committed != nil || s.Condition != Refused || s.Failures != 1 || s.Epoch != 0 {
				t.Errorf("status %+v", s)
			}
			if left := b.mem.Keys(); (len(left) > 0) != row.left {
				t.Errorf("in the wiped store lie %q", left)
			}
		})
	}
}

// CASES A42
func TestAfterTheStoreIsWipedTheTargetIsHeldUntilItIsBackOrAdopted(t *testing.T) {
	for name, restart := range map[string]bool{"in the same run": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			w := b.worker()
			first := b.publish(3, map[string]string{"f": "1"})
			b.mustPush(w, first, Periodic)
			b.wipe()
			id := b.publish(4, map[string]string{"f": "2"})
			if restart {
				w = b.restart()
			} else if err := b.push(w, id, Periodic); err == nil {
				t.Fatal("success in a wiped store")
			}

			err := b.push(w, id, Periodic)
			lost, ok := errors.AsType[*LostError](err)
			if !ok || lost.Was.Checkpoint != first || lost.Was.Number != 2 {
				t.Fatalf("error %v", err)
			}
			for _, say := range []string{"commit 2", first.String(), "step 3", "mounted", "wiped", "cairn pipeline adopt"} {
				if !strings.Contains(err.Error(), say) {
					t.Errorf("%v does not say %q", err, say)
				}
			}
			s := w.Status()
			if s.Condition != Held || s.Reason != err.Error() || s.Committed != nil || s.Jobs[len(s.Jobs)-1].State != JobHeld {
				t.Errorf("status %+v", s)
			}
			if keys := b.mem.Keys(); len(keys) != 0 {
				t.Errorf("a held target got %q", keys)
			}

			if err := w.Adopt(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s := w.Status(); s.Condition != Ready || s.Committed != nil {
				t.Errorf("after adopt: %+v", s)
			}
			w = b.restart() // the operator's word survives a restart
			b.mustPush(w, id, Periodic)
			if c := b.newest(); c.Checkpoint.ID != id || c.Number != 2 || b.content(c)["f"] != "2" {
				t.Errorf("the new repository ends with commit %d of %s", c.Number, c.Checkpoint.ID)
			}
			b.wipe()
			if err := b.push(b.restart(), b.publish(5, map[string]string{"f": "3"}), Periodic); !errors.As(err, &lost) {
				t.Errorf("one adoption served for two losses: %v", err)
			}
		})
	}
}

func TestAStoreThatIsMountedAgainIsContinued(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	b.mustPush(w, b.publish(1, map[string]string{"f": "1"}), Periodic)
	id := b.publish(2, map[string]string{"f": "2"})
	kept := map[string][]byte{}
	for _, key := range b.mem.Keys() {
		kept[key], _ = b.mem.Content(key)
	}
	mount := func() {
		for key, content := range kept {
			b.mem.Plant(key, content)
		}
	}
	b.wipe()
	if err := b.push(w, id, Periodic); err == nil {
		t.Fatal("success in a wiped store")
	}
	mount()
	b.mustPush(w, id, Periodic)
	if c := b.newest(); c.Checkpoint.ID != id || c.Epoch != 2 {
		t.Errorf("commit %d, epoch %d", c.Number, c.Epoch)
	}

	b.wipe()
	w = b.restart()
	next := b.publish(3, map[string]string{"f": "3"})
	if err := b.push(w, next, Periodic); err == nil {
		t.Fatal("success in a wiped store")
	}
	mount() // as it was then: an older backup of the store
	if err := w.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.mustPush(w, next, Periodic)
	if got := b.content(b.newest())["f"]; got != "3" {
		t.Errorf("restores to %q", got)
	}
}

// A store whose listings come up empty for a while holds all the same what it held. The epoch of the reign that ended over it is ours and closed: to
// take it for a claim whose answer was lost was to find commits behind it, to call the repository corrupt and never to push again.
func TestAfterListingsThatCameUpEmptyANewEpochIsClaimed(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	b.mustPush(w, b.publish(1, map[string]string{"f": "1"}), Periodic)
	hidden := map[string][]byte{}
	b.store.Before = func(ctx ctxt, c callt) error {
		if c.Op != "list" || c.Key != repository.EpochPrefix("strikes") {
			return nil
		}
		for _, key := range b.mem.Keys() {
			if strings.HasPrefix(key, c.Key) {
				hidden[key], _ = b.mem.Content(key)
				b.remove(key)
			}
		}
		return nil
	}
	b.store.After = func(_ ctxt, _ callt, err error) error {
		for key, content := range hidden {
			b.mem.Plant(key, content)
		}
		clear(hidden)
		return err
	}
	for step := range uint64(3) {
		err := b.push(w, b.publish(2+step, map[string]string{"f": "2"}), Periodic)
		if _, vanished := errors.AsType[*VanishedError](err); !vanished {
			t.Fatalf("while they come up empty: %v", err)
		}
	}
	b.store.Before, b.store.After = nil, nil
	id := b.publish(5, map[string]string{"f": "5"})
	b.mustPush(w, id, Periodic)
	if c := b.newest(); c.Checkpoint.ID != id || c.Epoch < 2 {
		t.Errorf("the newest is commit %d of epoch %d", c.Number, c.Epoch)
	}
	checkLine(t, b, "after listings that came up empty")
}

func TestAnEpochOfOurNumberByAnotherWriterIsNotOurs(t *testing.T) {
	a := newBench(t)
	wa := a.worker()
	a.mustPush(wa, a.publish(1, map[string]string{"f": "a1"}), Periodic)
	a.wipe()
	b := newBenchOn(t, a.mem, "beta")
	b.mustPush(b.worker(), b.publish(1, map[string]string{"f": "b1"}), Periodic)
	keys := len(a.mem.Keys())

	err := a.push(wa, a.publish(2, map[string]string{"f": "a2"}), Periodic)
	vanished, ok := errors.AsType[*VanishedError](err)
	if !ok || vanished.By == nil || vanished.By.Host != "beta" || !strings.Contains(err.Error(), "beta") {
		t.Fatalf("error %v", err)
	}
	if n := len(a.mem.Keys()); n != keys {
		t.Errorf("%d objects were written into the repository of another host", n-keys)
	}
	err = a.push(wa, a.publish(3, map[string]string{"f": "a3"}), Periodic)
	if _, ok := errors.AsType[*HeldError](err); !ok {
		t.Errorf("the next job, which looks anew: %v", err)
	}
}

func TestAnEpochObjectThatWasCopiedIsStillOurs(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	b.mustPush(w, b.publish(1, map[string]string{"f": "1"}), Periodic)
	key := repository.EpochKey("strikes", 1)
	content, _ := b.mem.Content(key)
	b.mem.Plant(key, content) // same bytes, another time of modification
	b.mustPush(w, b.publish(2, map[string]string{"f": "2"}), Periodic)
}

func TestAnEpochThatCannotBeListedIsUnknownNeverVanished(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	b.mustPush(w, b.publish(1, map[string]string{"f": "1"}), Periodic)
	b.failOn("list", "epoch/", 1, sdk.PermissionDenied, false)
	err := b.push(w, b.publish(2, map[string]string{"f": "2"}), Periodic)
	if _, vanished := errors.AsType[*VanishedError](err); vanished || !errors.Is(err, sdk.PermissionDenied) {
		t.Errorf("error %v", err)
	}
}

// A person who asks is not answered from memory: the store may have been wiped since.
func TestARequestedPushOfACommittedCheckpointLooksOnce(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	id := b.publish(1, map[string]string{"f": "1"})
	b.mustPush(w, id, Periodic)
	var calls []string
	b.store.Before = record(&calls)
	b.mustPush(w, id, Requested)
	if want := []string{"get strikes/FORMAT.json", "list strikes/epoch/", "get " + repository.CommitKey("strikes", 2)}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
	b.wipe()
	if err := b.push(w, id, Requested); err == nil {
		t.Error("success in a wiped store")
	}

	b = newBench(t)
	id = b.publish(1, map[string]string{"f": "1"})
	b.mustPush(b.worker(), id, Periodic)
	w = b.restart()
	b.mustPush(w, id, Requested) // known by looking; nothing was claimed
	b.wipe()
	if err := b.push(w, id, Requested); err == nil || w.Status().Success != id || w.Status().Failure.Checkpoint != id {
		t.Errorf("success in a wiped store: %v", err)
	}
}

func TestACheckpointThatWasNeverCommittedThereNeedsNoAdoption(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	b.failOn("put", "commit/00000000000000000002", 1, sdk.NoSpace, false)
	id := b.publish(1, map[string]string{"f": "1"})
	if err := b.push(w, id, Periodic); err == nil {
		t.Fatal("no error")
	}
	b.heal()
	b.wipe()
	b.mustPush(b.restart(), id, Periodic)
	if w.Status().Success != uuid.Nil {
		t.Error("a requested success out of nothing")
	}
}
