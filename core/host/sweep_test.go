package host

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/sdk/client"
)

const keepTwo = "sync \"t\" {\n push_interval = \"100ms\"\n retention {\n  min_count = 2\n }\n}\n"

// remote are the commits that readers see, by number.
func (r *liveHost) remote() []uint64 {
	r.t.Helper()
	all, err := r.RemoteCheckpoints(r.t.Context(), "p", "")
	must(r.t, err)
	var numbers []uint64
	for _, c := range all {
		numbers = append(numbers, c.Number)
	}
	return numbers
}

// CASES A24
func TestAfterEachPushTheTargetKeepsWhatItsRetentionSays(t *testing.T) {
	for name, c := range map[string]conf{"pushed": {sync: keepTwo}, "committed": {object: true, retain: 2}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := w.start(c).up()
			for i := range 5 {
				h.insert(i*10, i*10+10)
				id := h.checkpoint()
				h.until("the push", func() bool {
					committed := h.view("p").Targets[0].Committed
					return committed != nil && committed.UUID.String() == id
				})
			}
			h.until("retention", func() bool {
				m := h.view("p").Targets[0].Maintenance
				return m != nil && m.Kept == 2 && len(h.remote()) == 2 && m.Orphans == 0 // a run beside the last push has seen that one's pack
			})
			m := h.view("p").Targets[0].Maintenance
			if m.Error != "" || m.SweptAt == nil || m.Packs == 0 {
				t.Errorf("maintenance %+v", m)
			}
			equal(t, "shown policy", h.view("p").Storage.Sync[0].Retention.MinCount, 2)
			want := h.rows()
			h.stop()
			equal(t, "restored", w.start(conf{data: "elsewhere", object: c.object, from: "latest", strict: true}).up().rows(), want)
		})
	}
}

func TestWithoutARetentionBlockNothingGoesUnlessASweepIsAskedFor(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{}).up()
	for i := range 4 {
		h.insert(i*10, i*10+10)
		h.checkpoint()
		h.push()
	}
	equal(t, "commits", len(h.remote()), 4)
	if m := h.view("p").Targets[0].Maintenance; m != nil || h.view("p").Storage.Sync[0].Retention != nil {
		t.Errorf("maintenance %+v", m)
	}
	done, err := h.Sweep(t.Context(), "p", client.SweepOptions{})
	must(t, err)
	if done.Policy != nil || done.Packs == nil || done.Packs.Swept != 0 || len(done.Commits) != 0 {
		t.Errorf("sweep %+v, packs %+v", done, done.Packs)
	}
	equal(t, "commits", len(h.remote()), 4)
}

func TestAHostThatHasNotPushedSweepsNothingButCanTellWhatWouldGo(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	for i := range 3 {
		first.insert(i*10, i*10+10)
		first.checkpoint()
		first.push()
	}
	first.stop()

	h := w.start(conf{data: "elsewhere", from: "latest", sync: strings.Replace(keepTwo, "push_interval", "pull_interval", 1)}).up()
	if _, err := h.Sweep(t.Context(), "p", client.SweepOptions{}); code(err) != client.CodeNoEpoch {
		t.Errorf("a sweep before a push: %v", err)
	}
	if _, err := h.Pin(t.Context(), "p", "audit", client.PinOptions{Commit: 1}); code(err) != client.CodeNoEpoch {
		t.Errorf("a pin before a push: %v", err)
	}
	plan, err := h.Sweep(t.Context(), "p", client.SweepOptions{DryRun: true})
	must(t, err)
	equal(t, "would be retired", plan.Retired, 1)
	fates := map[string]int{}
	for _, c := range plan.Commits {
		fates[c.Fate]++
		if c.Why == "" {
			t.Errorf("no reason for %+v", c)
		}
	}
	if fates["kept"] < 2 || fates["gone"] < 1 || plan.Deleted != 0 || plan.Packs.Swept != 0 {
		t.Errorf("plan %+v", plan)
	}
	equal(t, "commits", len(h.remote()), 3)
}

