package host

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk/client"
)

// Activations where the targets that answer hold something older than the copy that is here.

const (
	firstBlock  = "    sync \"t\" {\n      prefix = \"first\"\n      pull_interval = \"100ms\"\n    }\n"
	secondBlock = "    sync \"u\" {\n      prefix = \"second\"\n    }\n"
)

// secondTarget is the block of target "u".
func secondTarget(w *world) string {
	w.t.Helper()
	must(w.t, os.Mkdir(w.path("target2"), 0o755))
	return fmt.Sprintf("target \"u\" {\n  plugin = \"file\"\n  config {\n    path = %q\n  }\n}\n", w.path("target2"))
}

// lagging is a standby whose copy is from target "t", where the primary pushed last; "u" holds what it pushed before. The primary is gone.
type lagging struct {
	w           *world
	standby     *liveHost
	outage      *outage // of "t"
	latest      string
	older, copy string // checkpoint ids
}

func newLagging(t *testing.T) *lagging {
	t.Helper()
	w := newWorld(t)
	l := &lagging{w: w, outage: &outage{under: "first/"}}
	more := secondTarget(w)
	primary := w.start(conf{more: more, sync: firstBlock + secondBlock}).up()
	primary.insert(0, 9)
	primary.checkpoint()
	l.older = primary.push()
	primary.until("both targets hold it", func() bool {
		for _, target := range primary.view("p").Targets {
			if target.Committed == nil || target.Committed.UUID.String() != l.older {
				return false
			}
		}
		return true
	})
	primary.stop()
	primary = w.start(conf{more: more, sync: firstBlock}).up()
	primary.insert(9, 30)
	l.copy = primary.checkpoint()
	equal(t, "pushed to the first alone", primary.push(), l.copy)
	l.latest = primary.rows()
	step := primary.view("p").Step
	primary.kill()
	l.standby = w.start(conf{data: "elsewhere", initial: "standby", more: more, sync: firstBlock + secondBlock}, l.outage.around)
	l.standby.pulledStep(step)
	return l
}

// kept demands that the copy runs, and that nothing is told for certain of a target that was not asked.
func (l *lagging) kept(done client.Activated) {
	l.w.t.Helper()
	equal(l.w.t, "rows", l.standby.rows(), l.latest)
	equal(l.w.t, "from", done.From.UUID.String(), l.copy)
	equal(l.w.t, "certain", done.Loss.Certain, false)
	contains(l.w.t, done.Loss.Text, "nothing that was seen committed is missing", "is not known")
	if _, err := os.Stat(l.w.path("elsewhere", "p", "checkpoints", l.copy)); err != nil {
		l.w.t.Errorf("the copy: %v", err)
	}
}

func TestACopyIsNotReplacedByTheOlderCommitOfTheTargetThatAnswers(t *testing.T) {
	for name, opts := range map[string]client.ActivateOptions{"what is here is accepted": {AcceptLocal: true}, "only the other target is asked": {Target: "u"}} {
		t.Run(name, func(t *testing.T) {
			l := newLagging(t)
			l.outage.all.Store(true)
			l.kept(l.standby.activate(opts))
			l.outage.all.Store(false)
			l.standby.insert(200, 202)
			mine := l.standby.checkpoint()
			equal(t, "pushed on top", l.standby.push(), mine)
		})
	}
}

// CASES A9
func TestForADamagedCopyAnOlderCommitIsTakenOnlyWhereThatIsAccepted(t *testing.T) {
	l := newLagging(t)
	l.outage.all.Store(true)
	database := l.w.path("elsewhere", "p", "checkpoints", l.copy, "files", "state.db")
	truncate(t, database)
	_, err := l.standby.Activate(t.Context(), "p", client.ActivateOptions{Target: "u"})
	if code(err) != client.CodeActivation {
		t.Fatalf("answer %v", err)
	}
	contains(t, err.Error(), "state.db", "older than the copy")
	l.standby.until("it follows again", func() bool { return l.standby.view("p").State == "standby" })
	done := l.standby.activate(client.ActivateOptions{AcceptLocal: true})
	equal(t, "from", done.From.UUID.String(), l.older)
	if done.Loss.Certain || done.Loss.Steps == nil || *done.Loss.Steps != 1 {
		t.Errorf("loss %+v", done.Loss)
	}
	contains(t, strings.Join(done.Warnings, "\n"), "damaged", "is taken after all")
}

