package host

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/sdk/client"
)

func TestEachTransitionIsTakenOrRefusedByTheState(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{}).up()
	verbs := map[string]func() error{
		"start":  func() error { return h.Start(t.Context(), "p") },
		"pause":  func() error { return h.Pause(t.Context(), "p") },
		"resume": func() error { return h.Resume(t.Context(), "p") },
		"stop":   func() error { return h.Stop(t.Context(), "p", true) },
	}
	for _, row := range []struct{ verb, state, desired string }{ // "" = refused
		{"start", "", ""},
		{"resume", "", ""},
		{"pause", "paused", "paused"},
		{"pause", "paused", "paused"},
		{"start", "", ""},
		{"resume", "running", "running"},
		{"stop", "stopped", "stopped"},
		{"stop", "", ""},
		{"pause", "", ""},
		{"resume", "", ""},
		{"start", "running", "running"},
		{"pause", "paused", "paused"},
		{"stop", "stopped", "stopped"},
		{"start", "running", "running"},
	} {
		before := h.view("p")
		err := verbs[row.verb]()
		if row.state == "" {
			equal(t, row.verb+" when "+before.State, code(err), client.CodeInvalidTransition)
			contains(t, err.Error(), "cannot "+row.verb, "it is "+before.State)
			continue
		}
		must(t, err)
		h.until(row.verb+" is done", func() bool { return h.view("p").State == row.state })
		equal(t, "desired state", h.view("p").DesiredState, row.desired)
	}
}

func TestTheDesiredStateSurvivesARestart(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{initial: "paused"})
	first.until("it begins paused", func() bool { return first.view("p").State == "paused" })
	must(t, first.Resume(t.Context(), "p"))
	first.insert(0, 4)
	first.stop()

	second := w.start(conf{initial: "paused"}).up() // initial holds only where it has never run
	must(t, second.Pause(t.Context(), "p"))
	second.stop()

	third := w.start(conf{})
	third.until("it is paused again", func() bool { return third.view("p").State == "paused" })
	checkpoint := third.checkpoint() // checkpoints and pushes go on
	equal(t, "pushed", third.push(), checkpoint)
	must(t, third.Stop(t.Context(), "p", true))
	third.until("stopped", func() bool { return third.view("p").State == "stopped" })
	third.stop()

	fourth := w.start(conf{})
	must(t, fourth.host.Ready())
	fourth.until("what it holds at rest is shown", func() bool { return fourth.view("p").Step == 1 })
	v := fourth.view("p")
	equal(t, "state", v.State, "stopped")
	equal(t, "checkpoint", v.Checkpoint.UUID.String(), checkpoint)
	equal(t, "behind", *v.Targets[0].Behind, 0)
	must(t, fourth.Start(t.Context(), "p"))
	equal(t, "rows", strings.Count(fourth.up().rows(), "\n"), 4)
}

func TestAStopTakesALastCheckpointUnlessToldNotTo(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{atEnd: true, push: "1h", checkpoint: "1h"}).up()
	h.insert(0, 4)
	h.checkpoint()
	h.until("a push is due in an hour", func() bool { return h.view("p").Targets[0].NextPush != nil })
	h.insert(4, 5)
	must(t, h.Stop(t.Context(), "p", true))
	h.until("stopped", func() bool { return h.view("p").State == "stopped" })
	v := h.view("p")
	if next := v.Targets[0].NextPush; next != nil {
		t.Errorf("the next push of a pipeline that is stopped: %s", next)
	}
	if v.Checkpoint == nil || v.Checkpoint.Step != 2 || v.Targets[0].Committed == nil || v.Targets[0].Committed.UUID != v.Checkpoint.UUID {
		t.Errorf("got %+v, %+v", v.Checkpoint, v.Targets[0].Committed)
	}
	equal(t, "trigger", v.Targets[0].Jobs[0].Trigger, "shutdown")
	if s := h.syncs(); s.Success != nil || s.Periodic != nil {
		t.Errorf("a push at the end moved sync status: %+v", s)
	}

	must(t, h.Start(t.Context(), "p"))
	h.up().insert(5, 6)
	must(t, h.Stop(t.Context(), "p", false))
	h.until("stopped", func() bool { return h.view("p").State == "stopped" })
	equal(t, "newest checkpoint", h.view("p").Checkpoint.Step, 2)
}

