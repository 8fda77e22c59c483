package pluginhost

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes puts the plugin into a group of its own. There is no parent-death signal here: the end of stdin tells a plugin
// built with the SDK that its host is gone.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit returns when the process has ended and leaves it a zombie, so that its number and that of its group stay taken. Any error
// means that there is nothing to wait for: ESRCH is what the kernel says of a process that ended before it was asked.
func awaitExit(pid int) {
	queue, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(queue) }()
	watch := []unix.Kevent_t{{
		Ident: uint64(pid), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT,
	}}
	for {
		if _, err := unix.Kevent(queue, watch, make([]unix.Kevent_t, 1), nil); !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// mountedNoexec cannot tell here; the kernel's own refusal is reported.
func mountedNoexec(string) bool { return false }
