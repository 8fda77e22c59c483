package circuit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/trigger"
)

// The day: 24 simulated hours of input with quiet hours, a pause, checkpoints each minute, a disk that fails for a while, a near target each
// five minutes, a far one each quarter of an hour that is down for three hours, a third on request only, and requests all day.
const (
	dayCheckpointEvery = time.Minute
	dayPushA           = 5 * time.Minute
	dayPushB           = 15 * time.Minute
)

func TestADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		hour := func() float64 { return time.Since(start).Hours() }
		r := newRig(t, dayCheckpointEvery, []time.Duration{dayPushA, dayPushB, 0}, func(c *Config) {
			c.Targets[0].PushOnShutdown = true
		})
		r.disk.takes = 1300 * time.Millisecond
		r.disk.writing = func(ctx context.Context) error {
			if h := hour(); h >= 6 && h < 6.5 {
				return errPlanted
			}
			return ctx.Err()
		}
		for i, s := range r.stores {
			s.takes = []time.Duration{2100 * time.Millisecond, 47 * time.Second, 11 * time.Minute}[i]
		}
		r.stores[1].pushing = func(context.Context, PushJob) error {
			if h := hour(); h >= 3 && h < 6 {
				return errPlanted
			}
			return nil
		}
		r.engine.stepping = func(ctx context.Context) error { return pass(ctx, 70*time.Millisecond) }
		r.start()
		day := &day{rig: r, start: start}
		day.live(hour)
		day.judge()
	})
}

type day struct {
	*rig
	start       time.Time
	outside     int64 // events that wake the loop from outside
	checkpoints []CheckpointRequest
	syncs       []SyncRequest
}

// live goes through the day in ticks of 10 s; the events lie off the round moments, so that no two fall together.
func (d *day) live(hour func() float64) {
	time.Sleep(137 * time.Millisecond)
	for tick := range 24 * 360 {
		h := hour()
		if quiet := h >= 10 && h < 12 || h >= 20 && h < 21; tick%3 == 0 && !quiet {
			d.engine.feed(tick%7 + 1)
			d.outside++
		}
		switch {
		case tick == 14*360+1:
			d.check(d.loop.Pause())
		case tick == 15*360+1:
			d.check(d.loop.Resume())
		case tick%360 == 47:
			asked, err := d.loop.RequestCheckpoint()
			d.check(err)
			d.checkpoints = append(d.checkpoints, asked)
		case tick%720 == 101:
			asked, err := d.loop.RequestSync("")
			d.check(err)
			d.syncs = append(d.syncs, asked)
		}
		sleep(10 * time.Second)
		d.watch()
	}
	d.check(d.loop.Stop(true))
	if err := d.end(); err != nil {
		d.t.Errorf("Run returned %v", err)
	}
}

func (d *day) check(err error) {
	d.outside++
	if err != nil {
		d.t.Error(err)
	}
}

// watch compares status with what the targets and the disk really hold.
func (d *day) watch() {
	s := d.loop.Status()
	for i, target := range s.Targets {
		if held := d.stores[i].State().Committed; target.Committed != held {
			d.t.Fatalf("status says that %s holds %v; it holds %v", target.Name, target.Committed, held)
		}
	}
	for _, named := range []uuid.UUID{s.Sync.Success, s.Sync.Periodic} {
		if named != uuid.Nil && !d.stores[0].has(named) {
			d.t.Fatalf("status names %v, which a has not committed", named)
		}
	}
}

func (d *day) judge() {
	d.judgeLooks()
	d.judgeAnswers()
	d.judgeCheckpoints()
	for i, every := range []time.Duration{dayPushA, dayPushB} {
		d.judgePushes(i, every)
	}
	counts := []string{fmt.Sprintf("%d steps, %d checkpoints", len(d.engine.steps), len(d.disk.published()))}
	for _, s := range d.stores {
		counts = append(counts, s.count())
	}
	expect(d.t, "the day", strings.Join(counts, "; "), dayCounts)
}

// judgeLooks: a look acts or parks, and a park ends by an event or by a timer that leads to an action.
func (d *day) judgeLooks() {
	attempts := int64(len(d.disk.begun))
	var pushes int64
	for _, s := range d.stores {
		pushes += int64(len(s.done()))
	}
	actions := int64(len(d.engine.steps)) + attempts + pushes
	events := d.outside + attempts + pushes
	if looks := d.looks.Load(); looks > 2*actions+events {
		d.t.Errorf("%d looks for %d actions and %d events: the loop spins", looks, actions, events)
	}
}

