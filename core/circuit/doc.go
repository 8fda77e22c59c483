// Package circuit drives one circuit: it observes, decides through core/trigger, and acts.
//
// [Circuit] is what an author of an engine implements; [Loop] is what a host runs. The host builds a Loop with [New], opens the circuit with
// [Loop.Wake] as its Env.Wake, calls [Loop.Run], and closes the circuit after Run has returned. Requests, [Loop.Status] and the waits may be
// called from any goroutine, also before Run and after it.
//
// # Goroutines
//
// The goroutine that calls Run owns the circuit. Nothing that can block on a network or a disk flush runs on it, except Step and Snapshot.
// Run starts one goroutine for each job, at most one checkpoint and one push a target at a time, and returns only when all of them have
// ended. A panic in a job is that job's error; a panic in the circuit's own methods ends the loop with a [PanicError], never the host.
//
// # What both sides know
//
// The book, under one mutex, holds what the loop and its callers know together: requests, running jobs, results. A result is entered after
// the fact, by the job's own goroutine, so that Status is consistent and never ahead of the truth, and a slow step does not make it late.
//
// # Requests
//
// Every request is answered exactly once, also when the loop ends: then with [ErrStopped]. A checkpoint request carries the step that it
// must cover, which the loop reads after the request has come; a checkpoint that was being written meanwhile answers it only when it covers
// that step. A failed attempt answers the requests that were known when it began, and later ones get an attempt of their own. Requested syncs
// stand in one queue a target, in the order asked, and are never superseded; one that fails is reported and not started again.
//
// # Time
//
// Now is read by the loop and given to everything else. Wall times that were read back from disk pass through [trigger.Clamp] once, when Run
// begins; later times are the loop's own.
package circuit
