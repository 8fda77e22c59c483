package trigger_test

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/trigger"
)

// A loop looks at the world, asks, acts, and looks again.
func ExampleDecide() {
	policy := trigger.Policy{CheckpointEvery: 10 * time.Second, MaxDelay: time.Second, MinBatch: 100}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	facts := trigger.Facts{
		Now: now, Step: 7, Buffered: 3,
		Published: trigger.Checkpoint{ID: uuid.UUID{1}, Step: 6, At: now.Add(-9500 * time.Millisecond)},
	}

	var state trigger.State
	var decision trigger.Decision
	for range 3 {
		decision, state = trigger.Decide(policy, state, facts)
		fmt.Println(facts.Now.Format("05.0"), decision.Kind, decision.Why)
		switch decision.Kind {
		case trigger.Park:
			facts.Now = decision.Until
		case trigger.TakeCheckpoint:
			facts.CheckpointRunning = true
		}
	}
	// Output:
	// 00.0 park until the next checkpoint
	// 00.5 checkpoint checkpoint interval passed
	// 00.5 park until the input has waited long enough
}
