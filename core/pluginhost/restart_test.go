package pluginhost

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestThePauseDoublesFromOneSecondToOneMinute(t *testing.T) {
	p := RestartPolicy{}.withDefaults()
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
		if got := p.pause(i+1, 0); got != want*time.Second {
			t.Errorf("after %d failures in a row: %v without jitter, want %v", i+1, got, want*time.Second)
		}
	}
	for i, under := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
		if got := p.pause(i+1, 0.999); got > under*time.Second || got < under*time.Second*9/10 {
			t.Errorf("after %d failures in a row: %v with full jitter, want just under %v", i+1, got, under*time.Second)
		}
	}
}

// crash is the end of a process that had served for that long.
func crash(at time.Time, served time.Duration) life {
	return life{exit: Exit{At: at}, ready: true, served: served}
}

func TestFailedStartsAreRepeatedForEverAndDoNotCountAsCrashes(t *testing.T) {
	p := RestartPolicy{}.withDefaults()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var f failures
	for n := range 1000 {
		var pause time.Duration
		var broken bool
		if f, pause, broken = f.next(p, life{exit: Exit{At: now}}, 0.5); broken {
			t.Fatalf("broken by failed start %d", n+1)
		}
		if n > 10 && pause < p.Max/2 {
			t.Fatalf("pause %v after %d failed starts", pause, n+1)
		}
		now = now.Add(time.Millisecond)
	}
	for n := 1; n <= p.Crashes; n++ {
		var broken bool
		if f, _, broken = f.next(p, crash(now, 0), 0); broken != (n == p.Crashes) {
			t.Errorf("crash %d: broken %t", n, broken)
		}
	}
}

func TestFiveCrashesInTenMinutesBreakATarget(t *testing.T) {
	p := RestartPolicy{}.withDefaults()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name  string
		every time.Duration
		want  int // failures until broken, 0 = never within 50
	}{
		{"at once", 0, 5},
		{"every minute", time.Minute, 5},
		{"the first is just inside the window of the fifth", 10*time.Minute/4 - time.Second, 5},
		{"the first is just outside", 10 * time.Minute / 4, 0},
		{"rarely", time.Hour, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			var f failures
			for n := 1; n <= 50; n++ {
				var broken bool
				if f, _, broken = f.next(p, crash(start.Add(time.Duration(n)*row.every), 0), 0); broken {
					if n != row.want {
						t.Fatalf("broken at failure %d, want %d", n, row.want)
					}
					return
				}
			}
			if row.want != 0 {
				t.Fatal("never broken")
			}
		})
	}
}

func TestAProcessThatServedForAWholeWindowStartsThePauseAnew(t *testing.T) {
	p := RestartPolicy{}.withDefaults()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var f failures
	for range 20 {
		now = now.Add(5 * time.Minute)
		f, _, _ = f.next(p, crash(now, 5*time.Minute), 0)
	}
	if f.inRow != 20 {
		t.Fatalf("%d in a row, want 20", f.inRow)
	}
	if f, pause, _ := f.next(p, crash(now.Add(p.Window), p.Window), 0); f.inRow != 1 || pause != p.Min {
		t.Errorf("%d in a row, pause %v", f.inRow, pause)
	}
}

func TestEveryPauseLiesBetweenMinAndMax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := RestartPolicy{
			Min: time.Duration(rapid.Int64Range(-1, int64(time.Hour)).Draw(t, "min")),
			Max: time.Duration(rapid.Int64Range(-1, 1<<62).Draw(t, "max")),
		}.withDefaults()
		pause := p.pause(rapid.IntRange(1, 1000).Draw(t, "in row"), rapid.Float64Range(0, 0.9999999).Draw(t, "jitter"))
		if pause < p.Min || pause > p.Max {
			t.Fatalf("%v is not between %v and %v", pause, p.Min, p.Max)
		}
	})
}
