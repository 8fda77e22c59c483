//go:build torture

package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk/client"
)

// drill is a primary and a standby, which change places in every round.
type drill struct {
	*fight

	primary, standby *fighter
}

// newDrill starts a primary that has committed.
func newDrill(t *testing.T) *drill {
	t.Helper()
	target := filepath.Join(t.TempDir(), "target")
	f := newFight(t, buildPlugins(t), target, settings{target: target, pull: "1h"}) // what comes after the first pull is left to the activation
	d := &drill{fight: f, primary: f.fighters[0], standby: f.fighters[1]}
	d.begun, d.span = time.Now(), 4*time.Minute // it is over before the records are
	for _, x := range f.fighters {
		x.send()
	}
	return d
}

// committed feeds both until the primary has committed once more.
func (d *drill) committed() {
	d.t.Helper()
	before := d.ledger.newest().Number
	d.primary.eventually("the primary commits", func() bool {
		d.feed()
		return d.ledger.newest().Number > before
	})
}

// follow has the other one begin as a standby on an empty data folder, and end at a point of its activation.
func (d *drill) follow(crash string) {
	d.t.Helper()
	d.standby.kill()
	d.standby.cfg.standby = true
	d.standby.rewrite()
	d.standby.freshData()
	d.standby.start(crash)
	d.standby.eventually("the standby follows", func() bool { return d.standby.view().State == "standby" })
}

// activateUntilKilled asks for the activation, of which the host dies.
func (d *drill) activateUntilKilled(point string) {
	d.t.Helper()
	ctx, cancel := context.WithCancel(d.t.Context())
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := d.standby.api.Activate(ctx, pipe, client.ActivateOptions{})
		answered <- err
	}()
	if !d.standby.ended(patience) {
		d.t.Fatalf("the standby never came to %s: %s", point, d.stands())
	}
	if !d.standby.host.killedItself() {
		d.t.Fatalf("the standby ended by itself on the way to %s: %v", point, d.standby.host.err)
	}
	if err := <-answered; err == nil {
		d.t.Errorf("the activation that was killed at %s was reported done", point)
	}
}

// round kills one activation. The next start of that host ends it as the primary, with all that was committed, and the old primary is fenced.
func (d *drill) round(point string) {
	d.t.Helper()
	crash := point
	if !strings.Contains(crash, ":") {
		crash += ":1"
	}
	d.follow(crash)
	d.standby.eventually("the standby has its copy", func() bool {
		view := d.standby.view().Standby
		return view != nil && view.Pulled != nil
	})
	d.committed()
	d.activateUntilKilled(point)
	before := d.ledger.newest()
	d.standby.start("")
	d.standby.eventually("the activation that was killed at "+point+" is ended", d.standby.running)
	d.standby.eventually("the new primary commits", func() bool {
		d.feed()
		newest := d.ledger.newest()
		return newest.Epoch > before.Epoch && newest.Number > before.Number
	})
	d.primary.eventually("the old primary is fenced", func() bool {
		d.feed()
		return d.primary.offsite().State == "fenced"
	})
	writer := d.ledger.newest().Writer
	if writer == before.Writer {
		d.t.Errorf("after the activation that was killed at %s the old primary still commits", point)
	}
	d.primary, d.standby = d.standby, d.primary
}

// TestTortureKillAnActivation kills a standby at each named point of its activation. It ends as the primary when it starts again, with all that the old one had
// committed; there is one line of history, and the old primary is fenced.
// CASES A43, A45
func TestTortureKillAnActivation(t *testing.T) {
	t.Parallel()
	d := newDrill(t)
	d.refused()
	d.primary.start("")
	d.primary.eventually("the primary runs", d.primary.running)
	d.committed()
	endWatch := d.watch(d.fighters[:]...)
	for _, point := range pointsOfAnActivation() {
		d.round(point)
	}
	d.standby.kill()
	d.primary.stop()
	endWatch()
	d.ledger.unchanged()
	count, witnessed := d.allRestored()
	d.ledger.report(t)
	t.Logf("%d activations were killed; %d commits restored, %d of them compared with the checkpoint on its host's disk", len(pointsOfAnActivation()), count, witnessed)
	if witnessed == 0 {
		t.Error("nothing was compared")
	}
}

// refused kills a standby that has nothing to start from when its activation has been refused: it is a standby still, and has claimed nothing.
func (d *drill) refused() {
	d.t.Helper()
	d.follow("activate.refused:1")
	d.activateUntilKilled("activate.refused")
	d.standby.start("")
	d.standby.eventually("the standby follows again", func() bool { return d.standby.view().State == "standby" })
	if listed, err := d.restorer.reader.ListCommits(d.t.Context()); err != nil || len(listed) > 0 {
		d.t.Errorf("after a refused activation the target holds %v (%v)", listed, err)
	}
	d.standby.kill()
}
