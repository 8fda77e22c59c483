package host

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// crashAt panics once where a crash is to come: the run ends there, and nothing after that point has happened.
func crashAt(point string) func(*Options) {
	var crashed atomic.Bool
	return func(o *Options) {
		o.Hook = func(at string) {
			if at == point && crashed.CompareAndSwap(false, true) {
				panic("crash at " + at)
			}
		}
	}
}

func TestAStartThatCrashedIsTakenUpWhereverItWas(t *testing.T) {
	for _, point := range []string{
		"start.identified", "start.pulled", "start.restored", "start.recorded", "start.swapping", "start.swapped", "start.marked", "start.opened",
	} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t)
			_, before := seedTarget(w)
			crashed := w.start(conf{data: "elsewhere", from: "latest"}, crashAt(point))
			contains(t, crashed.failed(), "crash at "+point)
			crashed.stop()

			again := w.start(conf{data: "elsewhere", from: "latest", strict: true}).up()
			equal(t, "rows", again.rows(), before)
			again.insert(7, 9)
			again.checkpoint()
			again.push()
			mustBeAbsent(t, w.path("elsewhere", "p", "state.new"))
			mustBeAbsent(t, w.path("elsewhere", "p", "state.old"))
		})
	}
}

// A live state that is behind its checkpoint is replaced: a crash between the two renames leaves none in its place.
func TestACrashBetweenTheRenamesLosesNothing(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	first.insert(0, 6)
	first.checkpoint()
	before := first.rows()
	first.stop()
	live := w.path("data", "p", "state")
	must(t, os.Rename(live, live+".old"))
	must(t, os.CopyFS(live+".new", os.DirFS(live+".old")))

	second := w.start(conf{}).up()
	equal(t, "rows", second.rows(), before)
	contains(t, second.view("p").StartedFrom, "newest local checkpoint")
}

func TestADamagedLiveStateIsMovedAwayAndItsCheckpointRestored(t *testing.T) {
	for name, point := range map[string]string{"undisturbed": "", "crashed while it was swapped": "start.swapping"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first := w.start(conf{}).up()
			first.insert(0, 6)
			first.checkpoint()
			before := first.rows()
			first.stop()
			database := w.path("data", "p", "state", "state.db")
			must(t, os.WriteFile(database, []byte(strings.Repeat("no database ", 1000)), 0o600))

			if point != "" {
				crashed := w.start(conf{}, crashAt(point))
				contains(t, crashed.failed(), "crash at "+point)
				crashed.stop()
			}
			second := w.start(conf{}).up()
			equal(t, "rows", second.rows(), before)
			contains(t, read(t, w.path("data", "p", "state.damaged", "state.db")), "no database")
		})
	}
}

// CASES A5
func TestACheckpointOnDiskThatWasDamagedIsNotRestored(t *testing.T) {
	w := newWorld(t)
	first := w.start(conf{}).up()
	first.insert(0, 6)
	id := first.checkpoint()
	first.stop()
	mustRemove(t, w.path("data", "p", "state"))
	truncate(t, w.path("data", "p", "checkpoints", id, "files", "state.db"))
	second := w.start(conf{from: "latest"})
	contains(t, second.failed(), id, "state.db")
	mustBeAbsent(t, w.path("data", "p", "state"))
}
