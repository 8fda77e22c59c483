package trigger

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// ceilingByHand is min(cap, base*2^(n-1)) in numbers without end.
func ceilingByHand(base, limit time.Duration, n int) time.Duration {
	if base <= 0 {
		base = time.Second
	}
	if limit < base {
		limit = base
	}
	grown := new(big.Int).Lsh(big.NewInt(int64(base)), uint(min(max(n, 1), 200)-1)) // 200 doublings are beyond every limit
	if grown.Cmp(big.NewInt(int64(limit))) > 0 {
		return limit
	}
	return time.Duration(grown.Int64())
}

func TestWaitsAfterFailuresGrowToTheCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawTarget(t, "offsite")
		n := rapid.OneOf(rapid.IntRange(0, 70), rapid.SampledFrom([]int{math.MinInt, -1, 1000})).Draw(t, "n")
		ceiling := ceilingByHand(p.RetryMin, p.RetryMax, n)
		if got := p.retryCeiling(n); got != ceiling {
			t.Fatalf("ceiling is %d, by hand %d", got, ceiling)
		}
		wait := p.RetryWait(n)
		if wait < ceiling-ceiling/2 || ceiling > 1 && wait >= ceiling {
			t.Fatalf("a wait of %d is outside [0.5, 1) of %d", wait, ceiling)
		}
		if n > 0 && n < 70 && p.retryCeiling(n+1) < ceiling {
			t.Fatalf("the ceiling falls from %d to %d", ceiling, p.retryCeiling(n+1))
		}
	})
}

func TestTargetsThatFailTogetherComeBackApart(t *testing.T) {
	seen := map[time.Duration]string{}
	for _, name := range []string{"near", "far", "offsite", "a", "b", ""} {
		wait := TargetPolicy{Name: name, RetryMin: time.Second, RetryMax: time.Minute}.RetryWait(1)
		if other, ok := seen[wait]; ok {
			t.Errorf("%q and %q both wait %v", name, other, wait)
		}
		seen[wait] = name
	}
}

func TestTheJitterFillsItsRange(t *testing.T) {
	p := TargetPolicy{Name: "offsite", RetryMin: time.Second, RetryMax: time.Second}
	var low, high int
	for n := range 1000 {
		switch wait := p.RetryWait(n + 1); {
		case wait < 550*time.Millisecond:
			low++
		case wait >= 950*time.Millisecond:
			high++
		}
	}
	if low < 50 || high < 50 {
		t.Errorf("of 1000 waits %d are in the lowest tenth and %d in the highest", low, high)
	}
}

func TestTheJitterIsTheSameInEveryVersion(t *testing.T) {
	p := TargetPolicy{Name: "offsite", RetryMin: time.Second, RetryMax: time.Minute}
	if got := p.RetryWait(3); got != 3460744419 {
		t.Errorf("RetryWait(3) is %d", got)
	}
}