func TestAStopThatCannotPushIsAStopAndSaysSo(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{atEnd: true}).up()
	damagedFormat(w)
	h.insert(0, 4)
	must(t, h.Stop(t.Context(), "p", true))
	h.until("stopped", func() bool { return h.view("p").State == "stopped" })
	contains(t, h.view("p").Error, "final push to t", "FORMAT.json")
	must(t, h.host.Ready())
	must(t, h.Start(t.Context(), "p"))
	equal(t, "error of a new run", h.up().view("p").Error, "")
}

func TestCheckpointStatusIsPerIncarnation(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	first.insert(0, 4)
	first.checkpoint()
	old := *first.view("p").Incarnation
	s, err := first.CheckpointStatus(t.Context(), "p", old)
	must(t, err)
	equal(t, "success", *s.Success, 1)
	first.stop()

	second := w.start(conf{}).up()
	_, err = second.CheckpointStatus(t.Context(), "p", old)
	equal(t, "code", code(err), client.CodeIncarnationMismatch)
	var answered *client.Error
	errors.As(err, &answered)
	equal(t, "requested", answered.Details["requested"], any(old.String()))
	equal(t, "expected", answered.Details["expected"], any(second.view("p").Incarnation.String()))
	s, err = second.CheckpointStatus(t.Context(), "p", *second.view("p").Incarnation)
	must(t, err)
	if s.Success != nil || s.Failure != nil {
		t.Errorf("got %+v", s)
	}
}

// The target's folder is away, as an unmounted disk is: unknown, so the start asks again and says so.
// CASES A75
func TestAStartThatWaitsForATargetSaysSoAndCanBeStopped(t *testing.T) {
	w := newWorld(t)
	seedTarget(w)
	must(t, os.Rename(w.target, w.target+".away"))
	h := w.start(conf{data: "elsewhere", from: "latest"})
	h.until("it says what it waits for", func() bool {
		doing := h.view("p").Doing
		return strings.Contains(doing, `asking which checkpoints the targets hold: target "t"`) && strings.Contains(doing, "asked again at")
	})
	equal(t, "state", h.view("p").State, "starting")
	if err := h.host.Ready(); err == nil {
		t.Error("the host says it is ready")
	}
	h.until("the log says so twice", func() bool { return h.log.count("still starting") >= 2 })
	contains(t, h.log.String(), "waited=1s", "waited=2s")
	_, err := h.Checkpoint(t.Context(), "p")
	equal(t, "code of a checkpoint meanwhile", code(err), client.CodeNotRunning)

	must(t, h.Stop(t.Context(), "p", true))
	h.until("stopped", func() bool { return h.view("p").State == "stopped" })
	equal(t, "error", h.view("p").Error, "")
	h.stop()

	// The wish outlives the host although the pipeline has never run; and the start goes on where the target is back.
	again := w.start(conf{data: "elsewhere", from: "latest"})
	equal(t, "state", again.view("p").State, "stopped")
	again.begin()
	must(t, again.Stop(t.Context(), "p", true))
	_ = again.Stop(t.Context(), "p", true) // a second time: refused or not, it harms nothing
	again.until("stopped", func() bool { return again.view("p").State == "stopped" })
	must(t, os.Rename(w.target+".away", w.target))
	must(t, again.Start(t.Context(), "p"))
	equal(t, "rows", strings.Count(again.up().rows(), "\n"), 7)
}

