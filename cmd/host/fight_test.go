//go:build torture || cloud

package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/repository"
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
	*lookout

	restorer *restorer
	begun    time.Time
	span     time.Duration
	tally    map[string]int
}

// fightRetention is the rule of both hosts: short enough for commits to go all the time.
func fightRetention() repository.Retention {
	return repository.Retention{MinCount: 3, MinAge: 3 * time.Second}
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
		t: t, chance: draw(t), lookout: newLookout(t, dir), restorer: newRestorer(t, dir), span: fightSpan(t), tally: map[string]int{},
	}
	f.ledger.rule = s.retention
	records := 5000 * int(1+f.span/time.Minute)
	s.checkpoint, s.push, s.keep, s.file, s.http = "250ms", "300ms", 20, records, records
	for i, name := range []string{"alpha", "beta"} {
		own := s
		own.feed = i
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
	endWatch := f.watch(f.fighters[:]...)
	for time.Since(f.begun) < f.span {
		f.feed()
		f.round()
		f.progress()
		f.restoreNewest()
		f.restoreAny()
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

// restoreAny brings back one of the commits that readers see, which retention may take meanwhile.
func (f *fight) restoreAny() {
	f.t.Helper()
	visible := f.ledger.checkpoints()
	if len(visible) == 0 {
		return
	}
	c := visible[f.chance.IntN(len(visible))]
	_, err := f.restorer.restore(f.t.Context(), c.Number, f.witness.feeds)
	switch {
	case err == nil:
		f.tally["restores of one that retention keeps"]++
	case f.ledger.sees(c.Number):
		f.t.Fatalf("restore commit %d, which nothing has retired: %v", c.Number, err)
	default:
		f.tally["restores of one that retention took meanwhile"]++
	}
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
	f.tidyUp(winner)
	for _, x := range f.fighters {
		for _, fault := range x.sender.faults() {
			f.t.Errorf("host %s: %s", x.name, fault)
		}
	}
	winner.stop()
}

// tidyUp has the winner sweep until nothing is left that should have gone: neither what the last kill interrupted nor what failed pushes left.
func (f *fight) tidyUp(winner *fighter) {
	f.t.Helper()
	left := ""
	defer func() { f.t.Logf("untidy at last: %q", left) }() // what a failure of the wait is about
	winner.eventually("the target is tidy", func() bool {
		ctx, cancel := context.WithTimeout(f.t.Context(), patience)
		defer cancel()
		if _, err := winner.api.Sweep(ctx, pipe, client.SweepOptions{}); err != nil {
			left = err.Error()
			return false
		}
		left = f.ledger.untidy()
		return left == ""
	})
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
	count, witnessed := f.allRestored()
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
