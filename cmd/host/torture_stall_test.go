//go:build torture

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk/client"
)

// stalled is longer than any clock of the host and its plugin: 10 s without an event and 60 s without bytes end a call.
const stalled = 65 * time.Second

// pair are two hosts on one repository, of which the first is about to be stalled in the middle of a push.
type pair struct {
	*fight

	first, second *fighter
}

// newPair lets the first host commit, and stalls it at a named point of its next push.
func newPair(t *testing.T, point string) *pair {
	t.Helper()
	target := filepath.Join(t.TempDir(), "target")
	f := newFight(t, buildPlugins(t), target, settings{target: target})
	p := &pair{fight: f, first: f.fighters[0], second: f.fighters[1]}
	p.first.cfg.keep = 1000 // nothing local goes while the test looks
	p.first.rewrite()
	p.first.send()
	p.first.start("")
	p.first.upTo(0.02)
	p.first.eventually("a first commit", func() bool { return p.first.offsite().Committed != nil })
	p.first.stop()
	p.first.upTo(0.04)
	p.first.startWith("CAIRN_STALL_AT=" + point + ":1")
	p.first.eventually("the host is stalled at "+point, func() bool { return processState(p.first.host.pid()) == "T" })
	return p
}

// processState is what /proc says: R, S, D, T (stopped), Z; "" when the process is gone.
func processState(pid int) string {
	fields := processStat(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if len(fields) == 0 {
		return ""
	}
	return fields[0]
}

// takeOver lets the second host begin with what the first had committed, and go on from there.
func (p *pair) takeOver() (seal uint64) {
	p.t.Helper()
	before := p.ledger.newest()
	p.second.send()
	p.second.upTo(0.05)
	p.second.start("")
	p.second.eventually("the second host has committed", func() bool {
		newest := p.ledger.newest()
		return newest.Epoch > before.Epoch && newest.Writer.ID != before.Writer.ID
	})
	return p.sealOf(p.ledger.newest().Writer.ID)
}

// sealOf is the first seal of a writer.
func (p *pair) sealOf(writer uuid.UUID) uint64 {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	for n := uint64(1); n <= p.ledger.head; n++ {
		if c := p.ledger.commits[n]; c.Writer.ID == writer && c.Kind == repository.KindSeal {
			return n
		}
	}
	p.t.Fatal("no seal of a takeover")
	return 0
}

// fencedOff demands of the first host, once it has woken up, what DESIGN 7 says of a writer that was taken over from.
func (p *pair) fencedOff(seal uint64, local []client.CheckpointView) {
	p.t.Helper()
	writer := p.ledger.commits[1].Writer.ID
	p.first.eventually("it says that it is fenced", func() bool { return p.first.offsite().State == "fenced" })
	told := p.first.offsite().Reason
	for _, want := range []string{"fenced", "was claimed by host", "this host has stopped pushing there", "adopt"} {
		if !strings.Contains(told, want) {
			p.t.Errorf("its status says %q, not %q", told, want)
		}
	}
	p.ledger.look()
	p.ledger.mu.Lock()
	for n := seal; n <= p.ledger.head; n++ {
		if p.ledger.commits[n].Writer.ID == writer {
			p.t.Errorf("commit %d, above the seal %d, is of the host that was taken over from", n, seal)
		}
	}
	p.ledger.mu.Unlock()
	now, err := p.first.api.Checkpoints(p.t.Context(), pipe)
	check(p.t, err)
	for _, c := range local {
		if !slices.ContainsFunc(now, func(v client.CheckpointView) bool { return v.UUID == c.UUID }) {
			p.t.Errorf("local checkpoint %s of step %d is gone", c.UUID, c.Step)
		}
	}
}

// localCheckpoints are read from the disk, for the host is stalled.
func (p *pair) localCheckpoints() (all []client.CheckpointView) {
	for _, name := range p.first.checkpointFolders() {
		if id, err := uuid.Parse(name); err == nil {
			all = append(all, client.CheckpointView{UUID: id})
		}
	}
	if len(all) == 0 {
		p.t.Fatal("it has no local checkpoint")
	}
	return all
}

// waysOn tries both: the operator gives the word to the one that was fenced, and the other one begins anew with that one's state.
func (p *pair) waysOn() {
	p.t.Helper()
	before := p.ledger.newest().Number
	p.first.eventually("the fenced host is adopted and commits", func() bool {
		p.word(p.first)
		newest := p.ledger.newest()
		return newest.Number > before && newest.Writer.ID == p.ledger.commits[1].Writer.ID
	})
	p.second.upTo(0.1) // what is new there must be pushed to find out
	p.second.eventually("now the other one is fenced", func() bool { return p.second.offsite().State == "fenced" })
	p.second.kill()
	p.second.freshData()
	p.second.start("")
	p.second.eventually("the other one runs on the state of the first", p.second.running)
	if from := p.second.view().StartedFrom; !strings.Contains(from, "restored") {
		p.t.Errorf("it started from %q", from)
	}
	p.first.kill()
	p.second.kill()
	p.witness.see(p.first.dir)
	p.witness.see(p.second.dir)
	p.ledger.look()
	p.ledger.unchanged()
	count, witnessed := allRestored(p.t, p.ledger, p.witness)
	if witnessed == 0 {
		p.t.Error("no commit was compared with a local checkpoint")
	}
	p.ledger.report(p.t)
	p.t.Logf("%d commits restored, %d of them compared with local checkpoints", count, witnessed)
}

// CASES A47, A8, A38
func TestTortureAHostThatWakesUpAfterATakeoverIsFenced(t *testing.T) {
	for _, point := range []string{"push.pack.begin", "push.pack.done", "push.commit.begin", "push.commit.done"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, point)
			over := time.NewTimer(stalled)
			local := p.localCheckpoints()
			seal := p.takeOver()
			<-over.C // this is the case itself: a stall that outlasts every clock
			send(t, p.first.host.pid(), syscall.SIGCONT)
			p.fencedOff(seal, local)
			p.waysOn()
		})
	}
}

// CASES A47, A75
func TestTortureAPluginThatStopsInAPushIsReplacedAndItsHostIsFenced(t *testing.T) {
	t.Parallel()
	p := newPair(t, "push.commit.begin")
	local := p.localCheckpoints()
	plugin := pluginPID(p.first.host.pid())
	send(t, plugin, syscall.SIGSTOP)
	seal := p.takeOver()
	send(t, p.first.host.pid(), syscall.SIGCONT) // not before: a plugin that is replaced in time would commit first
	p.first.eventually(fmt.Sprintf("plugin process %d, which does not answer, is replaced", plugin), func() bool {
		now := pluginPID(p.first.host.pid())
		return now != 0 && now != plugin
	})
	p.fencedOff(seal, local)
	p.waysOn()
}
