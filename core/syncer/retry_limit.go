package syncer

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/cairnsync/cairn/sdk"
)

// DefaultConcurrency is how many calls of one target are in flight at most: enough to hide 75 ms of latency behind packs of 16 MiB, few
// enough for a store at home.
const DefaultConcurrency = 8

// Limiter bounds the calls in flight to one target, over all pipelines that use it, and serves them in turn. A store that throttles
// halves the bound; each bound's worth of calls that go well raises it by one, as TCP does. It needs no clock and no goroutine.
type Limiter struct {
	mu      sync.Mutex
	ceiling float64
	bound   float64 // 1 … ceiling
	inUse   int
	cuts    uint64          // how often the bound was halved
	waiting []chan struct{} // in turn; closed when its owner may go
}

// slot is the right to make one call.
type slot struct {
	cuts uint64 // of the limiter when the call began
}

// NewLimiter bounds calls in flight to ceiling, which is at least 1.
func NewLimiter(ceiling int) *Limiter {
	bound := float64(max(1, ceiling))
	return &Limiter{ceiling: bound, bound: bound}
}

// InFlight is the current number of calls and their current bound, for status.
func (l *Limiter) InFlight() (calls, bound int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inUse, int(l.bound)
}

func (l *Limiter) acquire(ctx context.Context) (slot, error) {
	if err := ctx.Err(); err != nil {
		return slot{}, err
	}
	l.mu.Lock()
	if len(l.waiting) == 0 && l.inUse < int(l.bound) {
		l.inUse++
		s := slot{cuts: l.cuts}
		l.mu.Unlock()
		return s, nil
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return l.begin(), nil
	case <-ctx.Done():
		l.leave(turn)
		return slot{}, ctx.Err()
	}
}

func (l *Limiter) begin() slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slot{cuts: l.cuts}
}

// leave gives up a place in the queue, or the slot itself when it was granted in the same moment.
func (l *Limiter) leave(turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, turn); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return
	}
	l.inUse--
	l.admit()
}

// release ends a call that returned err. Of all calls that were in flight when the store began to throttle, one halves the bound.
func (l *Limiter) release(s slot, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.bound = min(l.ceiling, l.bound+1/l.bound)
	case errors.Is(err, sdk.Throttled) && s.cuts == l.cuts:
		l.cuts++
		l.bound = max(1, l.bound/2)
	}
	l.inUse--
	l.admit()
}

// admit lets the next in turn go; the caller holds the lock.
func (l *Limiter) admit() {
	for len(l.waiting) > 0 && l.inUse < int(l.bound) {
		l.inUse++
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}
