package pluginhost

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// confine bounds what a process that was just started may take from the machine, and its children with it.
//
// When memory runs out the kernel is to end the plugin rather than the host: its score says so, without asking for any privilege. A core file would
// lay the target's secrets on disk: there is none. memory, when not 0, bounds the data that each process maps; address space would be the
// wrong measure, for a Go program reserves much more of it than it uses.
func confine(pid int, memory int64) error {
	errs := []error{
		os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0),
		setLimit(pid, unix.RLIMIT_CORE, 0),
	}
	if memory > 0 {
		errs = append(errs, setLimit(pid, unix.RLIMIT_DATA, uint64(memory)))
	}
	return errors.Join(errs...)
}

func setLimit(pid, resource int, limit uint64) error {
	if err := unix.Prlimit(pid, resource, &unix.Rlimit{Cur: limit, Max: limit}, nil); err != nil {
		return fmt.Errorf("limit resource %d of process %d: %w", resource, pid, err)
	}
	return nil
}
