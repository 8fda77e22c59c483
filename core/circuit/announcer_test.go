package circuit

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAStopAnnouncesWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0}, func(c *Config) { c.Targets[0].PushOnShutdown = true })
		r.stores[0].takes = 10 * time.Second
		r.start()
		r.checkpoint()
		r.engine.change(func(e *engine) { e.facts.Blocked, e.facts.Step = "transaction", 2 })
		_ = r.loop.Stop(true)
		sleep(3 * time.Second)
		expect(t, "why", r.loop.Status().Why, "stopping: waiting until a snapshot can be taken: transaction")
		r.engine.change(func(e *engine) { e.facts.Blocked = "" })
		expect(t, "Run", r.end(), nil)
		expect(t, "announcements", strings.Join(r.log.announced(), "\n"), strings.TrimSpace(`
for="stopping: waiting until a snapshot can be taken: transaction" waited=1s
for="stopping: waiting until a snapshot can be taken: transaction" waited=2s
for="stopping: waiting for running pushes" waited=1s
for="stopping: waiting for running pushes" waited=2s
for="stopping: waiting for running pushes" waited=4s
for="stopping: waiting for running pushes" waited=8s`))
	})
}

func TestARequestThatWaitsForABlockedSnapshotIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil).start()
		r.engine.change(func(e *engine) { e.facts.Blocked = "transaction" })
		mustCheckpoint(t, r.loop)
		sleep(1500 * time.Millisecond)
		r.engine.feed(1) // a look in between does not begin the wait anew
		sleep(time.Second)
		expect(t, "announcements", strings.Join(r.log.announced(), "\n"), strings.TrimSpace(`
for="requested checkpoint: no snapshot can be taken: transaction" waited=1s
for="requested checkpoint: no snapshot can be taken: transaction" waited=2s`))
	})
}

func TestAJobThatIgnoresItsCancellationIsWaitedForAndNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, []time.Duration{0})
		r.stores[0].pushing = func(context.Context, PushJob) error { time.Sleep(5 * time.Second); return nil }
		r.start()
		made := r.checkpoint()
		asked := mustSync(t, r.loop, "")
		synctest.Wait()
		r.cancel()
		began := time.Now()
		<-r.ended
		expect(t, "took", time.Since(began), 5*time.Second)
		expect(t, "a commit that came nevertheless counts", answered(t, asked.Done), nil)
		expect(t, "success", r.loop.Status().Sync.Success, made.ID)
		expect(t, "announcements", len(r.log.announced()), 3)
	})
}

func TestALongStepAnnouncesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil)
		r.engine.stepping = func(ctx context.Context) error { return pass(ctx, 10*time.Second) }
		r.start()
		r.engine.feed(1)
		sleep(time.Minute)
		expect(t, "announcements", strings.Join(r.log.announced(), "; "),
			`for="step to end" waited=1s; for="step to end" waited=2s; for="step to end" waited=4s; for="step to end" waited=8s`)
	})
}
