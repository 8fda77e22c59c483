//go:build !linux

package teststore

import "syscall"

// ownGroup puts a process into a group of its own. It outlives a test binary that is killed: only Linux has a signal for that.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
