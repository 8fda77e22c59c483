package sqlcircuit

import "context"

// The gate keeps queries that follow one another without a gap from putting the truncation off for ever, and so the WAL from growing: while
// a truncation is due, new queries wait for it. The running ones end by themselves, most in milliseconds; when one lasts longer than
// limits.gate, the gate opens and comes back later. Only while steps wait for the WAL does it stay closed.

// closeGate is for a caller that holds wal.mu.
func (c *Circuit) closeGate() {
	w := &c.wal
	if !w.rest || w.queries == 0 || w.gate != nil || w.gateSpent && !c.tooLong() {
		return
	}
	w.gate = make(chan struct{})
	c.openGateLater(w.gate)
}

// openGate is for a caller that holds wal.mu.
func (w *wal) openGate() {
	if w.gate != nil {
		close(w.gate)
		w.gate = nil
	}
}

func (c *Circuit) openGateLater(gate chan struct{}) {
	c.after(c.limits.gate, func() {
		w := &c.wal
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case w.gate != gate:
		case c.tooLong():
			c.openGateLater(gate)
		default:
			w.openGate()
			w.gateSpent = true
			c.after(10*c.limits.gate, func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.gateSpent = false
				c.closeGate()
			})
		}
	})
}

// enterQuery counts a query in, after waiting at the gate.
func (c *Circuit) enterQuery(ctx context.Context) error {
	w := &c.wal
	for {
		w.mu.Lock()
		gate := w.gate
		if gate == nil {
			w.queries++
			w.mu.Unlock()
			return nil
		}
		w.mu.Unlock()
		select {
		case <-gate:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.life.closing():
			return ErrNotRunning
		}
	}
}

// leaveQuery counts it out and lets what waited for it begin.
func (c *Circuit) leaveQuery() {
	c.wal.mu.Lock()
	c.wal.queries--
	c.wal.mu.Unlock()
	c.startFold()
	c.env.Wake()
}
