package pluginhost

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestTheQuotaIsABurstAndThenARate(t *testing.T) {
	var q quota
	now := time.Unix(1000, 0)
	let := func(n, size int) (through, rests int) {
		for range n {
			ok, _, pause := q.take(now, size)
			if ok {
				through++
			}
			if pause {
				rests++
			}
		}
		return through, rests
	}
	if got, rests := let(10_000, 10); got != quotaBurst || rests != 8 {
		t.Errorf("at once: %d lines and %d rests, want %d and 8", got, rests, quotaBurst)
	}
	if now = now.Add(-time.Hour); q.dropped != 8000 {
		t.Errorf("%d dropped", q.dropped)
	}
	if got, _ := let(10, 10); got != 0 {
		t.Errorf("a clock set back lets %d through", got)
	}
	if now = now.Add(time.Hour + time.Second); true {
		ok, dropped, _ := q.take(now, 10)
		if got, _ := let(10_000, 10); !ok || dropped != 8010 || got != quotaRate-1 {
			t.Errorf("a second later: %v after %d dropped, then %d", ok, dropped, got)
		}
	}
	if now = now.Add(24 * time.Hour); true {
		if got, _ := let(10_000, maxLine); got != quotaBurst/(1+maxLine/quotaBytes) {
			t.Errorf("%d long lines", got)
		}
	}
}

func TestDroppedLinesAreToldInTheLogAndKeptForTheCrashReport(t *testing.T) {
	var log strings.Builder
	now := time.Unix(1000, 0)
	o := newOutput(hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Info}), nil, func() time.Time { return now })
	o.stderr(strings.NewReader(strings.Repeat("below the level of this log\n", 5000)))
	if log.Len() > 0 {
		t.Fatalf("debug lines are logged: %.100s", log.String())
	}
	o.stderr(strings.NewReader(strings.Repeat("[ERROR] x\n", 3000) + "[ERROR] the last\n"))
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != quotaBurst+1 || !strings.Contains(lines[quotaBurst], "lines are dropped") {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
	if last := o.tail.last(1); last[0] != "[ERROR] the last" {
		t.Errorf("the tail ends with %q", last)
	}
	now = now.Add(time.Second)
	o.stderr(strings.NewReader("[ERROR] later\n"))
	o.close()
	if text := log.String(); strings.Count(text, "lines=1001") != 1 || !strings.Contains(text, "later") {
		t.Errorf("the log ends %q", text[len(text)-200:])
	}
	o.stderr(strings.NewReader(strings.Repeat("[ERROR] x\n", 200)))
	o.close()
	o.close()
	if text := log.String(); strings.Count(text, "lines of the plugin were dropped") != 2 {
		t.Error("what was dropped at the end is not told once")
	}
}
