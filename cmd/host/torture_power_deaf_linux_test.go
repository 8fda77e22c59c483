//go:build torture

package main

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestTortureWithoutSyncsNoPromiseSurvivesAPowerCut proves that the power cuts cut: on a machine that answers every sync with success and does nothing,
// each promise is seen to be broken.
func TestTortureWithoutSyncsNoPromiseSurvivesAPowerCut(t *testing.T) {
	plugins := buildPlugins(t)
	for _, p := range promises() {
		if p.told == "the pipeline goes on" {
			continue // so it does when nothing was ever said
		}
		t.Run(p.told, func(t *testing.T) {
			m := newMachine(t, plugins, quiet())
			deafThread(t)
			if faults := strings.Join(m.broken(p), "\n"); !strings.Contains(faults, p.loss) {
				t.Errorf("no sync was made, and %q is not among what is missed:\n%s", p.loss, faults)
			}
		})
	}
}

// deafThread makes fsync and fdatasync of this thread, and of each process it starts, succeed without being made. The goroutine keeps the
// thread to itself; it ends with it.
func deafThread(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FSYNC, Jt: 2},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FDATASYNC, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO}, // errno 0: success
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	check(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	check(t, unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0))
	runtime.KeepAlive(filter)
}
