//go:build torture || cloud

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk/client"
)

// event is one thing that a referee does to a host.
type event struct {
	name   string
	weight int
	do     func(victim, other *fighter)
}

func (f *fight) events() []event {
	return []event{
		{"kill -9, restart on the same data folder", 4, func(v, _ *fighter) { v.kill(); v.start("") }},
		{"kill -9, restart on an empty data folder", 3, func(v, _ *fighter) { v.kill(); v.freshData(); v.start("") }},
		{"kill -9 at a named point of a push", 4, func(v, _ *fighter) { f.killAtPoint(v, pointsOfAPush()) }},
		{"kill -9 at a named point of retention or sweep", 4, func(v, _ *fighter) { f.killAtPoint(v, pointsOfUpkeep()) }},
		{"a commit is pinned", 1, f.pin},
		{"stop in order, restart", 1, func(v, _ *fighter) { f.stopInOrder(v); v.start("") }},
		{"host stalled", 4, f.stallHost},
		{"plugin stalled", 3, f.stallPlugin},
		{"plugin killed", 2, f.killPlugin},
		{"both killed", 1, func(v, o *fighter) { v.kill(); o.kill(); v.start(""); o.start("") }},
	}
}

// round is one event, drawn by weight.
func (f *fight) round() {
	f.t.Helper()
	i := f.chance.IntN(2)
	victim, other := f.fighters[i], f.fighters[1-i]
	events := f.events()
	sum := 0
	for _, e := range events {
		sum += e.weight
	}
	for at := f.chance.IntN(sum); len(events) > 0; events = events[1:] {
		if at -= events[0].weight; at < 0 {
			break
		}
	}
	f.tally[events[0].name]++
	events[0].do(victim, other)
}

// killAtPoint restarts a host so that it ends at one of the named points, if it comes to it.
func (f *fight) killAtPoint(v *fighter, points []string) {
	point := points[f.chance.IntN(len(points))]
	v.kill()
	v.start(point + ":1")
	f.word(v)
	if v.ended(4 * time.Second) {
		if !v.host.killedItself() {
			f.t.Fatalf("host %s ended by itself on the way to %s: %v", v.name, point, v.host.err)
		}
		f.tally["  reached "+point]++
	}
	v.kill()
	v.start("")
}

// pin has a host promise to keep the newest commit for good. One that has lost, or that has pushed nothing yet, may not.
func (f *fight) pin(v, _ *fighter) {
	n := f.ledger.newest().Number
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	if _, err := v.api.Pin(ctx, pipe, fmt.Sprintf("fight-%d", n), client.PinOptions{Commit: n}); err == nil {
		f.ledger.pin(n)
		f.tally["  promised to keep a commit"]++
	}
}

// stopInOrder asks a host to end. What it answers depends on whether it may push: a fenced one says that its last push did not come through.
func (f *fight) stopInOrder(v *fighter) {
	check(f.t, v.host.cmd.Process.Signal(os.Interrupt))
	if !v.ended(patience) {
		f.t.Fatalf("host %s does not stop", v.name)
	}
	v.host = nil
}

// stall is how long: mostly short, sometimes longer than a host bears a plugin's silence.
func (f *fight) stall() time.Duration {
	if f.chance.IntN(6) == 0 {
		return 11*time.Second + time.Duration(f.chance.Int64N(int64(4*time.Second)))
	}
	return time.Duration(f.chance.Int64N(int64(1500 * time.Millisecond)))
}

// stallHost stops a host's process, mostly lets the other take over meanwhile, and lets the first go on.
func (f *fight) stallHost(v, o *fighter) {
	send(f.t, v.host.pid(), syscall.SIGSTOP)
	f.meanwhile(o)
	send(f.t, v.host.pid(), syscall.SIGCONT)
}

// stallPlugin does the same with a plugin's process, which its host may have replaced in the end.
func (f *fight) stallPlugin(v, o *fighter) {
	pid := f.plugin(v)
	if pid == 0 {
		return
	}
	send(f.t, pid, syscall.SIGSTOP)
	f.meanwhile(o)
	if pluginPID(v.host.pid()) == pid {
		send(f.t, pid, syscall.SIGCONT)
	}
}

// meanwhile is the time of a stall.
func (f *fight) meanwhile(o *fighter) {
	over := time.NewTimer(f.stall())
	if f.chance.IntN(3) > 0 && f.word(o) {
		f.tally["  takeover during a stall"]++
	}
	<-over.C
}

func (f *fight) killPlugin(v, _ *fighter) {
	if pid := f.plugin(v); pid != 0 {
		send(f.t, pid, syscall.SIGKILL)
	}
}

// plugin is the process of a host that has read its configuration, 0 while there is none. Before that the host asks the plugin for its
// schema, and rightly ends when that fails.
func (f *fight) plugin(v *fighter) int {
	if v.view().Name == "" {
		return 0
	}
	return pluginPID(v.host.pid())
}

// send gives a signal to a process that may have ended by now.
func send(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
}

// word is the operator's: the state of this host shall prevail. It says whether that was called for and given.
func (f *fight) word(x *fighter) bool {
	state := x.offsite().State
	if state != "held" && state != "fenced" || x.api.Adopt(f.t.Context(), pipe, "offsite") != nil {
		return false
	}
	f.tally["operator's word to one that was "+state]++
	return true
}
