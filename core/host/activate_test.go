package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk/client"
)

func TestAFailedActivationTellsWhatIsMissingAndWhoIsFenced(t *testing.T) {
	p := newPair(t)
	_, err := p.standby.Activate(t.Context(), "p", client.ActivateOptions{})
	var answer *client.Error
	if !errors.As(err, &answer) || answer.Code != client.CodeActivation {
		t.Fatalf("answer %v", err)
	}
	contains(t, answer.Message, "a standby still", "permission denied", "epoch 2 of target", "fenced there already", "lacks", "accept-local")
	if answer.Details["behind_steps"] == 0.0 || answer.Details["behind_commits"] != 1.0 {
		t.Errorf("details %v", answer.Details)
	}
	p.standby.until("it follows again", func() bool { return p.standby.view("p").State == "standby" })
	view := p.standby.view("p")
	equal(t, "desired", view.DesiredState, "standby")
	contains(t, view.Standby.ActivationError, "failed")
	p.fenced()

	p.outage.packs.Store(false) // a second activation goes on from there
	done := p.standby.activate(client.ActivateOptions{})
	equal(t, "rows", p.standby.rows(), p.latest)
	contains(t, done.Loss.Text, "nothing that was committed is missing")
	p.standby.insert(200, 202)
	p.standby.checkpoint()
	p.standby.push()
}

func TestTheLocalCopyStartsWhereThatIsAcceptedAndTheLossIsTold(t *testing.T) {
	p := newPair(t)
	done := p.standby.activate(client.ActivateOptions{AcceptLocal: true})
	equal(t, "rows", p.standby.rows(), p.old)
	if done.Loss.Steps == nil || *done.Loss.Steps == 0 || *done.Loss.Commits != 1 || *done.Loss.Seconds < 0 || !done.Loss.Certain {
		t.Errorf("loss %+v", done.Loss)
	}
	contains(t, strings.Join(done.Warnings, "\n"), "could not be pulled", "is overruled")
	p.fenced()

	p.standby.insert(200, 202)
	mine := p.standby.checkpoint()
	equal(t, "pushed on top", p.standby.push(), mine)
	// What was overruled can still be had.
	p.outage.packs.Store(false)
	remote, err := p.standby.RemoteCheckpoints(t.Context(), "p", "")
	must(t, err)
	equal(t, "commits", len(remote), 3)
}

func TestATargetThatCannotBeClaimedLeavesThePrimaryInPlace(t *testing.T) {
	p := newPair(t)
	p.outage.all.Store(true)
	_, err := p.standby.Activate(t.Context(), "p", client.ActivateOptions{})
	equal(t, "code", code(err), client.CodeActivation)
	if strings.Contains(err.Error(), "is claimed") {
		t.Errorf("answer %v", err)
	}
	p.primary.insert(30, 31) // nobody is fenced
	p.primary.checkpoint()
	p.primary.push()

	p.standby.until("it follows again", func() bool { return p.standby.view("p").State == "standby" })
	done := p.standby.activate(client.ActivateOptions{AcceptLocal: true})
	equal(t, "rows", p.standby.rows(), p.old)
	equal(t, "certain", done.Loss.Certain, false)
	contains(t, strings.Join(done.Warnings, "\n"), "was not claimed", "may go on")
	contains(t, done.Claims[0].Error, "permission denied")

	warned := func() bool {
		return strings.Contains(strings.Join(p.standby.view("p").Targets[0].Warnings, "\n"), "has not been claimed since this host was activated")
	}
	equal(t, "status warns", warned(), true)

	// It is claimed when it answers, though there is nothing to push. What was never seen is not overruled: the first push finds it and is held.
	p.outage.all.Store(false)
	p.outage.packs.Store(false)
	p.standby.until("the claim", func() bool { return !warned() })
	p.fenced()
	p.standby.insert(200, 202)
	p.standby.checkpoint()
	if _, err := p.standby.SyncCheckpoint(t.Context(), "p", true); err == nil || !strings.Contains(err.Error(), "held") {
		t.Errorf("the push: %v", err)
	}
}

