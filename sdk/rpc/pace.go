package rpc

import "time"

const (
	// A call may have eventBurst events at once, and then eventGroup each eventPause: 10,000 times what the contract wants of signs of life,
	// 2.5 GB/s in pieces of 256 KiB, and a small part of a core when a plugin sends as many as it can.
	eventBurst = 2000
	eventGroup = 100
	eventPause = 10 * time.Millisecond
)

// pace slows down a call that floods the host with events; gRPC's flow control then slows down the plugin.
type pace struct {
	events int
}

// event counts one, and rests when it is time to. The end of the call ends the rest.
func (p *pace) event(over <-chan struct{}) {
	if p.events++; p.events < eventBurst || p.events%eventGroup != 0 {
		return
	}
	timer := time.NewTimer(eventPause)
	defer timer.Stop()
	select {
	case <-over:
	case <-timer.C:
	}
}