func (d *day) judgeAnswers() {
	failed := 0
	for _, c := range d.checkpoints {
		if err := answered(d.t, c.Done); err != nil && !errors.Is(err, errPlanted) {
			d.t.Errorf("checkpoint %d answered %v", c.Sequence, err)
		}
	}
	for _, s := range d.syncs {
		if err := answered(d.t, s.Done); err != nil {
			failed++
		}
	}
	expect(d.t, "checkpoint requests", len(d.checkpoints), 24)
	expect(d.t, "sync requests", len(d.syncs), 12)
	expect(d.t, "sync requests that fell into the three hours", failed, 1)
}

// judgeCheckpoints: every attempt begins when an interval has passed since the last one and there is something new, or on request, and
// never at another moment; and none is missed.
func (d *day) judgeCheckpoints() {
	due := time.Time{}
	published := uint64(0)
	made := d.disk.published()
	for i, begun := range d.disk.begun {
		want := later(due, d.stepped(published+1))
		if early := begun.Before(want) && d.asked(begun); !early && !begun.Equal(want) {
			d.t.Errorf("checkpoint attempt %d begins at %v, want %v", i, begun.Sub(d.start), want.Sub(d.start))
		}
		due = d.disk.ended[i].Add(dayCheckpointEvery)
		for len(made) > 0 && !made[0].At.After(d.disk.ended[i]) {
			published, made = made[0].Step, made[1:]
		}
	}
}

// asked: a request came in that tick, or the stop. Ticks begin 137 ms after a round 10 s, and a step of 70 ms may be running.
func (d *day) asked(at time.Time) bool {
	since := at.Sub(d.start) - 137*time.Millisecond
	tick := int(since / (10 * time.Second))
	return (tick%360 == 47 || tick == 24*360) && since%(10*time.Second) <= 70*time.Millisecond
}

func (d *day) stepped(step uint64) time.Time {
	if int(step) > len(d.engine.steps) {
		return d.start.Add(24*time.Hour + time.Minute)
	}
	return d.engine.steps[step-1]
}

// judgePushes holds the periodic pushes of a target against a naive reading of the rule: as soon as the interval since the last periodic commit
// and the wait after a failure have passed, the target is idle, and the newest published checkpoint is not there.
func (d *day) judgePushes(target int, every time.Duration) {
	policy := d.loop.cfg.Policy.Targets[target]
	due, failures, idle := d.start.Add(every), 0, d.start
	var held uuid.UUID
	for _, j := range d.stores[target].done() {
		if j.Trigger == PushPeriodic {
			want := d.fresh(later(due, idle), held)
			if late := j.begun.Sub(want); late < 0 || late > 70*time.Millisecond { // a step may be running
				d.t.Errorf("push of %v to %s begins at %v, want %v", j.Checkpoint, policy.Name, j.begun.Sub(d.start), want.Sub(d.start))
			}
			due, failures = d.nextDue(policy, j, due, failures)
		}
		if idle = j.ended; j.err == nil {
			held = newer(held, j.Checkpoint)
		}
	}
	if want := d.fresh(later(due, idle), held); want.Before(d.start.Add(24 * time.Hour)) {
		d.t.Errorf("no push to %s at %v", policy.Name, want.Sub(d.start))
	}
}

func (d *day) nextDue(p trigger.TargetPolicy, j pushed, due time.Time, failures int) (time.Time, int) {
	if j.err == nil {
		return j.ended.Add(p.PushEvery), 0
	}
	return later(due, j.ended.Add(p.RetryWait(failures+1))), failures + 1
}

// fresh is the first moment from t on at which the newest published checkpoint is another than held.
func (d *day) fresh(t time.Time, held uuid.UUID) time.Time {
	newest := uuid.Nil
	for _, c := range d.disk.published() {
		if c.At.After(t) && newest != uuid.Nil && newest != held {
			return t
		}
		if newest = c.ID; c.At.After(t) {
			return c.At
		}
	}
	if newest != held {
		return t
	}
	return d.start.Add(48 * time.Hour)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// count sums up a target's jobs.
func (s *store) count() string {
	n := map[PushTrigger]int{}
	failed := 0
	for _, j := range s.done() {
		n[j.Trigger]++
		if j.err != nil {
			failed++
		}
	}
	return fmt.Sprintf("%s: %d periodic, %d requested, %d shutdown, %d failed", s.name, n[PushPeriodic], n[PushRequested], n[PushShutdown], failed)
}

// dayCounts is exact: the day is the same each time.
const dayCounts = "2401 steps, 1156 checkpoints; " +
	"a: 238 periodic, 12 requested, 1 shutdown, 0 failed; " +
	"b: 182 periodic, 12 requested, 0 shutdown, 115 failed; " +
	"c: 0 periodic, 12 requested, 0 shutdown, 0 failed"
