// Package sdktest is the exam of a target: every sentence of the contract in package sdk is a case, kept as data, so that a plugin
// author runs them with Run in a test, and `cairn plugin check` runs the same ones with RunCases against any binary in any language.
//
// It also has the small real things to test against: Mem, a store that keeps the contract exactly, and Faulty, a wrapper that breaks
// it on request. The package starts no process; a case's goroutines have ended when its Run returns.
package sdktest
