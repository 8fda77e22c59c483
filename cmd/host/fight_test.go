//go:build torture || cloud

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/sdk/client"
)

// fighter is one of the hosts that fight over a repository: a world whose target is not its own.
type fighter struct {
	*world

	name string
}

// fight is the ring and its referee. Two hosts, each with its own feed, data folder and writer id, push to one prefix; the referee ends, stalls and
// restarts them and their plugins at random, and gives the operator's word to the one that lost. The ledger and the witness look on.
type fight struct {
	t        *testing.T
	chance   *rand.Rand
	fighters [2]*fighter
	ledger   *ledger
	restorer *restorer
	begun    time.Time
	span     time.Duration
	tally    map[string]int

	mu      sync.Mutex // guards what the watchers write
	witness *witness
	looks   int
}

// fightSpan is how long a fight lasts: a minute, or $CAIRN_FIGHT.
func fightSpan(t *testing.T) time.Duration {
	text := os.Getenv("CAIRN_FIGHT")
	if text == "" {
		return time.Minute
	}
	span, err := time.ParseDuration(text)
	check(t, err)
	return span
}

// newFight prepares both. s names the shared target, dir is where its objects lie as files.
func newFight(t *testing.T, plugins, dir string, s settings) *fight {
	t.Helper()
	f := &fight{
		t: t, chance: draw(t), ledger: newLedger(dir), restorer: newRestorer(t, dir), span: fightSpan(t),
		tally: map[string]int{}, witness: &witness{files: map[uuid.UUID]string{}},
	}
	records := 5000 * int(1+f.span/time.Minute)
	s.checkpoint, s.push, s.keep, s.file, s.http = "250ms", "300ms", 20, records, records
	for i, name := range []string{"alpha", "beta"} {
		own := s
		own.feed = i
		if i == 1 {
			own.retention = "" // one of them alone retires what is old
		}
		w := newWorld(t, plugins, own)
		w.api = client.New(w.url, &http.Client{Timeout: 5 * time.Second}) // a stalled host answers nobody
		w.api.PollEvery = 20 * time.Millisecond
		f.fighters[i] = &fighter{w, name}
		f.witness.feeds = append(f.witness.feeds, own)
	}
	return f
}

// run is the whole fight. It ends with a repository that has been read to the last byte.
func (f *fight) run() {
	f.t.Helper()
	f.enter()
	endWatch := f.watch()
	for time.Since(f.begun) < f.span {
		f.feed()
		f.round()
		f.progress()
		f.restoreNewest()
	}
	f.settle()
	endWatch()
	f.report()
}

// enter lets the first host make the repository, and the second join it.
func (f *fight) enter() {
	f.t.Helper()
	f.begun = time.Now()
	f.feed()
	for _, x := range f.fighters {
		x.send()
		x.start("")
		x.eventually("the pipeline runs", x.running)
		x.eventually("there is a commit", func() bool { return f.ledger.newest().Number > 0 })
	}
}

// feed gives each host the records that are due.
func (f *fight) feed() {
	for _, x := range f.fighters {
		x.upTo(0.01 + 0.9*float64(time.Since(f.begun))/float64(f.span)) // never all: without a new record there is no commit
	}
}

// watch looks at both hosts 20 times a second until the returned function is called.
func (f *fight) watch() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, x := range f.fighters {
		all.Go(func() { f.watchOne(ctx, x.name, x.url, x.dir) })
	}
	end = sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
	f.t.Cleanup(end)
	return end
}

func (f *fight) watchOne(ctx context.Context, name, url, dir string) {
	o := newObserver(url, f.ledger.dir)
	o.api = client.New(url, &http.Client{Timeout: time.Second})
	tick := time.NewTicker(time.Second / 20)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			f.mu.Lock()
			defer f.mu.Unlock()
			f.looks += o.looks
			for _, fault := range o.faults {
				f.t.Errorf("host %s: %s", name, fault)
			}
			return
		case <-tick.C:
		}
		claims, ok := o.claims(ctx)
		if ok {
			o.looks++
		}
		f.ledger.judge(name, claims)
		f.mu.Lock()
		f.witness.see(dir)
		f.mu.Unlock()
	}
}

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
		{"kill -9 at a named point of a push", 4, f.killAtPoint},
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

