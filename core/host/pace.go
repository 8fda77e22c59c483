package host

import (
	"context"
	"time"
)

// pace is how long a host goes on trying, and waits between two attempts. Only a test has one of its own: what answers at all answers it soon.
type pace struct {
	remote time.Duration // how long one call to a store is repeated while somebody waits for an answer of the API
	first  time.Duration // the wait before a target that did not answer is tried again; each later one is twice as long
	most   time.Duration // no wait is longer
}

// usual is the pace for stores that may be far away and people who wait for an answer.
func usual() pace { return pace{remote: 30 * time.Second, first: time.Second, most: time.Minute} }

// again calls try after the first wait, and after longer and longer ones, until it says that it is done or ctx ends.
func (p pace) again(ctx context.Context, try func() (done bool)) {
	for wait := p.first; ; wait = min(2*wait, p.most) {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if try() {
			return
		}
	}
}
