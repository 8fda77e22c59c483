// Package sdktest is the exam of a target: every sentence of the contract in package sdk is a case, kept as data, so that a plugin
// author runs them with Run in a test, and `cairn plugin check` runs the same ones with Results against any binary in any language.
//
// Four levels tell what a target is good for: Core (the four methods), Conditional (create-if-absent), Bulk (large objects and many
// keys) and Process (the plugin as a process, for which the host side gives Env.Process). A case without a planted fault that fails
// it does not count: the package's own tests hold every one to that.
//
// It also has the small real things to test against: Mem, a store that keeps the contract exactly, and Faulty, a wrapper that breaks
// it on request. The package starts no process; a case's goroutines have ended when its Run returns, but for those of a call that
// never returns, which is itself the failure. Large objects are streamed: the examiner never holds one in memory.
package sdktest
