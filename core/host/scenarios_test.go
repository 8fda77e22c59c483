package host

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// The scenarios of the ancestor (CASES E), on our own API and the file plugin as a process. Each runs a host, loses its storage or keeps
// it, and demands of another host the same multiset of rows.

// CASES E1
func TestARestartFromTheLatestCheckpointHasTheSameRows(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	first.insert(0, 19)
	first.insert(100, 101)
	before := first.rows()
	checkpoint := first.checkpoint()
	equal(t, "pushed", first.push(), checkpoint)
	first.kill()

	second := w.start(conf{data: "elsewhere", from: "latest", strict: true}).up()
	equal(t, "rows", second.rows(), before)
	contains(t, second.view("p").StartedFrom, checkpoint, `target "t"`)
}

// CASES E2
func TestACheckpointNamedByItsUUIDIsHonouredOnce(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	first.insert(0, 9)
	before := first.rows()
	first.checkpoint()
	named := first.push()
	first.insert(9, 12)
	first.checkpoint()
	first.push()
	first.kill()

	again := conf{data: "elsewhere", from: named, strict: true}
	second := w.start(again).up()
	equal(t, "rows", second.rows(), before)
	second.insert(50, 53)
	grown := second.rows()
	second.stop()

	third := w.start(again).up()
	equal(t, "rows after the uuid was honoured", third.rows(), grown)
	third.stop()
	// With the live state lost it would be tempting to go back to the uuid; the local checkpoint is newer.
	mustRemove(t, w.path("elsewhere", "p", "state"))
	fourth := w.start(again).up()
	equal(t, "rows from the local checkpoint", fourth.rows(), grown)
}

// CASES E3
func TestARestartOnKeptStorageHasTheSameRows(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	first.insert(0, 12)
	first.checkpoint()
	first.push()
	before := first.rows()
	first.stop()

	second := w.start(conf{from: "latest", strict: true}).up()
	equal(t, "rows", second.rows(), before)
	contains(t, second.view("p").StartedFrom, "the live state is kept")
}

// CASES E4
func TestAnAutomaticCheckpointThatCoversTheRowsCanBePushed(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{checkpoint: "100ms"}).up()
	step := first.insert(0, 15).Step
	before := first.rows()
	first.until("an automatic checkpoint covers the rows", func() bool {
		c := first.view("p").Checkpoint
		return c != nil && c.Step >= step
	})
	first.push()
	if got := first.view("p").Targets[0].Committed; got == nil || got.Step < step {
		t.Errorf("committed %+v, want at least step %d", got, step)
	}
	first.kill()

	second := w.start(conf{data: "elsewhere", from: "latest", strict: true}).up()
	equal(t, "rows", second.rows(), before)
}

// CASES E5
func TestAnAutomaticPushCoversTheRows(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{checkpoint: "100ms", push: "200ms"}).up()
	step := first.insert(0, 15).Step
	before := first.rows()
	first.until("a periodic push covers the rows", func() bool {
		c := first.view("p").Targets[0].Committed
		s := first.syncs()
		return c != nil && c.Step >= step && s.Periodic != nil && *s.Periodic == c.UUID && s.Success == nil
	})
	first.kill()

	second := w.start(conf{data: "elsewhere", from: "latest", strict: true}).up()
	equal(t, "rows", second.rows(), before)
}

// CASES E6
func TestAnAutomaticPushTakesARequestedCheckpoint(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{push: "200ms"}).up()
	first.insert(0, 11)
	before := first.rows()
	checkpoint := first.checkpoint()
	first.until("a periodic push has the checkpoint of the rows", func() bool {
		s := first.syncs()
		return s.Periodic != nil && s.Periodic.String() == checkpoint
	})
	first.kill()

	second := w.start(conf{data: "elsewhere", from: "latest", strict: true}).up()
	equal(t, "rows", second.rows(), before)
}

// CASES A1, E7, E8: what cannot be read is not absent, strict or not.
func TestATargetThatRefusesToBeReadStopsTheStart(t *testing.T) {
	for name, strict := range map[string]bool{"strict": true, "not strict": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			seedTarget(w)
			truncate(t, w.path("target", "p", "FORMAT.json"))
			h := w.start(conf{data: "elsewhere", from: "latest", strict: strict})
			contains(t, h.failed(), `target "t" cannot be read`, "FORMAT.json", "exclude it")
			if err := h.host.Ready(); err == nil {
				t.Error("the host says it is ready")
			}
			mustBeAbsent(t, w.path("elsewhere", "p", "state"))
			mustBeAbsent(t, w.path("elsewhere", "p", "pipeline.json"))
		})
	}
}