// killAtPoint restarts a host so that it ends at a named point of its next push, if it comes to push.
func (f *fight) killAtPoint(v, _ *fighter) {
	points := slices.DeleteFunc(pointsOfALife(), func(p string) bool { return !strings.HasPrefix(p, "push.") })
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

// progress demands that after each event a new commit comes, from whichever host. Where neither may push, the operator decides.
func (f *fight) progress() {
	f.t.Helper()
	before := f.ledger.newest().Number
	if first := f.chance.IntN(2); f.chance.IntN(3) > 0 {
		_ = f.word(f.fighters[first]) || f.word(f.fighters[1-first]) // whichever has lost
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for f.ledger.newest().Number == before {
		f.feed()
		if !f.anyMayPush() {
			f.word(f.fighters[f.chance.IntN(2)])
		}
		select {
		case <-limit.C:
			f.t.Fatalf("no commit within %v: %s", patience, f.stands())
		case <-tick.C:
		}
	}
}

// anyMayPush says whether a host is at work, and sees to what only an operator can: a host that ended or a pipeline that failed is none of
// that, and fails the test.
func (f *fight) anyMayPush() (any bool) {
	for _, x := range f.fighters {
		if x.ended(0) {
			f.t.Fatalf("host %s ended by itself: %v", x.name, x.host.err)
		}
		view := x.view()
		if view.State == "failed" {
			f.t.Fatalf("host %s: the pipeline has failed: %s", x.name, view.Error)
		}
		state := x.offsite()
		any = any || state.State != "held" && state.State != "fenced"
		if state.Plugin != nil && state.Plugin.State == "broken" {
			f.tally["operator restarts a pipeline whose plugin was given up"]++
			f.restartPipeline(x)
		}
	}
	return any
}

// restartPipeline is the way on that a broken plugin names.
func (f *fight) restartPipeline(x *fighter) {
	check(f.t, x.api.Stop(f.t.Context(), pipe, false))
	x.eventually("the pipeline is stopped", func() bool { return x.view().State == "stopped" })
	check(f.t, x.api.Start(f.t.Context(), pipe))
}

// stands tells how it stands, for whoever reads a failure.
func (f *fight) stands() string {
	var all []string
	for _, x := range f.fighters {
		v := x.offsite()
		all = append(all, fmt.Sprintf("%s is %s, %s (%s)", x.name, x.view().State, v.State, v.Reason))
	}
	return strings.Join(all, "; ")
}

// restoreNewest brings back what a reader would get now.
func (f *fight) restoreNewest() {
	f.t.Helper()
	if _, err := f.restorer.restore(f.t.Context(), 0, f.witness.feeds); err != nil {
		f.t.Fatalf("restore the newest after an event: %v", err)
	}
	f.tally["restores during the fight"]++
}

// settle ends the fight: the operator gives the last word to one host, which must come to commit its newest state and tell the truth of it.
func (f *fight) settle() {
	f.t.Helper()
	i := f.chance.IntN(2)
	winner, loser := f.fighters[i], f.fighters[1-i]
	f.stopInOrder(loser)
	winner.eventually("the pipeline runs", winner.running)
	winner.eventually("the winner may push", func() bool {
		f.word(winner)
		state := winner.offsite().State
		return state == "ready" || state == "pushing"
	})
	winner.eventually("the winner's newest checkpoint is committed", func() bool {
		ctx, cancel := context.WithTimeout(f.t.Context(), patience)
		defer cancel()
		f.word(winner)
		return winner.api.CheckpointAndWait(ctx, pipe) == nil && f.pushed(ctx, winner)
	})
	for _, x := range f.fighters {
		for _, fault := range x.sender.faults() {
			f.t.Errorf("host %s: %s", x.name, fault)
		}
	}
	winner.stop()
}

// pushed asks for a push and holds what the host then says against the repository.
func (f *fight) pushed(ctx context.Context, x *fighter) bool {
	id, err := x.api.SyncCheckpoint(ctx, pipe, true)
	if err != nil {
		return false
	}
	if newest := f.ledger.newest(); newest.Checkpoint.ID.String() < id.String() {
		f.t.Errorf("host %s says that %s is committed, the newest commit holds %s", x.name, id, newest.Checkpoint.ID)
	}
	return true
}

// report restores everything that is listed, and says what happened.
func (f *fight) report() {
	f.t.Helper()
	lasted := time.Since(f.begun)
	f.ledger.look()
	f.ledger.unchanged()
	count, witnessed := allRestored(f.t, f.ledger, f.witness)
	f.ledger.report(f.t)
	f.t.Logf("the fight lasted %v; the hosts answered %d looks; at the end %d commits were restored, %d of them compared with the checkpoint on its host's disk",
		lasted.Round(time.Second), f.looks, count, witnessed)
	for _, name := range slices.Sorted(maps.Keys(f.tally)) {
		f.t.Logf("  %4d %s", f.tally[name], name)
	}
	if witnessed == 0 || count == 0 {
		f.t.Error("nothing was compared")
	}
}