// The folder of the target is away when the standby is activated, an empty one lies in its place for a while, and then it is back: what is due is pushed
// though nothing new comes, and status never says that it was confirmed while nobody could look.
func TestATargetThatComesBackAfterAnActivationGetsWhatIsDue(t *testing.T) {
	w := newWorld(t)
	seedTarget(w)
	h := w.start(conf{data: "elsewhere", initial: "standby", pull: "100ms", push: "200ms", checkpoint: "100ms"}, quick)
	h.followed()
	away := w.target + ".away"
	must(t, os.Rename(w.target, away))
	activated := time.Now()
	h.activate(client.ActivateOptions{AcceptLocal: true})
	if c := h.view("p").Targets[0].Committed; c == nil || c.Created.After(activated) {
		t.Errorf("committed %+v, and since %s nobody could look", c, activated)
	}
	h.until("status says why it is not claimed", func() bool {
		return h.view("p").Targets[0].State == "unavailable" && strings.Contains(h.view("p").Targets[0].Reason, w.target)
	})
	must(t, os.Mkdir(w.target, 0o700))
	h.insert(200, 202)
	h.until("it is held", func() bool { return h.view("p").Targets[0].State == "held" })
	must(t, os.RemoveAll(w.target))
	must(t, os.Rename(away, w.target))
	h.until("what is due is pushed", func() bool {
		v := h.view("p")
		return v.Targets[0].State == "ready" && v.Targets[0].Committed != nil && v.Targets[0].Committed.Step == v.Step
	})
}

func TestAnActivationThatCrashedIsGoneOnWith(t *testing.T) {
	for _, point := range []string{
		"activate.desired", "activate.claimed", "activate.pulled", "start.identified", "start.restored", "start.recorded", "start.swapping", "start.swapped", "start.marked", "start.opened",
	} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t)
			_, before := seedTarget(w)
			c := conf{data: "elsewhere", initial: "standby", pull: "100ms"}
			crashed := w.start(c, crashAt(point))
			crashed.followed()
			if _, err := crashed.Activate(t.Context(), "p", client.ActivateOptions{}); err == nil {
				t.Error("an activation that broke off was told as done")
			}
			crashed.stop()

			again := w.start(c).up()
			equal(t, "rows", again.rows(), before)
			equal(t, "desired", again.view("p").DesiredState, "running")
			again.insert(7, 9)
			again.checkpoint()
			again.push()
			if again.view("p").Standby != nil {
				t.Error("it is shown as a standby still")
			}
		})
	}
}

func TestAnActivationThatCrashedWhereItMustFailEndsAsAStandby(t *testing.T) {
	for _, point := range []string{"activate.desired", "activate.claimed", "activate.refused"} {
		t.Run(point, func(t *testing.T) {
			p := newPair(t)
			p.standby.stop()
			p.standby = p.w.start(p.config, p.outage.around, crashAt(point))
			p.standby.until("it follows", func() bool { return p.standby.view("p").State == "standby" })
			if _, err := p.standby.Activate(t.Context(), "p", client.ActivateOptions{}); err == nil {
				t.Error("told as done")
			}
			p.standby.until("the log has it, which a stop would come before", func() bool { return strings.Contains(p.standby.log.String(), "crash at "+point) })
			p.standby.stop()
			p.standby = p.w.start(p.config, p.outage.around)
			p.standby.until("it follows again", func() bool {
				v := p.standby.view("p")
				return v.State == "standby" && v.DesiredState == "standby"
			})
			p.outage.packs.Store(false)
			p.standby.activate(client.ActivateOptions{})
			equal(t, "rows", p.standby.rows(), p.latest)
			p.fenced()
		})
	}
}

