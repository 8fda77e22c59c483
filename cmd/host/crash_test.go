package main

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// atPoint is a hook that does something when a named point is passed for the nth time.
func atPoint(name string, nth int, do func()) func(string) {
	var passed atomic.Int64
	return func(point string) {
		if point == name && passed.Add(1) == int64(nth) {
			do()
		}
	}
}

// crash ends this process as kill -9 does.
func crash() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // nothing is left to report an error to
	select {}
}

// stall stops this process until it gets SIGCONT.
func stall() {
	woken := make(chan os.Signal, 1)
	signal.Notify(woken, syscall.SIGCONT)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // whoever set the point sees that nothing stopped
	<-woken                                        // not before, whichever thread the signal has stopped first
}
