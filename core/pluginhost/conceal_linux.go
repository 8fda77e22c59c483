package pluginhost

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Conceal has the kernel keep this process's memory, environment and descriptors from other processes of the same user, which plugins are: they lie in
// /proc otherwise, with the secrets of every target. It also keeps it from leaving a core file. It is for the main of a host, before plugins are
// started: whether a whole process may be looked into is not for a library to decide. Root, with its capabilities, is let in all the same.
func Conceal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep other processes out of this one: %w", err)
	}
	return nil
}
