package host

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/sdk/client"
)

// wallClock is a machine's clock that somebody sets while the host runs: what the wall shows jumps, and the monotonic reading goes on.
type wallClock struct{ off atomic.Int64 } // whole seconds

func (c *wallClock) set(off time.Duration) { c.off.Store(int64(off / time.Second)) }

func (c *wallClock) into(o *Options) { o.Now = c.now }

// now moves the seconds of a time.Time that has a monotonic reading; package time offers no way to. TestAWallClockJumpsAlone holds it to what
// it is for.
func (c *wallClock) now() time.Time {
	const bitsOfNanoseconds = 30
	t := time.Now()
	*(*uint64)(unsafe.Pointer(&t)) += uint64(c.off.Load()) << bitsOfNanoseconds
	return t
}

func TestAWallClockJumpsAlone(t *testing.T) {
	c := &wallClock{}
	for _, off := range clockJumps() {
		c.set(0)
		before := c.now()
		c.set(off)
		after := c.now()
		if d := after.Sub(before); d < 0 || d > time.Hour {
			t.Errorf("by %v: the monotonic reading moved by %v", off, d)
		}
		if d := after.Round(0).Sub(before.Round(0)) - off; d < -time.Hour || d > time.Hour {
			t.Errorf("by %v: the wall clock is off by %v more", off, d)
		}
	}
}

// CASES A46: what falls due in a minute is shown a minute ahead on a clock that was set meanwhile.
func TestWhatIsDueIsShownOnTheClockAsItStands(t *testing.T) {
	c := &wallClock{}
	fixed := c.now().Add(time.Minute)
	for _, off := range clockJumps() {
		c.set(off)
		if d := due(fixed, c.now()).Sub(c.now().Round(0)); d < -time.Hour || d > time.Hour {
			t.Errorf("clock off by %v: shown %v ahead", off, d)
		}
	}
	if due(time.Time{}, c.now()) != nil {
		t.Error("a moment, though nothing is due")
	}
}

// clockJumps are where the wall clock stands, one after the other: a wrong time zone, a battery that is dead, a laptop that slept.
func clockJumps() []time.Duration {
	const week = 7 * 24 * time.Hour
	return []time.Duration{0, -26 * time.Hour, 3 * time.Hour, 8 * week, -52 * week, 0}
}

// clockPair is a primary and a standby on machines whose clocks jump, each the other way.
type clockPair struct {
	*testing.T

	w                  *world
	clocks             [2]wallClock
	primary, standby   *liveHost
	primaryConf, other conf
	inserted           int
	proven             time.Time
}

// CASES A46: clocks that jump under running hosts lose and double no push, and the newest min_count
// commits stay whatever their ages seem to be; nobody is told an absurd lag, or of a push that is due in a year.
func TestClocksThatJumpUnderRunningHostsLoseNothing(t *testing.T) {
	p := newClockPair(t)
	for _, off := range clockJumps() {
		p.clocks[0].set(off)
		p.clocks[1].set(-off)
		p.round(fmt.Sprintf("clocks %v off", off))
	}
	p.oneLine()
}

// CASES A46: the same when the clock was set while the host was down: what is remembered on disk may lie in the future, or a year back.
func TestClocksThatWereSetWhileTheHostsWereDownLoseNothing(t *testing.T) {
	p := newClockPair(t)
	for _, off := range clockJumps() {
		p.primary.stop()
		p.standby.stop()
		p.clocks[0].set(off)
		p.clocks[1].set(-off)
		p.begin()
		p.round(fmt.Sprintf("clocks %v off", off))
	}
	p.oneLine()
}

func newClockPair(t *testing.T) *clockPair {
	t.Helper()
	p := &clockPair{T: t, w: newWorld(t)}
	p.primaryConf = conf{checkpoint: "100ms", sync: "sync \"t\" {\n push_interval = \"100ms\"\n retention {\n  min_age = \"24h\"\n  min_count = 4\n }\n}\n"}
	p.other = conf{data: "elsewhere", initial: "standby", pull: "100ms"}
	p.begin()
	return p
}

func (p *clockPair) begin() {
	p.Helper()
	p.primary = p.w.start(p.primaryConf, p.clocks[0].into).up()
	p.standby = p.w.start(p.other, p.clocks[1].into)
}

// round brings new rows through checkpoint, push and pull, and looks at what is told of them.
func (p *clockPair) round(when string) {
	p.Helper()
	p.primary.insert(p.inserted, p.inserted+5)
	p.inserted += 5
	p.primary.until(when+": the rows are committed", func() bool {
		v := p.primary.view("p")
		t := v.Targets[0]
		return v.Step > 0 && t.Committed != nil && t.Behind != nil && *t.Behind == 0 && v.Checkpoint != nil && v.Checkpoint.Step == v.Step
	})
	p.standby.pulledStep(p.primary.view("p").Step)
	if lag := p.standby.view("p").Standby.Lag; !lag.None() {
		p.Errorf("%s: the newest commit is here, and the lag is %+v", when, lag)
	}
	p.near(when+": next push", p.primary.view("p").Targets[0].NextPush, p.clocks[0].now())
	p.near(when+": next pull", p.standby.view("p").Standby.NextPull, p.clocks[1].now())
	p.prove(when)
}

// near demands that what an interval of 100 ms ends at is shown on the clock as it stands. Nothing is planned where nothing is new.
func (p *clockPair) near(what string, at *time.Time, now time.Time) {
	p.Helper()
	if at == nil {
		return
	}
	if d := at.Sub(now.Round(0)); d < -time.Hour || d > time.Hour {
		p.Errorf("%s is shown %v from now", what, d)
	}
}

// prove verifies the repository: the proof is of now, by this clock.
func (p *clockPair) prove(when string) {
	p.Helper()
	views, err := p.primary.Verify(p.Context(), "p", client.VerifyOptions{Deep: true})
	must(p.T, err)
	if len(views) != 1 || views[0].Error != "" {
		p.Fatalf("%s: verified %+v", when, views)
	}
	p.primary.until(when+": the proof is shown", func() bool {
		proof := p.primary.view("p").Targets[0].Proof
		return proof != nil && !proof.At.Equal(p.proven)
	})
	at := p.primary.view("p").Targets[0].Proof.At
	p.near(when+": the proof", &at, p.clocks[0].now())
	p.proven = at
}

// oneLine demands that every state was pushed once, in order, that min_count of them are there, and that a standby
// has all of it.
func (p *clockPair) oneLine() {
	p.Helper()
	all, err := p.primary.RemoteCheckpoints(p.Context(), "p", "t")
	must(p.T, err)
	if len(all) < 4 {
		p.Errorf("%d checkpoints are there, and min_count is 4 whatever their ages seem to be", len(all))
	}
	var before client.CheckpointView
	for _, c := range all {
		if c.Number <= before.Number || c.Step <= before.Step || bytes.Compare(c.UUID[:], before.UUID[:]) <= 0 {
			p.Errorf("%+v follows %+v", c, before)
		}
		before = c
	}
	want := p.primary.rows()
	_, err = p.standby.Activate(p.Context(), "p", client.ActivateOptions{})
	must(p.T, err)
	equal(p.T, "rows of the standby that was activated", p.standby.rows(), want)
	if before.UUID == uuid.Nil {
		p.Error("nothing was pushed")
	}
}
