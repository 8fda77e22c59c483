package trigger

import "time"

// Clamp turns a wall time that was read back from disk into a time of the loop's monotonic clock. start is when the loop started, taken
// from that clock; every persisted time among the Facts passes through here once, when it is loaded.
//
// A time in the future, left by a clock that has been set back since, becomes start: what counts from it waits one full interval and no
// more. Clamping on every look instead would move it along with the clock, and its interval would never end. A zero time stays zero.
func Clamp(saved, start time.Time) time.Time {
	switch {
	case saved.IsZero():
		return saved
	case saved.After(start):
		return start
	default:
		return start.Add(saved.Sub(start)) // the sum carries start's monotonic reading
	}
}