// CASES A9: what is about to start is read from end to end first, and what is damaged is not started.
func TestADamagedCopyIsPulledAnewOrTheOneBeforeStarts(t *testing.T) {
	for name, reachable := range map[string]bool{"pulled anew": true, "the one before": false} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			p.outage.packs.Store(false)
			p.standby.pulledStep(p.primary.view("p").Step)
			id := p.standby.followed().UUID.String()
			database := p.w.path("elsewhere", "p", "checkpoints", id, "files", "state.db")
			text := read(t, database)
			mustRemove(t, database) // the copy before may share the file
			must(t, os.WriteFile(database, []byte(text[:len(text)/2]), 0o600))
			p.outage.packs.Store(!reachable)
			if !reachable {
				_, err := p.standby.Activate(t.Context(), "p", client.ActivateOptions{})
				equal(t, "code", code(err), client.CodeActivation)
				contains(t, err.Error(), "state.db")
				p.standby.until("it follows again", func() bool { return p.standby.view("p").State == "standby" })
			}
			done := p.standby.activate(client.ActivateOptions{AcceptLocal: !reachable})
			if _, err := os.Stat(p.w.path("elsewhere", "p", "checkpoints", "damaged-"+id)); err != nil {
				t.Error(err)
			}
			if reachable {
				equal(t, "rows", p.standby.rows(), p.latest)
				if done.PulledBytes == 0 {
					t.Error("a damaged copy was replaced without reading a byte")
				}
				return
			}
			equal(t, "rows", p.standby.rows(), p.old)
			equal(t, "commits lost", *done.Loss.Steps > 0, true)
		})
	}
}

func TestAnActivationDoesNotWaitForAPullThatStalls(t *testing.T) {
	p := newPair(t)
	p.outage.stall.Store(true)
	p.outage.packs.Store(false)
	p.standby.until("a pull is under way", func() bool { return p.standby.view("p").Standby.Pulling != nil })
	answered := make(chan error, 1)
	go func() {
		_, err := p.standby.Activate(context.WithoutCancel(t.Context()), "p", client.ActivateOptions{})
		answered <- err
	}()
	p.standby.until("the activation pulls", func() bool {
		return strings.Contains(p.standby.view("p").Doing, "pulling commit") && p.standby.view("p").State == "starting"
	})
	must(t, p.standby.Stop(t.Context(), "p", false)) // and that one can be stopped in turn
	if err := <-answered; code(err) != client.CodeNotRunning {
		t.Errorf("answer %v", err)
	}
	p.standby.until("it has stopped", func() bool { return p.standby.view("p").State == "stopped" })
	p.outage.stall.Store(false)
	must(t, p.standby.Start(t.Context(), "p"))
	p.standby.until("a stopped standby is a standby again", func() bool { return p.standby.view("p").State == "standby" })
	p.standby.activate(client.ActivateOptions{})
	equal(t, "rows", p.standby.rows(), p.latest)
}

func TestWithNothingAnywhereOnlyAnAcceptedStartBeginsEmpty(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{initial: "standby", pull: "100ms"})
	h.until("it has looked", func() bool { s := h.view("p").Standby; return s != nil && s.LookedAt != nil })
	_, err := h.Activate(t.Context(), "p", client.ActivateOptions{})
	equal(t, "code", code(err), client.CodeActivation)
	contains(t, err.Error(), "there is no checkpoint here, nor on the targets")
	_, err = h.Activate(t.Context(), "p", client.ActivateOptions{Target: "typo"})
	h.until("it follows again", func() bool { return h.view("p").State == "standby" })
	if err == nil || code(err) != client.CodeTargetNotFound && code(err) != client.CodeInvalidTransition {
		t.Errorf("a target that is none: %v", err)
	}
	h.activate(client.ActivateOptions{AcceptLocal: true, Target: "t"})
	equal(t, "rows", h.rows(), "")
	h.insert(0, 3)
	h.checkpoint()
	h.push()
}