func TestAHostEndsWhileAStartWaits(t *testing.T) {
	w := newWorld(t)
	must(t, os.Rename(w.target, w.target+".away"))
	h := w.start(conf{from: "latest"})
	h.until("it asks", func() bool { return strings.Contains(h.view("p").Doing, "asking") })
	ours := h.view("p").Incarnation
	h.stop()
	if v, err := h.Pipeline(t.Context(), "p"); err == nil && v.Incarnation != nil && *v.Incarnation == *ours { // another test's host may listen there by now
		t.Error("the API answers after Run")
	}
	equal(t, "pipelines that failed", h.log.count("pipeline failed"), 0)
	equal(t, "start after the end", code(h.host.pipelines[0].Start(t.Context())), "")
	if err := h.host.pipelines[0].Start(t.Context()); err == nil || !strings.Contains(err.Error(), "ending") {
		t.Errorf("start after the end: %v", err)
	}
}

func TestAShutdownIsCutShortAndSaysWhatItDidNotGetDone(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{atEnd: true, timeout: "10s"}).up() // the checkpoint of the shutdown has to fit in, on any machine
	h.insert(0, 4)
	must(t, os.Rename(w.target, w.target+".away"))
	h.stop()
	contains(t, h.log.String(), "pipeline stopped, not all was done", "push to t: shutdown timeout passed")

	must(t, os.Rename(w.target+".away", w.target))
	again := w.start(conf{}).up()
	equal(t, "checkpoint of the shutdown", again.view("p").Checkpoint.Step, 1)
	again.push()
}

func TestOneEventIsOneLogLine(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{}).up()
	h.insert(0, 4)
	h.checkpoint()
	h.push()
	truncate(t, w.path("target", "p", "FORMAT.json"))
	h.stop()
	again := w.start(conf{}).up()
	again.insert(4, 5)
	again.checkpoint()
	if _, err := again.SyncCheckpoint(t.Context(), "p", true); err == nil {
		t.Fatal("no error")
	}
	must(t, again.Stop(t.Context(), "p", true))
	again.until("stopped", func() bool { return again.view("p").State == "stopped" })
	for _, line := range []struct {
		book *logBook
		part string
		n    int
	}{
		{h.log, "checkpoint pushed", 1},
		{h.log, "INFO]  p: push", 0},
		{h.log, "checkpoint published", 1},
		{h.log, "pipeline running", 1},
		{again.log, "push ended", 1},
		{again.log, "WARN]  p: push", 0},
		{again.log, "pipeline stopped", 1},
		{again.log, "INFO]  p: loop", 0},
	} {
		equal(t, line.part, line.book.count(line.part), line.n)
	}
}

func TestAHostIsRunOnceAndClosedWhenItIsNotRun(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{}).up()
	if err := h.host.Run(t.Context()); !errors.Is(err, ErrRun) {
		t.Errorf("a second Run meanwhile: %v", err)
	}
	if err := h.host.Close(); !errors.Is(err, ErrUnderWay) {
		t.Errorf("Close meanwhile: %v", err)
	}
	cfg := w.load(w.hcl(conf{}))
	opts := Options{Log: hclog.NewNullLogger(), Now: time.Now}
	if _, err := New(cfg, opts); err == nil || !strings.Contains(err.Error(), "spool") {
		t.Errorf("a second host on the folders: %v", err)
	}
	h.stop()
	if err := h.host.Run(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("a second Run afterwards: %v", err)
	}
	must(t, h.host.Close())

	unused, err := New(cfg, opts)
	must(t, err)
	must(t, unused.Close())
	must(t, unused.Close())
	if _, err := New(cfg, Options{}); err == nil || !strings.Contains(err.Error(), "required") {
		t.Errorf("a host without a log: %v", err)
	}
}

func TestAnAddressInUseEndsRunAndGivesTheFoldersBack(t *testing.T) {
	w := newWorld(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	cfg := w.load(strings.Replace(w.hcl(conf{}), "127.0.0.1:0", taken.Addr().String(), 1))
	for range 2 {
		h, err := New(cfg, Options{Log: hclog.NewNullLogger(), Now: time.Now})
		must(t, err)
		err = h.Run(context.Background())
		if err == nil {
			t.Fatal("no error")
		}
		contains(t, err.Error(), "listen for the API", "address already in use", "host.listen")
	}
}
