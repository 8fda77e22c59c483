package host

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/sdk/client"
)

func none(string) {}

// The live state of the tape is not exact: it is kept whenever it exists, and its steps go on above the newest checkpoint.
func TestStepsThatBeginAnewGoOnAboveTheNewestCheckpoint(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}, tapes(none)).up()
	for i := range 5 {
		first.insert(i, i+1)
	}
	first.checkpoint()
	first.push()
	first.insert(5, 6)
	first.kill()

	second := w.start(conf{checkpoint: "100ms"}, tapes(none))
	second.begin()
	contains(t, second.up().view("p").StartedFrom, "its step cannot be told")
	equal(t, "step", second.view("p").Step, 6) // one above the checkpoint: the state may have moved on since
	for i := 6; i < 10; i++ {
		got, err := second.Ingest(t.Context(), "p", "rows", "", 0, "checkpoint", rows(i, i+1))
		must(t, err)
		equal(t, "step of a batch", got.Step, uint64(i+1))
		equal(t, "waited", got.Waited, "checkpoint")
	}
	newest := second.checkpoint()
	equal(t, "pushed", second.push(), newest)
	all, err := second.Checkpoints(t.Context(), "p")
	must(t, err)
	equal(t, "kept", len(all), 2)
	equal(t, "newest step", all[1].Step, 10)
	live := read(t, w.path("data", "p", "state", "tape"))
	equal(t, "batches on the tape", strings.Count(live, "\n"), 10)
	second.stop()

	third := w.start(conf{data: "elsewhere", from: "latest", strict: true}, tapes(none)).up()
	equal(t, "tape elsewhere", read(t, w.path("elsewhere", "p", "state", "tape")), live)
	got, err := third.Ingest(t.Context(), "p", "rows", "", 0, "", rows(10, 11))
	must(t, err)
	equal(t, "step of a batch elsewhere", got.Step, 12)
	equal(t, "pushed from elsewhere", third.checkpoint(), third.push())
	equal(t, "inputs in stats", statsInputs(third), 0)
	if _, err := third.Pipeline(t.Context(), "p"); err != nil {
		t.Error(err)
	}
	err = third.Query(t.Context(), "p", "SELECT 1", &strings.Builder{})
	equal(t, "code of a query", code(err), client.CodeBadQuery)
}

func statsInputs(h *liveHost) int {
	s, err := h.Stats(h.t.Context(), "p")
	must(h.t, err)
	return len(s.Inputs)
}

func TestAPanicOfACircuitIsTheFailureOfItsPipeline(t *testing.T) {
	w := newWorld(t)
	opening := w.start(conf{}, tapes(func(in string) {
		if in == "open" {
			panic("planted")
		}
	}))
	equal(t, "error", opening.failed(), "start panicked: planted")
	contains(t, opening.log.String(), "fake_test.go") // the stack
	must(t, opening.Start(t.Context(), "p"))
	contains(t, opening.failed(), "planted")
	opening.stop()

	closing := w.start(conf{}, tapes(func(in string) {
		if in == "close" {
			panic("planted")
		}
	})).up()
	must(t, closing.Stop(t.Context(), "p", false))
	closing.until("it has ended", func() bool { return closing.view("p").Error != "" })
	contains(t, closing.view("p").Error, "close circuit panicked: planted")
}

// A platform that serves the API itself can do so before, during and after Run.
func TestTheHandlerAnswersInEveryPhase(t *testing.T) {
	w := newWorld(t)
	h, err := New(w.load(w.hcl(conf{})), quiet())
	must(t, err)
	server := httptest.NewServer(h.Handler())
	defer server.Close()
	api := client.New(server.URL, server.Client())
	get := func(phase, state string) {
		t.Helper()
		v, err := api.Pipeline(t.Context(), "p")
		must(t, err)
		equal(t, "state "+phase, v.State, state)
	}
	get("before", "stopped")
	equal(t, "code of a start before Run", code(api.Start(t.Context(), "p")), client.CodeNotRunning)
	must(t, h.Close())
	get("after", "stopped")
	resp, err := server.Client().Get(server.URL + "/readyz")
	must(t, err)
	defer resp.Body.Close()
	equal(t, "ready", resp.StatusCode, http.StatusServiceUnavailable)
}

