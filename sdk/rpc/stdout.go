package rpc

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// handshakeOut is what was descriptor 1 when the host started this process: go-plugin's handshake line goes there, and nothing else may.
// It is nil in every process that no host started.
var handshakeOut *os.File //nolint:gochecknoglobals // init below has nowhere else to leave it, and only Serve reads it

// init moves descriptor 1 away before main's package variables can print, in a plugin only: whatever they, a vendor's library or a
// child process write to standard output then lands in the log. It is the one init of the tree.
func init() { //nolint:gochecknoinits // Serve comes too late: a print before it breaks the handshake
	if !startedByHost() {
		return
	}
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return // no standard output: the host cannot read a handshake, and says so
	}
	if err := dupOver(2, 1); err != nil {
		_ = syscall.Close(fd) // keep standard output as it is: go-plugin then prints there
		return
	}
	handshakeOut = os.NewFile(uintptr(fd), "handshake")
}

func startedByHost() bool { return os.Getenv(cookieKey) == cookieValue }
