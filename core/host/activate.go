package host

import "context"

// Activate makes a standby the primary. Standby is not built yet, so no pipeline is ever in the state from which it can be activated.
func (p *pipeline) Activate(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.transition("activate")
}
