package host

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cairnsync/cairn/core/syncer"
)

// chores is a maintainer whose runs last an hour, unless they are cut off.
type chores struct {
	begun, whole atomic.Int64
	cut          chan struct{} // one for each run that was cut off
}

func (c *chores) Maintain(ctx context.Context, _ syncer.MaintainRequest) (syncer.MaintainReport, error) {
	c.begun.Add(1)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	select {
	case <-timer.C:
		c.whole.Add(1)
		return syncer.MaintainReport{}, nil
	case <-ctx.Done():
		c.cut <- struct{}{}
		return syncer.MaintainReport{}, ctx.Err()
	}
}

// keeping runs a keeper within a synctest bubble until the test ends.
func keeping(t *testing.T) (*keeper, *chores) {
	t.Helper()
	work := &chores{cut: make(chan struct{}, 1)}
	k := newKeeper(work)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); k.run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return k, work
}

func TestPushesThatEndWhileARetentionRunsAreFollowedByOneMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, work := keeping(t)
		k.pushed()
		synctest.Wait()
		equal(t, "begun after a push", work.begun.Load(), 1)
		for range 5 {
			k.pushed()
		}
		synctest.Wait()
		equal(t, "begun beside the one that runs", work.begun.Load(), 1)
		time.Sleep(10 * time.Hour)
		synctest.Wait()
		equal(t, "in all", work.whole.Load(), 2)
		k.pushed()
		time.Sleep(10 * time.Hour)
		synctest.Wait()
		equal(t, "after one more push", work.whole.Load(), 3)
	})
}

func TestWithoutAPushNothingIsMaintained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, work := keeping(t)
		time.Sleep(1000 * time.Hour)
		synctest.Wait()
		equal(t, "runs", work.begun.Load(), 0)
		var none *keeper
		none.pushed() // without a retention block
	})
}

func TestARetentionIsCutOffAtTheStopAndNoneBeginsAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := &chores{cut: make(chan struct{}, 1)}
		k := newKeeper(work)
		var order []string
		failed := errors.New("of the loop")
		err := alongside(t.Context(), []func(context.Context){func(ctx context.Context) { k.run(ctx); order = append(order, "keeper") }}, func() error {
			k.pushed()
			synctest.Wait() // a retention runs
			k.pushed()      // of the last push, at the stop
			order = append(order, "loop")
			return failed
		})
		order = append(order, "return")
		<-work.cut
		equal(t, "error", err, failed)
		equal(t, "order", slices.Compare(order, []string{"loop", "keeper", "return"}), 0)
		equal(t, "runs", work.begun.Load(), 1)
		equal(t, "whole ones", work.whole.Load(), 0)
	})
}

func TestWhatIsDueAtTheStopDoesNotBegin(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 64 { // a select takes either of two that are ready
		work := &chores{cut: make(chan struct{}, 1)}
		k := newKeeper(work)
		k.pushed()
		k.run(over)
		equal(t, "runs", work.begun.Load(), 0)
	}
}