// The way on from there is the operator's, who knows what the other targets hold.
func TestATargetThatIsExcludedIsNotAsked(t *testing.T) {
	w := newWorld(t)
	seedTarget(w)
	truncate(t, w.path("target", "p", "FORMAT.json"))
	exclude := func(name string) func(*Options) {
		return func(o *Options) { o.Exclude = []string{name} }
	}
	h := w.start(conf{data: "elsewhere", from: "latest"}, exclude("t")).up()
	equal(t, "rows", h.rows(), "")
	h.stop()
	opts := quiet()
	opts.Exclude = []string{"typo"}
	if _, err := New(w.load(w.hcl(conf{})), opts); !errors.Is(err, ErrUnknown) {
		t.Errorf("a typo: %v", err)
	}
}

// CASES E11
func TestAStrictStartFromACheckpointThatIsNotThereNamesIt(t *testing.T) {
	w := newWorld(t)
	seedTarget(w)
	absent := uuid.Must(uuid.NewV7()).String()
	h := w.start(conf{data: "elsewhere", from: absent, strict: true})
	contains(t, h.failed(), absent, "none of the targets", "fail_if_no_checkpoint")
}

// CASES A42, E12
func TestAFreshStartOverAnotherHistoryIsHeldUntilItIsAdopted(t *testing.T) {
	w := newWorld(t)
	steps, rowsThere := seedTarget(w)
	absent := uuid.Must(uuid.NewV7()).String()
	h := w.start(conf{data: "elsewhere", from: absent}).up()
	equal(t, "rows", h.rows(), "")
	h.insert(70, 74)
	ours := h.rows()
	h.checkpoint()
	if _, err := h.SyncCheckpoint(t.Context(), "p", true); err == nil {
		t.Fatal("the push went over another history")
	}
	target := h.view("p").Targets[0]
	equal(t, "state", target.State, "held")
	contains(t, target.Reason, "adopt", steps+" of its steps")
	_, err := h.SyncCheckpoint(t.Context(), "p", true)
	if err == nil {
		t.Fatal("a second request went over another history")
	}
	contains(t, err.Error(), target.Reason) // with both ways on
	safe, overruling := strings.Index(err.Error(), "to continue with theirs, stop the host and run"), strings.Index(err.Error(), "cairn pipeline adopt")
	equal(t, "the one that overrules nothing is named first", safe >= 0 && safe < overruling, true)

	must(t, h.Adopt(t.Context(), "p", "t"))
	h.push()
	equal(t, "state after adopt", h.view("p").Targets[0].State, "ready")
	remote, err := h.RemoteCheckpoints(t.Context(), "p", "")
	must(t, err)
	equal(t, "checkpoints there", len(remote), 2)
	h.kill()

	// The adopted state is the newest, and what lay there before is there still.
	next := w.start(conf{data: "third", from: "latest", strict: true}).up()
	equal(t, "rows", next.rows(), ours)
	next.kill()
	old := w.start(conf{data: "fourth", from: remote[0].UUID.String(), strict: true}).up()
	if got := old.rows(); got != rowsThere && got != ours {
		t.Errorf("rows of %s: %q", remote[0].UUID, got)
	}
}

// CASES A2, E15
func TestAFailingTargetLeavesPeriodicNull(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{checkpoint: "100ms", push: "100ms"})
	damagedFormat(w)
	h.up().insert(0, 9)
	h.until("two periodic pushes have failed", func() bool { return h.view("p").Targets[0].Failures >= 2 })
	s := h.syncs()
	if s.Periodic != nil || s.Success != nil || s.PeriodicFailure == nil {
		t.Errorf("got %+v", s)
	}
	equal(t, "state", h.view("p").Targets[0].State, "refused")
	if h.view("p").Targets[0].Committed != nil {
		t.Error("status names a commit")
	}
}

// CASES A45, E18
func TestLocalStateGoesBeforeTheTargets(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	first.insert(0, 10)
	first.checkpoint()
	first.push()
	first.insert(10, 15)
	local := first.checkpoint()
	both := first.rows()
	first.kill()

	second := w.start(conf{from: "latest", strict: true})
	second.begin()
	equal(t, "rows", second.up().rows(), both)
	second.kill()

	// The same without the live state: the local checkpoint is newer than what was pushed.
	mustRemove(t, w.path("data", "p", "state"))
	third := w.start(conf{from: "latest", strict: true})
	third.begin()
	equal(t, "rows", third.up().rows(), both)
	contains(t, third.view("p").StartedFrom, local)
}
