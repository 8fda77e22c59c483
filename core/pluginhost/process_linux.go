package pluginhost

import (
	"errors"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes puts the plugin into a group of its own and lets the kernel kill it when the forking thread, and so the host, ends.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the process has ended and leaves it a zombie, so that its number and that of its group stay taken.
func awaitExit(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), syscall.EINTR) {
	}
}

func mountedNoexec(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(filepath.Dir(path), &fs) == nil && fs.Flags&unix.ST_NOEXEC != 0
}
