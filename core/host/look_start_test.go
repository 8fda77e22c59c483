package host

import (
	"testing"

	"github.com/cairnsync/cairn/sdk/client"
)

// CASES A43: what an idle primary that comes back tells of a target that was taken over while it was down.
func TestARestartedPrimaryWithNothingToPushSaysThatItWasTakenOver(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	first.insert(0, 5)
	first.checkpoint()
	first.push()
	pushed := first.view("p").Targets[0].LookedAt
	first.stop()

	again := w.start(conf{}).up()
	again.until("it has looked", func() bool { return again.view("p").Targets[0].LookedAt.After(*pushed) })
	equal(t, "nobody has taken it over", again.view("p").Targets[0].State, "ready")
	equal(t, "and nothing was pushed", len(again.view("p").Targets[0].Jobs), 1)
	again.stop()

	other := w.start(conf{data: "elsewhere", initial: "standby", pull: "100ms"})
	other.followed()
	other.activate(client.ActivateOptions{})

	late := w.start(conf{pull: "1h"}).up()
	late.until("it is fenced", func() bool { return late.view("p").Targets[0].State == "fenced" })
	target := late.view("p").Targets[0]
	contains(t, target.Reason, "fenced", "cairn pipeline standby")
	if target.TakenBy == nil || target.TakenBy.Epoch != 2 {
		t.Errorf("taken by %+v", target.TakenBy)
	}
	if _, err := late.Pin(t.Context(), "p", "audit", client.PinOptions{Commit: 2}); code(err) != client.CodeFenced {
		t.Errorf("a pin: %v", err)
	}
	must(t, late.Standby(t.Context(), "p")) // as the reason says
	late.stop()
	other.insert(5, 9)
	other.checkpoint()
	other.push()
}

// Once the new primary has pushed, the old one that comes back is held: its reason names the commands that make it follow, in their order.
func TestARestartedPrimaryThatIsHeldFollowsByTheCommandsOfItsReason(t *testing.T) {
	w := newWorld(t)
	c := conf{pull: "100ms"}
	first := w.start(c).up()
	first.insert(0, 5)
	first.checkpoint()
	first.push()
	first.stop()
	other := w.start(conf{data: "elsewhere", initial: "standby", pull: "100ms"})
	other.followed()
	other.activate(client.ActivateOptions{})
	other.insert(5, 9)
	other.checkpoint()
	other.push()

	late := w.start(c).up()
	late.until("it is held", func() bool { return late.view("p").Targets[0].State == "held" })
	contains(t, late.view("p").Targets[0].Reason, "`cairn pipeline stop p` and, once it has stopped, `cairn pipeline standby p`")
	must(t, late.Stop(t.Context(), "p", true))
	late.until("it has stopped", func() bool { return late.view("p").State == "stopped" })
	must(t, late.Standby(t.Context(), "p"))
	late.pulledStep(other.view("p").Step)
}

func TestATargetThatRefusesAtTheStartIsLookedAtUntilItDoesNot(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	first.insert(0, 5)
	first.checkpoint()
	first.push()
	pushed := first.view("p").Targets[0].LookedAt
	first.stop()

	out := &outage{}
	out.all.Store(true)
	h := w.start(conf{}, out.around).up()
	h.until("a look has failed", func() bool { return h.view("p").Targets[0].State == "refused" })
	out.all.Store(false)
	h.until("a look has succeeded", func() bool { return h.view("p").Targets[0].State == "ready" })
	if at := h.view("p").Targets[0].LookedAt; !at.After(*pushed) {
		t.Errorf("looked at %v, pushed at %v", at, pushed)
	}
}
