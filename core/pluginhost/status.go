package pluginhost

import "time"

// State is where a target's process stands.
type State string

// The states. A target is usable in StateReady; calls wait through StateStarting and StateDegraded and fail in the other two.
const (
	StateStarting State = "starting" // the first start is under way
	StateReady    State = "ready"    // configured and serving
	StateDegraded State = "degraded" // its process ended or would not start; another start is under way or scheduled
	StateBroken   State = "broken"   // its processes crashed too often; nothing happens until Reset
	StateStopped  State = "stopped"  // Run has ended
)

// Status is a snapshot of one target, for people and metrics.
type Status struct {
	Target, Plugin, Path string

	State    State
	Since    time.Time // when it entered State
	PID      int       // 0 = no process
	Restarts int       // starts after the first, since Run began
	NextTry  time.Time // in StateDegraded while waiting, else zero
	LastExit Exit      // zero = no process has ended yet

	SHA256      [32]byte // of the binary that runs or ran last
	Name        string   // what the plugin says of itself; empty before its first start
	Version     string
	Description string
}

// Exit is how a process ended, or why one did not start.
type Exit struct {
	At     time.Time
	Reason string
	Stderr []string // the last lines it wrote, at most reportLines, oldest first

	whole bool // Reason repeats what matters of Stderr
}

// reportLines is how many last lines an exit shows: a Go panic with the goroutine that caused it.
const reportLines = 40
