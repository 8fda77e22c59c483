package teststore

import "syscall"

// ownGroup puts a process into a group of its own and ties its life to this one's, which may end without any cleanup.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
