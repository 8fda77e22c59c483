package pluginhost

import "time"

// RestartPolicy says when a process that ended, or would not start, is started again. Zero fields mean the default.
//
// A start that fails is repeated for ever: what it lacks, a file, room on a disk, a key, may come without anybody telling the host. A process
// that served and died again and again is left alone, for its work itself may be what kills it.
type RestartPolicy struct {
	Min, Max time.Duration // pause before a start: 1 s after the first failure, doubled up to 60 s, with jitter
	Crashes  int           // this many processes that were ready and then died
	Window   time.Duration // within this time break the target until Reset: 5 in 10 minutes
}

func (p RestartPolicy) withDefaults() RestartPolicy {
	if p.Min <= 0 {
		p.Min = time.Second
	}
	if p.Max < p.Min {
		p.Max = max(time.Minute, p.Min)
	}
	if p.Crashes <= 0 {
		p.Crashes = 5
	}
	if p.Window <= 0 {
		p.Window = 10 * time.Minute
	}
	return p
}

// life is one attempt to have a process, after its end.
type life struct {
	exit   Exit
	ready  bool          // it came to serve; else its start failed
	served time.Duration // since it was ready
}

// failures is what the policy remembers of one target. It reads no clock.
type failures struct {
	crashes []time.Time // within the window of the newest
	inRow   int         // ends of any kind since a process last served for a whole window
}

// next notes the end of a life, and answers how long to wait before the next start, or that the target is broken. jitter is in [0, 1).
func (f failures) next(p RestartPolicy, l life, jitter float64) (_ failures, pause time.Duration, broken bool) {
	if l.served >= p.Window {
		f.inRow = 0
	}
	f.inRow++
	if !l.ready {
		return f, p.pause(f.inRow, jitter), false
	}
	crashes := []time.Time{l.exit.At}
	for _, at := range f.crashes {
		if l.exit.At.Sub(at) < p.Window {
			crashes = append(crashes, at)
		}
	}
	f.crashes = crashes
	if len(crashes) >= p.Crashes {
		return f, 0, true
	}
	return f, p.pause(f.inRow, jitter), false
}

// pause is drawn from the upper half of twice Min, four times Min and so on: never below Min, never above Max.
func (p RestartPolicy) pause(inRow int, jitter float64) time.Duration {
	ceiling := p.Min
	for i := 0; i < inRow && ceiling < p.Max; i++ {
		ceiling = min(2*ceiling, p.Max)
	}
	return max(p.Min, ceiling/2+time.Duration(jitter*float64(ceiling/2)))
}
