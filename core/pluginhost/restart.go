package pluginhost

import "time"

// RestartPolicy says when a process that ended is started again. Zero fields mean the default.
type RestartPolicy struct {
	Min, Max time.Duration // pause before a start: 1 s after the first failure, doubled up to 60 s, with jitter
	Crashes  int           // this many failures
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

// failures is what the policy remembers of one target. It reads no clock.
type failures struct {
	recent []time.Time // within the window of the newest
	inRow  int         // since a process last served for a whole window
}

// next notes a failure at now of a process that had served for that long (0 = it never did), and answers how long to wait before the next
// start, or that there shall be none. jitter is in [0, 1).
func (f failures) next(p RestartPolicy, now time.Time, served time.Duration, jitter float64) (failures, time.Duration, bool) {
	recent := []time.Time{now}
	for _, at := range f.recent {
		if now.Sub(at) < p.Window {
			recent = append(recent, at)
		}
	}
	if served >= p.Window {
		f.inRow = 0
	}
	f = failures{recent: recent, inRow: f.inRow + 1}
	if len(recent) >= p.Crashes {
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