// CASES A37
func TestARestartedHostPinsAndSweepsWhatTheRunBeforeItHasPushed(t *testing.T) {
	for name, c := range map[string]conf{"pushed": {sync: strings.Replace(keepTwo, "push_interval", "pull_interval", 1)}, "committed": {object: true, retain: 2}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first := w.start(conf{object: c.object}).up()
			for i := range 4 {
				first.insert(i*10, i*10+10)
				first.checkpoint()
				if !c.object {
					first.push()
				}
			}
			oldest := first.remote()[0]
			first.stop()

			h := w.start(c).up()
			_, err := h.Pin(t.Context(), "p", "audit", client.PinOptions{Commit: oldest})
			must(t, err)
			done, err := h.Sweep(t.Context(), "p", client.SweepOptions{})
			must(t, err)
			equal(t, "retired", done.Retired, 1)
			equal(t, "commits", len(h.remote()), 3)
			equal(t, "the pinned one", h.remote()[0], oldest)
			h.insert(40, 44)
			h.checkpoint()
			if !c.object {
				h.push()
			}
			equal(t, "commits", len(h.remote()) >= 3, true)
		})
	}
}

// CASES A26
func TestAPinnedCommitStaysUntilItIsUnpinned(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{sync: "sync \"t\" {\n retention {\n  min_count = 1\n  max_delete = 3\n }\n}\n"}).up()
	push := func(i int) string {
		h.insert(i*10, i*10+10)
		h.checkpoint()
		return h.push()
	}
	first := push(0)
	pin, err := h.Pin(t.Context(), "p", "audit", client.PinOptions{Checkpoint: uuid.MustParse(first), Note: "the audit of May"})
	must(t, err)
	for i := 1; i < 4; i++ {
		push(i)
	}
	h.until("retention", func() bool { return len(h.remote()) == 2 })
	equal(t, "pinned commit is there", h.remote()[0], pin.Commit)
	pins, err := h.Pins(t.Context(), "p", "")
	must(t, err)
	if len(pins) != 1 || pins[0].Name != "audit" || pins[0].Note != "the audit of May" || pins[0].Checkpoint.String() != first {
		t.Errorf("pins %+v", pins)
	}
	for want, err := range map[string]error{
		client.CodePinExists:      second(h.Pin(t.Context(), "p", "audit", client.PinOptions{Commit: h.remote()[1]})),
		client.CodeCommitNotFound: second(h.Pin(t.Context(), "p", "other", client.PinOptions{Commit: 999})),
		client.CodePinNotFound:    h.Unpin(t.Context(), "p", "", "other"),
		client.CodeBadRequest:     second(h.Pin(t.Context(), "p", "No Name", client.PinOptions{Commit: 1})),
		client.CodeTargetNotFound: h.Unpin(t.Context(), "p", "nowhere", "audit"),
	} {
		if code(err) != want {
			t.Errorf("want %s: %v", want, err)
		}
	}
	must(t, h.Unpin(t.Context(), "p", "", "audit"))
	done, err := h.Sweep(t.Context(), "p", client.SweepOptions{})
	must(t, err)
	equal(t, "retired after the unpin", done.Retired, 1)
	equal(t, "commits", len(h.remote()), 1)
}

// CASES A31
func TestARetentionThatWouldTakeTooManyTakesNoneAndStatusSaysSo(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	for i := range 4 {
		first.insert(i*10, i*10+10)
		first.checkpoint()
		first.push()
	}
	first.stop()

	h := w.start(conf{sync: "sync \"t\" {\n retention {\n  min_count = 1\n  max_delete = 2\n }\n}\n"}).up()
	h.insert(40, 50)
	id := h.checkpoint()
	equal(t, "the push is no matter of retention", h.push(), id)
	h.until("the refusal", func() bool {
		m := h.view("p").Targets[0].Maintenance
		return m != nil && strings.Contains(m.Error, "max_delete = 2")
	})
	equal(t, "commits", len(h.remote()), 5)
	if _, err := h.Sweep(t.Context(), "p", client.SweepOptions{}); code(err) != client.CodeRetentionRefused {
		t.Errorf("a sweep: %v", err)
	}
	plan, err := h.Sweep(t.Context(), "p", client.SweepOptions{DryRun: true})
	must(t, err)
	if !strings.Contains(plan.Refused, "max_delete = 2") || len(plan.Commits) < 5 {
		t.Errorf("plan %+v", plan)
	}
	done, err := h.Sweep(t.Context(), "p", client.SweepOptions{MaxDelete: 4})
	must(t, err)
	equal(t, "retired", done.Retired, 4)
	equal(t, "commits", len(h.remote()), 1)
}

func second[T any](_ T, err error) error { return err }