func TestATargetThatWasPutBackDoesNotTakeTheCopyWithIt(t *testing.T) {
	w := newWorld(t)
	primary := w.start(conf{pull: "100ms"}).up()
	primary.insert(0, 9)
	primary.checkpoint()
	primary.push()
	must(t, os.CopyFS(w.path("backup"), os.DirFS(w.target)))
	primary.insert(9, 30)
	primary.checkpoint()
	last := primary.push()
	latest := primary.rows()
	standby := w.start(conf{data: "elsewhere", initial: "standby", pull: "100ms"})
	standby.pulledStep(primary.view("p").Step)
	primary.kill()
	must(t, os.RemoveAll(w.path("target", "p")))
	must(t, os.CopyFS(w.path("target", "p"), os.DirFS(w.path("backup", "p"))))

	_, err := standby.Activate(t.Context(), "p", client.ActivateOptions{})
	if code(err) != client.CodeActivation {
		t.Fatalf("answer %v", err)
	}
	contains(t, err.Error(), "put back to an earlier state", "is kept", "accept-local")
	standby.until("it follows again", func() bool { return standby.view("p").State == "standby" })
	done := standby.activate(client.ActivateOptions{AcceptLocal: true})
	equal(t, "rows", standby.rows(), latest)
	equal(t, "from", done.From.UUID.String(), last)
	equal(t, "certain", done.Loss.Certain, false) // what was pushed after the last look, and then put back, nobody knows
	contains(t, strings.Join(done.Warnings, "\n"), "put back")
	standby.insert(200, 202)
	mine := standby.checkpoint()
	equal(t, "pushed on top", standby.push(), mine)
}

func TestARefusalSaysWhatItLacksAndWhy(t *testing.T) {
	w := newWorld(t)
	seedTarget(w)
	out := &outage{}
	out.packs.Store(true)
	h := w.start(conf{data: "elsewhere", initial: "standby", pull: "100ms"}, out.around)
	refused := func(h *liveHost, opts client.ActivateOptions, why ...string) {
		t.Helper()
		h.until("it follows", func() bool { return h.view("p").State == "standby" })
		_, err := h.Activate(t.Context(), "p", opts)
		var answer *client.Error
		if !errors.As(err, &answer) || answer.Code != client.CodeActivation {
			t.Fatalf("answer %v", err)
		}
		contains(t, answer.Message, why...)
		if strings.Contains(answer.Message, "nor on the targets") {
			t.Errorf("%q, and the target holds one", answer.Message)
		}
	}
	refused(h, client.ActivateOptions{AcceptLocal: true}, "could not be pulled", "permission denied")
	h.stop()
	absent := "019b0000-0000-7000-8000-000000000001"
	h = w.start(conf{data: "third", initial: "standby", pull: "100ms", from: absent})
	refused(h, client.ActivateOptions{}, absent, "start_from_checkpoint")
}

func TestACommitThatOneTargetCannotGiveIsPulledFromAnother(t *testing.T) {
	w := newWorld(t)
	more := secondTarget(w)
	both := conf{more: more, sync: firstBlock + secondBlock}
	primary := w.start(both).up()
	primary.insert(0, 9)
	primary.checkpoint()
	id := primary.push()
	primary.until("both targets hold it", func() bool {
		for _, target := range primary.view("p").Targets {
			if target.Committed == nil || target.Committed.UUID.String() != id {
				return false
			}
		}
		return true
	})
	before := primary.rows()
	primary.kill()
	out := &outage{under: "first/"}
	out.packs.Store(true)
	both.data, both.initial = "elsewhere", "standby"
	h := w.start(both, out.around)
	h.until("it follows", func() bool { return h.view("p").State == "standby" })
	done := h.activate(client.ActivateOptions{})
	equal(t, "rows", h.rows(), before)
	equal(t, "from", done.Target, "u")
}
