package pluginhost

import "time"

const (
	// A process may log quotaBurst lines at once, the trace of a Go panic with hundreds of goroutines, and quotaRate a second for ever. A line
	// counts once for each quotaBytes begun, so that is at most 50 KiB a second.
	quotaBurst = 2000
	quotaRate  = 100
	quotaBytes = 512

	// Whatever a plugin writes, logged or not, is read no faster than the host can afford: a line costs 1 and what is parsed of it 1 for each
	// effortParsed bytes, what is skipped 1 for each effortSkipped. After each effortRest of them the reader rests for effortPause. That is
	// at most 100,000 lines, 6 MiB of text or 100 MiB of one endless line a second; a pipe holds 64 KiB, so that a sane plugin notices nothing.
	effortParsed  = 64
	effortSkipped = 1 << 10
	effortRest    = 1000
	effortPause   = 10 * time.Millisecond
)

// quota is a bucket of tokens, one a line, that fills with time. The zero value is full.
type quota struct {
	spent   float64   // tokens that are missing at the time at
	at      time.Time // of the last take
	dropped int       // lines since the last one that was let through
}

// take asks to log a line of so many bytes. dropped counts the lines that were dropped before it, itself included when it is. It reads no
// clock.
func (q *quota) take(now time.Time, size int) (ok bool, dropped int) {
	if now.After(q.at) {
		q.spent = max(0, q.spent-quotaRate*now.Sub(q.at).Seconds())
		q.at = now
	}
	cost := float64(1 + size/quotaBytes)
	if q.spent+cost > quotaBurst {
		q.dropped++
		return false, q.dropped
	}
	q.spent += cost
	dropped, q.dropped = q.dropped, 0
	return true, dropped
}

// effort is what reading one stream has cost since the last rest.
type effort int

// spend adds to it, and rests when it is time to.
func (e *effort) spend(cost int) {
	if *e += effort(cost); *e >= effortRest {
		*e = 0
		<-time.After(effortPause)
	}
}
