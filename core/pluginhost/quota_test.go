package pluginhost

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestTheQuotaIsABurstAndThenARate(t *testing.T) {
	var q quota
	now := time.Unix(1000, 0)
	let := func(n, size int) (through int) {
		for range n {
			if ok, _ := q.take(now, size); ok {
				through++
			}
		}
		return through
	}
	if got := let(10_000, 10); got != quotaBurst {
		t.Errorf("at once: %d lines, want %d", got, quotaBurst)
	}
	if now = now.Add(-time.Hour); q.dropped != 8000 {
		t.Errorf("%d dropped", q.dropped)
	}
	if got := let(10, 10); got != 0 {
		t.Errorf("a clock set back lets %d through", got)
	}
	if now = now.Add(time.Hour + time.Second); true {
		ok, dropped := q.take(now, 10)
		if got := let(10_000, 10); !ok || dropped != 8010 || got != quotaRate-1 {
			t.Errorf("a second later: %v after %d dropped, then %d", ok, dropped, got)
		}
	}
	if now = now.Add(24 * time.Hour); true {
		if got := let(10_000, maxLine); got != quotaBurst/(1+maxLine/quotaBytes) {
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

// A host whose log takes errors only reads no less than one that takes all, and must not be kept busy by what it throws away.
func TestAFloodIsReadSlowlyWhateverBecomesOfIt(t *testing.T) {
	for name, row := range map[string]struct {
		text string
		want time.Duration
	}{
		"empty lines":     {strings.Repeat("\n", 100_000), 100 * effortPause},
		"short lines":     {strings.Repeat("below the level of this log\n", 100_000), 100 * effortPause},
		"long lines":      {strings.Repeat(`{"@level":"debug","x":"`+strings.Repeat("x", 10_000)+"\"}\n", 300), 42 * effortPause},
		"an endless line": {strings.Repeat("x", 8<<20), 8 * effortPause},
		"a long trace":    {strings.Repeat("goroutine 7 [running]:\n", 900), 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := newOutput(hclog.New(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Error}), nil, time.Now)
			began := time.Now()
			o.stderr(strings.NewReader(row.text))
			if took := time.Since(began); took != row.want {
				t.Errorf("%s take %v, want %v", name, took, row.want)
			}
		})
	}
}
