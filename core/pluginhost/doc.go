// Package pluginhost runs plugins: one process a target, started from a checked private copy, watched, restarted and taken down within
// bounds. A plugin is foreign code: it may print anything anywhere, hang, fork, ignore signals or be replaced on disk while it is being
// started. None of that may harm the host or another target.
//
// The host (core/host) makes one [Supervisor] a target and calls its Run; syncer workers call the Supervisor as a store. Configuration
// and the command line use the one-shot calls [Describe], [Validate] and [Open], a [Catalog] finds the binary of a name.
//
// Goroutines: [Supervisor.Run] blocks and owns every goroutine of its process; when it returns they have ended, unless the kernel
// keeps a killed process in an uninterruptible wait, which is logged. One of them is locked to its OS thread from the fork until the
// process is reaped, because the kernel ties the parent-death signal to the thread that forked. A one-shot call owns its goroutines
// until it returns, [Open] until its Store is closed.
//
// The package is the only user of go-plugin's client. It gives go-plugin a runner of its own (see docs/decisions/0002-plugin-runner.md)
// and keeps from it whatever a plugin can write but the handshake line.
package pluginhost
