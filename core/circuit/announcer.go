package circuit

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// firstAnnouncement is how long a wait lasts before the log hears of it; each later line comes after twice the time.
const firstAnnouncement = time.Second

// announcer tells the log about one wait at a time: after 1, 2, 4 … seconds, with the reason. It runs on timers of its own, so that it also
// speaks while the loop's goroutine is inside a step, and costs nothing while nothing is waited for.
type announcer struct {
	log hclog.Logger

	mu     sync.Mutex
	reason string // "" = nothing is waited for
	timer  *time.Timer
	waited time.Duration // until the timer fires
}

// set says what is being waited for. The same reason again goes on with the wait; "" ends it.
func (a *announcer) set(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if reason == a.reason {
		return
	}
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	a.reason = reason
	if reason != "" {
		a.arm(firstAnnouncement, firstAnnouncement)
	}
}

// arm has the lock. Whether a timer that fires late still belongs to the current wait is told by its identity.
func (a *announcer) arm(wait, total time.Duration) {
	a.waited = total
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.timer != timer {
			return
		}
		a.log.Info("still waiting", "for", a.reason, "waited", a.waited)
		a.arm(a.waited, 2*a.waited)
	})
	a.timer = timer
}
