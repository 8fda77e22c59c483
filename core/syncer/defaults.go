package syncer

import (
	"math/rand/v2"
	"time"

	"github.com/hashicorp/go-hclog"
)

// tuning is what Config, ReaderConfig and ProbeConfig may leave open. Its defaults stand here and nowhere else.
type tuning struct {
	slots  *Limiter
	budget time.Duration
	jitter func() float64
	log    hclog.Logger
}

func (t tuning) withDefaults() tuning {
	if t.slots == nil {
		t.slots = NewLimiter(DefaultConcurrency)
	}
	if t.budget == 0 {
		t.budget = RetryBudget
	}
	if t.jitter == nil {
		t.jitter = rand.Float64
	}
	if t.log == nil {
		t.log = hclog.NewNullLogger()
	}
	return t
}

// caller makes the calls to a target; the tuning is complete.
func (t tuning) caller(target string, now func() time.Time, note *tally) *caller {
	return &caller{target: target, slots: t.slots, budget: t.budget, now: now, jitter: t.jitter, note: note}
}
