package trigger

import (
	"strings"
	"testing"
	"time"
)

func TestASavedTimeOfThePastIsKept(t *testing.T) {
	if got := Clamp(ago(time.Hour), epoch); !got.Equal(ago(time.Hour)) {
		t.Errorf("got %v", got)
	}
}

func TestASavedTimeOfTheFutureBecomesTheStart(t *testing.T) {
	if got := Clamp(in(time.Hour), epoch); !got.Equal(epoch) {
		t.Errorf("got %v", got)
	}
}

func TestASavedTimeThatIsAbsentStaysAbsent(t *testing.T) {
	if got := Clamp(time.Time{}, epoch); !got.IsZero() {
		t.Errorf("got %v", got)
	}
}

func TestAClampedTimeIsOfTheMonotonicClock(t *testing.T) {
	start := time.Now() // with a monotonic reading, as a loop's start has
	for _, saved := range []time.Time{start.Round(0).Add(-time.Second), start.Round(0).Add(time.Hour)} {
		if got := Clamp(saved, start); !strings.Contains(got.String(), " m=") {
			t.Errorf("Clamp(%v) = %v has no monotonic reading", saved, got)
		}
	}
}