// A standby that made up an identity, or claimed an empty target, could never follow the primary that comes later.
func TestAnActivationThatWasRefusedTooEarlyDoesNotKeepTheStandbyFromItsPrimary(t *testing.T) {
	for name, down := range map[string]bool{"the target is empty": false, "the target is down": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			out := &outage{}
			out.all.Store(down)
			h := w.start(conf{data: "elsewhere", initial: "standby", pull: "100ms"}, out.around)
			h.until("it follows", func() bool { return h.view("p").State == "standby" })
			_, err := h.Activate(t.Context(), "p", client.ActivateOptions{})
			equal(t, "code", code(err), client.CodeActivation)
			out.all.Store(false)

			primary := w.start(conf{}).up()
			primary.insert(0, 4)
			primary.checkpoint()
			primary.push()
			h.pulledStep(primary.view("p").Step)
			equal(t, "one pipeline", h.view("p").ID, primary.view("p").ID)
		})
	}
}

// CASES A43
func TestAPrimaryThatIsRestartedAfterAFailoverStaysFenced(t *testing.T) {
	p := newPair(t)
	p.outage.packs.Store(false)
	p.primary.kill()
	p.standby.activate(client.ActivateOptions{})
	p.primary = p.w.start(conf{pull: "100ms"})
	p.primary.begin()
	p.primary.up()
	p.fenced()
	p.standby.insert(200, 202)
	p.standby.checkpoint()
	p.standby.push() // nothing was taken back
}

func TestAFencedPrimaryFollowsAndTakesOverAgain(t *testing.T) {
	p := newPair(t)
	if err := p.primary.Standby(t.Context(), "p"); code(err) != client.CodeInvalidTransition {
		t.Fatalf("a primary that holds its target: %v", err)
	}
	p.outage.packs.Store(false)
	p.standby.activate(client.ActivateOptions{})
	p.fenced()
	p.standby.insert(300, 305)
	p.standby.checkpoint()
	p.standby.push()

	must(t, p.primary.Standby(t.Context(), "p"))
	p.primary.pulledStep(p.standby.view("p").Step)
	equal(t, "state", p.primary.view("p").State, "standby")
	left, err := filepath.Glob(p.w.path("data", "p", "state.before-standby", "*"))
	must(t, err)
	if len(left) == 0 {
		t.Error("the live state of the former primary is gone")
	}
	mustBeAbsent(t, p.w.path("data", "p", "state"))

	before := p.standby.rows()
	p.standby.kill()
	p.primary.activate(client.ActivateOptions{})
	equal(t, "rows after the failback", p.primary.rows(), before)
	p.primary.stop()
	again := p.w.start(conf{pull: "100ms"}).up()
	equal(t, "rows after a restart", again.rows(), before)
	again.insert(400, 402)
	again.checkpoint()
	again.push()
}

func TestAStandbyThatIsStoppedIsAStandbyWhenItStarts(t *testing.T) {
	w := newWorld(t)
	seedTarget(w)
	c := conf{data: "elsewhere", initial: "standby", pull: "100ms"}
	h := w.start(c)
	pulled := h.followed()
	must(t, h.Stop(t.Context(), "p", true))
	h.until("it has stopped", func() bool { return h.view("p").State == "stopped" })
	h.stop()
	c.initial = "" // it holds only for a pipeline that has never run here
	h = w.start(c)
	equal(t, "state", h.view("p").State, "stopped")
	equal(t, "it shows what it has", h.view("p").Standby.Pulled.UUID, pulled.UUID)
	h.begin()
	h.until("it follows", func() bool { return h.view("p").State == "standby" })
	if _, err := os.Stat(w.path("target", "p", "epoch", "00000000000000000002.json")); !os.IsNotExist(err) {
		t.Errorf("a standby claimed an epoch: %v", err)
	}
}
