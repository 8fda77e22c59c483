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

	late := w.start(conf{}).up()
	late.until("it is fenced", func() bool { return late.view("p").Targets[0].State == "fenced" })
	target := late.view("p").Targets[0]
	contains(t, target.Reason, "fenced", "cairn pipeline standby")
	if target.TakenBy == nil || target.TakenBy.Epoch != 2 {
		t.Errorf("taken by %+v", target.TakenBy)
	}
	if _, err := late.Pin(t.Context(), "p", "audit", client.PinOptions{Commit: 2}); code(err) != client.CodeFenced {
		t.Errorf("a pin: %v", err)
	}
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