func TestMemoryStorageRunsAndKeepsNothing(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{memory: true}).up()
	first.insert(0, 4)
	equal(t, "rows", strings.Count(first.rows(), "\n"), 4)
	err := first.CheckpointAndWait(t.Context(), "p")
	if err == nil {
		t.Fatal("a checkpoint of memory")
	}
	contains(t, err.Error(), `storage "memory" keeps no checkpoints`, `use storage "file"`)
	status, err := first.CheckpointStatus(t.Context(), "p", *first.view("p").Incarnation)
	must(t, err)
	if status.Success != nil || status.Failure == nil || status.Failure.Sequence != 1 || status.Failure.FailedAt.IsZero() {
		t.Errorf("got %+v", status)
	}
	_, err = first.Ingest(t.Context(), "p", "rows", "", 0, "checkpoint", rows(4, 5))
	equal(t, "code of a batch that would wait for ever", code(err), client.CodeNoSync)
	equal(t, "rows afterwards", strings.Count(first.rows(), "\n"), 4)
	_, err = first.SyncCheckpoint(t.Context(), "p", false)
	equal(t, "code of a sync", code(err), client.CodeNoSync)
	_, err = first.RemoteCheckpoints(t.Context(), "p", "")
	equal(t, "code of a remote list", code(err), client.CodeNoSync)
	must(t, first.Stop(t.Context(), "p", true))
	first.until("stopped", func() bool { return first.view("p").State == "stopped" })
	equal(t, "error of a stop", first.view("p").Error, "")
	first.stop()

	second := w.start(conf{memory: true}).up()
	equal(t, "rows", second.rows(), "")
}

func TestAPluginThatIsMissingLeavesTheHostRunning(t *testing.T) {
	w := newWorld(t)
	missing := w.path("nothing-here")
	h := w.start(conf{more: "plugin \"file\" {\n path = \"" + missing + "\"\n}\n"}).up()
	h.insert(0, 3)
	h.checkpoint()
	h.until("the target is shown as degraded", func() bool { return h.view("p").Targets[0].Plugin.State == "degraded" })
	contains(t, h.view("p").Targets[0].Plugin.LastExit, missing)
	_, err := h.RemoteCheckpoints(t.Context(), "p", "") // at once, not when a budget is spent
	equal(t, "code of a remote list", code(err), client.CodeTarget)
	contains(t, err.Error(), missing)

	other := w.start(conf{data: "elsewhere", from: "latest", more: "plugin \"file\" {\n path = \"" + missing + "\"\n}\n"})
	other.until("a start that needs it says so", func() bool { return strings.Contains(other.view("p").Doing, missing) })
	contains(t, other.view("p").Doing, "plugin file is degraded")
}

func TestACircuitThatIsSlowToCloseIsAnnounced(t *testing.T) {
	w := newWorld(t)
	release := make(chan struct{})
	h := w.start(conf{}, tapes(func(in string) {
		if in == "close" {
			<-release
		}
	})).up()
	h.end()
	h.until("the log says what the end waits for", func() bool { return h.log.count(`still stopping: doing="closing the circuit"`) > 0 })
	equal(t, "state", h.view("p").State, "stopping")
	close(release)
	h.stop()
}

// shy inspects like sqlcircuit does: under a lock that another one does not wait for.
type shy struct {
	tape
	inside *sync.Mutex
	look   func()
}

func (c *shy) Inspect(ctx context.Context, dir string) (circuit.Live, error) {
	if !c.inside.TryLock() {
		return circuit.Live{}, errors.New("the state is locked")
	}
	defer c.inside.Unlock()
	c.look()
	return c.tape.Inspect(ctx, dir)
}

// CI found it: a start that came while the new host still looked at the stopped pipeline failed with "database is locked".
func TestAStartWaitsForTheLookAtTheStateAtRest(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}, tapes(none)).up()
	must(t, first.Stop(t.Context(), "p", true))
	first.stop()

	var inside sync.Mutex
	looking, goOn := make(chan struct{}), make(chan struct{})
	look := sync.OnceFunc(func() {
		close(looking)
		<-goOn
	})
	second := w.start(conf{}, func(o *Options) {
		o.Circuit = func(config.Pipeline) (circuit.Circuit, error) {
			return &shy{tape: tape{fault: none}, inside: &inside, look: look}, nil
		}
	})
	release := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release)
	<-looking
	must(t, second.Start(t.Context(), "p"))
	second.until("the start has come to the local state", func() bool {
		return strings.Contains(second.view("p").Doing, "looking at the local state")
	})
	release()
	second.up()
}
