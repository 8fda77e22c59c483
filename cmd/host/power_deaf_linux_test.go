//go:build torture

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// deafness is a kernel that does not hear some syncs: it answers them with success and does nothing. It is a seccomp filter with a listener, which
// is asked at each fsync and fdatasync, and looks which file it is of.
type deafness struct {
	listener int
	pattern  atomic.Pointer[string]
	deaf     atomic.Int64 // syncs that were not made

	mu      sync.Mutex
	durable map[string]bool // paths of what was in a folder when that was synced
}

// notice is the kernel's struct seccomp_notif.
type notice struct {
	id         uint64
	pid, flags uint32
	call       int32
	arch       uint32
	at         uint64
	args       [6]uint64
}

// verdict is its struct seccomp_notif_resp.
type verdict struct {
	id    uint64
	value int64
	error int32
	flags uint32
}

// deafThread puts this thread, and each process that it starts, before such a kernel, which hears everything at first. The goroutine keeps the
// thread to itself; it ends with it.
func deafThread(t *testing.T) *deafness {
	t.Helper()
	runtime.LockOSThread()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FSYNC, Jt: 2},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FDATASYNC, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	check(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	listener, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		t.Fatalf("seccomp: %v", errno)
	}
	d := &deafness{listener: int(listener), durable: map[string]bool{}}
	d.to("")
	ended, failed := make(chan struct{}), make(chan error, 1)
	go func() { failed <- d.listen(ended) }()
	t.Cleanup(func() {
		close(ended)
		check(t, errors.Join(<-failed, unix.Close(d.listener)))
	})
	return d
}

// to makes it deaf to syncs of what the pattern matches, "" = of nothing, and answers the pattern before.
func (d *deafness) to(pattern string) (before string) {
	if old := d.pattern.Swap(&pattern); old != nil {
		before = *old
	}
	return before
}

// listen answers until the test has ended.
func (d *deafness) listen(ended <-chan struct{}) error {
	for {
		select {
		case <-ended:
			return nil
		default:
		}
		ready := []unix.PollFd{{Fd: int32(d.listener), Events: unix.POLLIN}}
		if n, err := unix.Poll(ready, 20); n < 1 || ready[0].Revents&unix.POLLIN == 0 {
			if err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
			continue
		}
		if err := d.answer(); err != nil && !errors.Is(err, unix.ENOENT) { // it has been killed meanwhile
			return err
		}
	}
}

func (d *deafness) answer() error {
	var asked notice
	if err := d.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&asked)); err != nil {
		return err
	}
	said := verdict{id: asked.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", asked.pid, int32(asked.args[0]))) // it may have been killed meanwhile
	if pattern := *d.pattern.Load(); pattern != "" && regexp.MustCompile(pattern).MatchString(path) {
		said.flags = 0
		d.deaf.Add(1)
	}
	d.note(path)
	return d.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&said))
}

// note writes down what becomes durable when that folder is synced: who asked waits meanwhile.
func (d *deafness) note(path string) {
	entries, _ := os.ReadDir(path)                 // a file has none
	path = strings.ReplaceAll(path, "/.tmp-", "/") // a checkpoint is synced before it gets its name
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range entries {
		d.durable[filepath.Join(path, e.Name())] = true
	}
}

// fleeting are the paths below dir whose names no sync has made durable. Those that skip says may go.
func (d *deafness) fleeting(t *testing.T, dir string, skip func(name string) bool) (paths []string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	check(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || path == dir:
			return err
		case skip(e.Name()) && e.IsDir():
			return fs.SkipDir
		case !skip(e.Name()) && !d.durable[path]:
			paths = append(paths, path)
		}
		return nil
	}))
	return paths
}

func (d *deafness) ioctl(request uintptr, arg unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.listener), request, uintptr(arg))
	if errno != 0 {
		return errno
	}
	return nil
}
