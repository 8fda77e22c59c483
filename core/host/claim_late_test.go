package host

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk/client"
)

func TestALateClaimThatHangsIsGivenUpAndMadeAgain(t *testing.T) {
	w := newWorld(t)
	seedTarget(w)
	out := &outage{}
	h := w.start(conf{data: "elsewhere", initial: "standby", pull: "100ms"}, out.around, quick)
	h.followed()
	out.hang.Store(true)
	done := h.activate(client.ActivateOptions{AcceptLocal: true})
	contains(t, strings.Join(done.Warnings, "\n"), "was not claimed")
	h.until("a second late claim was given up", func() bool { return h.log.count("a target is still not claimed") > 1 })
	target := h.view("p").Targets[0]
	equal(t, "state", target.State, "unavailable")
	contains(t, target.Reason, `target "t"`)
	contains(t, strings.Join(target.Warnings, "\n"), "has not been claimed")

	out.hang.Store(false)
	h.until("it is claimed", func() bool { return h.view("p").Targets[0].State == "ready" })
	equal(t, "warnings", strings.Join(h.view("p").Targets[0].Warnings, "\n"), "")
}

// A standby that has seen nothing yet has to learn whose the repositories are: one target that hangs does not keep it from the others.
func TestATargetThatHangsDoesNotKeepAnActivationFromWhatTheOthersHold(t *testing.T) {
	w := newWorld(t)
	second := w.path("second")
	must(t, os.Mkdir(second, 0o755))
	c := conf{
		more: fmt.Sprintf("target \"u\" {\n  plugin = \"file\"\n  config {\n    path = %q\n  }\n}\n", second),
		sync: "    sync \"t\" {\n      pull_interval = \"100ms\"\n    }\n    sync \"u\" {\n      prefix = \"q\"\n    }\n",
	}
	primary := w.start(c).up()
	primary.insert(0, 5)
	primary.checkpoint()
	primary.push()
	id, rows := primary.view("p").ID, primary.rows()
	primary.stop()

	out := &outage{under: "p/"}
	out.hang.Store(true)
	c.data, c.initial = "elsewhere", "standby"
	h := w.start(c, out.around, quick)
	h.until("it follows", func() bool { return h.view("p").State == "standby" })
	done := h.activate(client.ActivateOptions{AcceptLocal: true})
	equal(t, "from", done.Target, "u")
	equal(t, "one pipeline", h.view("p").ID, id)
	equal(t, "rows", h.rows(), rows)
}
