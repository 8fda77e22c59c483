package trigger

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"strconv"
	"time"
)

// defaultRetryMin stands in for a RetryMin that is not positive.
const defaultRetryMin = time.Second

// RetryWait is how long the trigger waits after the n-th failure in a row (n >= 1) before it starts a periodic push again:
// min(RetryMax, RetryMin * 2^(n-1)) * j, with j in [0.5, 1) drawn from a hash of Name and n. The hash sets targets apart that failed
// together, and still lets status name the moment and a test expect it.
func (p TargetPolicy) RetryWait(n int) time.Duration {
	ceiling := p.retryCeiling(n)
	jitter, _ := bits.Mul64(uint64(ceiling/2), hash(p.Name, n)) // the high word: (ceiling/2) * [0, 1)
	return ceiling - ceiling/2 + time.Duration(jitter)
}

// StepRetryAt is when a step is tried again after one that found the disk full; zero = no such step has failed. The waits double from a
// second to half a minute: a check that finds the disk still full costs one transaction that is rolled back.
func (f Facts) StepRetryAt() time.Time {
	if f.StepFailures <= 0 {
		return time.Time{}
	}
	waits := TargetPolicy{Name: "step", RetryMin: time.Second, RetryMax: 30 * time.Second}
	return f.StepFailedAt.Add(waits.RetryWait(f.StepFailures))
}

// retryCeiling is the wait without jitter. It compares before it shifts, so that no number of failures overflows it.
func (p TargetPolicy) retryCeiling(n int) time.Duration {
	base := p.RetryMin
	if base <= 0 {
		base = defaultRetryMin
	}
	limit := max(p.RetryMax, base)
	doublings := max(n, 1) - 1
	if base > limit>>doublings {
		return limit
	}
	return base << doublings
}

// hash spreads (name, n) evenly over 64 bits, the same on every machine and in every version.
func hash(name string, n int) uint64 {
	sum := sha256.Sum256([]byte(name + "\x00" + strconv.Itoa(n)))
	return binary.BigEndian.Uint64(sum[:])
}
