package syncer

import (
	"slices"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// A host whose disk was put away is held: what was committed there is gone. Then somebody does something about it.
func TestAHeldTargetThatIsAskedAnewSaysWhatIsSoNow(t *testing.T) {
	for name, row := range map[string]struct {
		since func(b *bench, back func())
		want  Condition
		says  string
	}{
		"the disk is back":   {func(_ *bench, back func()) { back() }, Ready, ""},
		"nothing was done":   {func(*bench, func()) {}, Held, "nothing is there now"},
		"it does not answer": {func(b *bench, _ func()) { b.failOn("list", "", 1, sdk.Unavailable, false) }, Held, "asked anew and did not answer"},
		"another host has taken it over": {func(b *bench, back func()) {
			back()
			if _, err := newBenchOn(b.t, b.mem, "beta").worker().Claim(b.t.Context()); err != nil {
				b.t.Fatal(err)
			}
		}, Fenced, `by host "beta"`},
		"another host has gone on": {func(b *bench, back func()) {
			back()
			other := newBenchOn(b.t, b.mem, "beta")
			other.inherit()
			other.mustPush(other.worker(), other.publish(2, map[string]string{"f": "b"}), Periodic)
		}, Held, "is not on the history of our state"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.mustPush(b.worker(), b.publish(1, map[string]string{"f": "1"}), Periodic)
			w := b.restart()
			back := b.rewind()
			b.wipe()
			if err := w.Look(t.Context(), b.stands(1)); err == nil || w.Status().Condition != Held {
				t.Fatalf("%v, %s", err, w.Status().Condition)
			}
			row.since(b, back)
			keys := b.mem.Keys()
			err := w.Reconsider(t.Context(), b.stands(1))
			b.heal()
			s := w.Status()
			if s.Condition != row.want || (err == nil) != (row.want == Ready) || !strings.Contains(s.Reason, row.says) || row.says == "" && s.Reason != "" {
				t.Fatalf("%s, reason %q, %v", s.Condition, s.Reason, err)
			}
			if (s.Committed != nil) != (row.want == Ready) {
				t.Errorf("committed %+v", s.Committed)
			}
			if !slices.Equal(b.mem.Keys(), keys) {
				t.Errorf("it has written: %q", b.mem.Keys())
			}
			if err := b.push(w, b.publish(2, map[string]string{"f": "2"}), Requested); (err == nil) != (row.want == Ready) {
				t.Errorf("the push after it: %v", err)
			}
		})
	}
}

// A host that was activated without its target claims what lies in the target's place, and is held; then the right disk is mounted.
func TestAHeldSessionThatHadClaimedBeginsAnewOnTheRightDisk(t *testing.T) {
	b := newBench(t)
	b.mustPush(b.worker(), b.publish(1, map[string]string{"f": "1"}), Periodic)
	w := b.restart()
	back := b.rewind()
	other := newBenchOn(t, b.mem, "beta")
	other.inherit()
	other.mustPush(other.worker(), other.publish(2, map[string]string{"f": "b"}), Periodic)
	if _, err := w.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	mine := b.publish(3, map[string]string{"f": "3"})
	if err := b.push(w, mine, Periodic); err == nil || w.Status().Condition != Held {
		t.Fatalf("%v, %s", err, w.Status().Condition)
	}
	if err := w.Reconsider(t.Context(), b.stands(3)); err == nil {
		t.Error("what is held by its own claimed line was released")
	}
	back()
	if err := w.Reconsider(t.Context(), b.stands(3)); err != nil {
		t.Fatal(err)
	}
	b.mustPush(w, mine, Requested)
	if c := b.newest(); c.Kind != repository.KindCheckpoint || c.Checkpoint.ID != mine {
		t.Errorf("newest %+v", c)
	}
}

func TestATargetThatIsNotHeldIsNotAskedAnew(t *testing.T) {
	b := newBench(t)
	w := b.worker()
	calls := b.store.Calls()
	if err := w.Reconsider(t.Context(), b.stands(1)); err != nil || b.store.Calls() != calls {
		t.Errorf("%v, %d calls", err, b.store.Calls()-calls)
	}
}

// A start whose target is down knows nothing of it: calling it ready would be a lie.
func TestATargetThatDoesNotAnswerIsUnavailableUntilItDoes(t *testing.T) {
	b := newBench(t)
	b.mustPush(b.worker(), b.publish(1, map[string]string{"f": "1"}), Periodic)
	for name, row := range map[string]struct{ fails, heals func(w *Worker) error }{
		"a look":                    {func(w *Worker) error { return w.Look(t.Context(), b.stands(1)) }, func(w *Worker) error { return w.Look(t.Context(), b.stands(1)) }},
		"a look, a push heals it":   {func(w *Worker) error { return w.Look(t.Context(), b.stands(1)) }, func(w *Worker) error { return b.push(w, b.publish(2, map[string]string{"f": "2"}), Periodic) }},
		"a claim":                   {func(w *Worker) error { _, err := w.Claim(t.Context()); return err }, func(w *Worker) error { _, err := w.Claim(t.Context()); return err }},
		"a claim, adoption ends it": {func(w *Worker) error { _, err := w.Claim(t.Context()); return err }, func(w *Worker) error { return w.Adopt(t.Context()) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := b.restart()
			b.failOn("list", "", 1, sdk.Unavailable, false)
			if err := row.fails(w); err == nil {
				t.Fatal("it was answered")
			}
			if s := w.Status(); s.Condition != Unavailable || !strings.Contains(s.Reason, "store unavailable") {
				t.Errorf("%s, reason %q", s.Condition, s.Reason)
			}
			b.heal()
			if err := row.heals(w); err != nil {
				t.Fatal(err)
			}
			if s := w.Status(); s.Condition != Ready || s.Reason != "" {
				t.Errorf("%s, reason %q", s.Condition, s.Reason)
			}
		})
	}
}
