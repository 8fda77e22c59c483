package main

import "golang.org/x/sys/unix"

// keepDescriptors marks what this process inherited beside the standard three as close-on-exec, so that no plugin gets it. A kernel
// without the call (before 5.11) leaves things as they are.
func keepDescriptors() { _ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) }
