package pluginhost

import "time"

const (
	// A process may log quotaBurst lines at once, the trace of a Go panic with hundreds of goroutines, and quotaRate a second for ever. A line
	// counts once for each quotaBytes begun, so that is at most 50 KiB a second.
	quotaBurst = 2000
	quotaRate  = 100
	quotaBytes = 512

	// A flood is not only dropped, it is read slowly: after each floodLines dropped lines its reader rests for floodPause.
	floodLines = 1000
	floodPause = 10 * time.Millisecond
)

// quota is a bucket of tokens, one a line, that fills with time. The zero value is full.
type quota struct {
	spent   float64   // tokens that are missing at the time at
	at      time.Time // of the last take
	dropped int       // lines since the last one that was let through
}

// take asks to log a line of so many bytes. dropped counts the lines that were dropped before it, itself included when it is; pause = the
// reader shall rest. It reads no clock.
func (q *quota) take(now time.Time, size int) (ok bool, dropped int, pause bool) {
	if now.After(q.at) {
		q.spent = max(0, q.spent-quotaRate*now.Sub(q.at).Seconds())
		q.at = now
	}
	cost := float64(1 + size/quotaBytes)
	if q.spent+cost > quotaBurst {
		q.dropped++
		return false, q.dropped, q.dropped%floodLines == 0
	}
	q.spent += cost
	dropped, q.dropped = q.dropped, 0
	return true, dropped, false
}
