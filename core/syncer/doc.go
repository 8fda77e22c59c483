// Package syncer moves checkpoints between a pipeline's disk and a store: it pushes, pulls and restores.
//
// # Who calls it
//
// The host builds one [Worker] per sync block (pipeline × target) and hands it jobs one at a time; the HTTP API shows its [Status].
// Restores, standbys and offline commands use the pull side. Everything below the [Store] interface is a plugin.
//
// # How a push becomes a commit
//
// A worker keeps one session for each incarnation of the host. The session looks, without writing, whether the newest commit lies on
// the history of the checkpoint at hand; if not, the target is held and nothing is claimed. A line whose newest checkpoint does not stand above
// all that gc speaks of has lost its newest commits, and is refused. Then it tries what the store allows ([Probe]); a
// store that does not keep create-if-absent is refused, unless fencing is advisory ([FencingAdvisory]). Then it claims the next epoch, lists the
// commits, seals the line behind the head and from there on appends commits, each by create-if-absent, each reported only after
// listings have shown that its own epoch still stands and is the highest, and that the commit, what it stands on and its packs are there: a repository
// that another writer took over fences the session, one that has vanished (a wiped bucket, an unmounted disk) or was put back to an older copy ends it. The rules are those of the exhaustive model of the protocol;
// model_test.go drives the real code through lost replies, late requests, stalls, partitions, wrong clocks, full disks, kills and a wiped store,
// and shows that each rule taken away is noticed; docs/simulation.md says how to read it.
//
// # How commits go
//
// [Worker.Maintain] is retention and sweep. It takes the epoch, the last landed number and the newest commit as a value from the worker, and from
// there on runs beside the pushes: what they do lies above that number. Retention reads the highest gc object, the commits and the pins, plans
// ([repository.PlanRetention]), looks for the packs of what stays, and creates the next gc object, which is the moment at which commits are gone for
// every reader; after another look at the epoch their objects are deleted. While a commit is missing it does nothing that nobody asks for. A sweep lists the packs, and only then reads every commit that exists; what none of them names
// and none can come to name ([repository.PlanSweep]) is deleted after a look at the epoch. No clock decides what may be swept.
//
// # Goroutines
//
// [Worker.Push] runs the job on the caller's goroutine and owns the ones it starts for uploads: they have ended when it returns. The
// package starts nothing in the background.
package syncer
