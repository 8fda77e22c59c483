//go:build torture || cloud

package main

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/sdk/client"
)

// lookout watches the hosts of one repository: what they say of themselves, what lies on the target, and what lies on their disks.
type lookout struct {
	t      *testing.T
	ledger *ledger

	mu      sync.Mutex // guards what the watchers write
	witness *witness
	looks   int
}

func newLookout(t *testing.T, target string) *lookout {
	t.Helper()
	return &lookout{t: t, ledger: newLedger(target), witness: &witness{files: map[uuid.UUID]string{}}}
}

// watch looks at each host 20 times a second until the returned function is called.
func (l *lookout) watch(hosts ...*fighter) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, x := range hosts {
		all.Go(func() { l.watchOne(ctx, x.name, x.url, x.dir) })
	}
	end = sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
	l.t.Cleanup(end)
	return end
}

func (l *lookout) watchOne(ctx context.Context, name, url, dir string) {
	o := newObserver(url, l.ledger.dir)
	o.api = client.New(url, &http.Client{Timeout: time.Second})
	tick := time.NewTicker(time.Second / 20)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			l.mu.Lock()
			defer l.mu.Unlock()
			l.looks += o.looks
			for _, fault := range o.faults {
				l.t.Errorf("host %s: %s", name, fault)
			}
			return
		case <-tick.C:
		}
		claims, ok := o.claims(ctx)
		if ok {
			o.looks++
		}
		l.ledger.judge(name, claims)
		l.mu.Lock()
		l.witness.see(dir)
		l.mu.Unlock()
	}
}

// allRestored restores everything that readers see, while no host writes.
func (l *lookout) allRestored() (count, witnessed int) {
	l.t.Helper()
	l.ledger.look()
	l.mu.Lock()
	defer l.mu.Unlock()
	return allRestored(l.t, l.ledger, l.witness)
}
