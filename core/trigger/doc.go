// Package trigger decides what a circuit's loop does next: facts in, decision out.
//
// It has no clock, no I/O, no goroutine and no random source. Whoever calls it observes the world, stamps the time and acts on the
// answer; core/circuit is that caller, and its loop is the only one. Everything here may be called from any goroutine. The stories in
// testdata show the rules at work, each as a loop's day in a few lines.
//
// # The order of the rules
//
// [Decide] answers with the first of these that holds:
//
//  1. [TakeCheckpoint], when a checkpoint is requested or due and can start now.
//  2. [Sync] of a requested checkpoint, on the first idle target that has one; then Sync of the newest published checkpoint, on the first
//     idle target where a periodic push is due. It only starts a job, so a slow target holds up nothing.
//  3. [Step], unless paused: while replaying or bootstrapping, when asked, when more than MinBatch records are buffered, or when the
//     oldest buffered record has waited MaxDelay. After a step that found the disk full none is taken before [Facts.StepRetryAt].
//  4. [Park], until the earliest moment at which the answer would differ if nothing but time went by; for ever when there is none.
//
// A target is idle when it is neither busy, fenced nor held. Saving comes before stepping: no flood of input, no long replay and no
// stream of step requests delays a due checkpoint or push. A pause stops steps only; timers go on.
//
// # Checkpoints
//
// Equal step numbers mean equal state, so an automatic checkpoint falls due only when the circuit is past the last published step. Step 0
// is the empty state: with nothing published, a circuit at step 0 has nothing to save, and the first step is due for saving at once when no
// attempt was made yet, however long the interval. Otherwise the interval counts from the last publication or from the end of the last
// attempt, whichever is later: a checkpoint that fails is tried again an interval later, not at once.
//
// A request carries the step that it must cover ([Facts.CheckpointCover]). It is served by a checkpoint of that step or a later one: not
// by an older one that was still being written when the request came, and not before the circuit has reached that step. A published
// checkpoint that covers it already serves it too, so nothing is written; an explicit request at step 0 with nothing published is served by a
// checkpoint of the empty state.
//
// A checkpoint that is running, or that the circuit refuses for now ([Facts.CheckpointBlocked]), leaves no deadline: time does not end
// either of them, an event does.
//
// # Pushes
//
// The push interval counts from the end of the last periodic commit. Requested syncs neither move it nor reset it. When it has passed and
// nothing new is published it stays due, and the next published checkpoint is pushed at once. Absent ([uuid.Nil]) ids never sync.
//
// A requested sync names its checkpoint and is never superseded: not by a newer checkpoint, not by a periodic push, and not when that
// checkpoint is already there (the job finds nothing to move and the requester gets its answer). If it fails it is reported and not
// started again.
//
// A periodic push that fails is started again after [TargetPolicy.RetryWait], which doubles with each failure in a row. A newer
// checkpoint does not shorten the wait, since it is the target that is in trouble, but it is what the retry then pushes.
//
// # What the caller owes
//
// Time: [Facts.Now] comes from one monotonic clock, and so do all other times. Wall times that were read back from disk pass through
// [Clamp] once. With that, a clock set back while the host runs is not seen at all, and one set back between two runs costs at most one
// interval.
//
// Truth: a decision is acted on before the next one is asked for, so that the facts show it. After TakeCheckpoint the checkpoint is running
// or has ended; after Sync the target is busy or the job has ended; after Step the input is consumed and StepAsked withdrawn. A request
// that ended, well or badly, is answered and no longer shown. While the facts follow the decisions the loop cannot spin.
//
// Events: whatever changes a fact without the loop's doing (input, a request, the end of a job or of a phase, a block lifted) wakes a
// parked loop.
package trigger
