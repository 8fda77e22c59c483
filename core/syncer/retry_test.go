package syncer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/cairnsync/cairn/sdk"
)

func TestWhichCodesAreTriedAgain(t *testing.T) {
	again := map[sdk.Code]bool{
		sdk.Internal: true, sdk.Throttled: true, sdk.Unavailable: true, sdk.PluginGone: true, sdk.PluginHung: true, sdk.Cancelled: true,
		sdk.Corrupt: true, // twice: see below
	}
	for code := sdk.Internal; code.Known(); code++ {
		if got := retryable(code, 1); got != again[code] {
			t.Errorf("%s: tried again: %t", code, got)
		}
	}
	if !retryable(sdk.Corrupt, 2) || retryable(sdk.Corrupt, 3) || !retryable(sdk.Unavailable, 1000) {
		t.Error("damage is tried three times in all, an outage until the budget ends")
	}
}

func TestTheBackoffGrowsToItsBoundAndKeepsWhatTheStoreAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		attempt := rapid.IntRange(1, 1_000_000).Draw(t, "attempt")
		jitter := rapid.Float64Range(0, 0.999999).Draw(t, "jitter")
		asked := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "asked"))
		got := backoff(attempt, asked, jitter)
		if got < asked || got > max(asked, backoffMax) || got < 0 {
			t.Fatalf("backoff %s", got)
		}
		if backoff(attempt+1, 0, jitter) < backoff(attempt, 0, jitter) {
			t.Fatal("a later wait is shorter at the same jitter")
		}
	})
	if first := backoff(1, 0, 0.999); first > backoffBase {
		t.Errorf("the first wait is %s", first)
	}
	if late := backoff(30, 0, 0.999); late < backoffMax*9/10 {
		t.Errorf("a late wait is %s", late)
	}
}

// CASES A75
func TestTheDeadlineGrowsWithTheSize(t *testing.T) {
	for size, want := range map[int64]time.Duration{0: 15 * time.Second, 1 << 20: 16 * time.Second, 64 << 20: 79 * time.Second} {
		if got := callDeadline(size); got != want {
			t.Errorf("%d bytes: %s, want %s", size, got, want)
		}
	}
}

// newCaller is a caller with a tally; each wait is half of its bound.
func newCaller(budget time.Duration) *caller {
	return &caller{
		target: "t", slots: NewLimiter(2), budget: budget, now: time.Now, jitter: func() float64 { return 0.5 },
		note: newTally(time.Now, JobRecord{}),
	}
}

// CASES A66
func TestAnOutageIsRiddenOutWithinTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, began := newCaller(RetryBudget), time.Now()
		err := c.do(t.Context(), "put x", 0, func(context.Context) error {
			if time.Since(began) < 10*time.Minute {
				return &sdk.Error{Code: sdk.Unavailable}
			}
			return nil
		})
		if rec := c.note.snapshot(); err != nil || rec.Attempts < 20 || rec.Requests != int64(rec.Attempts) || rec.Error != "" || !rec.Next.IsZero() {
			t.Errorf("error %v, record %+v", err, rec)
		}
	})
}

func TestTheBudgetEndsTheTrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, began := newCaller(time.Minute), time.Now()
		err := c.do(t.Context(), "put x", 0, func(context.Context) error { return &sdk.Error{Code: sdk.Throttled} })
		if !errors.Is(err, sdk.Throttled) || !strings.Contains(err.Error(), "gave up after") || time.Since(began) > time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestACallThatTheStoreWantsLaterThanItIsRepeatedSaysUntilWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, calls := newCaller(RetryBudget), 0
		until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		err := c.do(t.Context(), "put x", 0, func(context.Context) error { calls++; return &sdk.Error{Code: sdk.Throttled, RetryAfter: time.Hour} })
		want := "gave up after 0s, for the store asked to be left alone for 1h0m0s, until " + until + `, and a call is repeated for 15m0s at most: target "t": put x: `
		if !errors.Is(err, sdk.Throttled) || !strings.HasPrefix(err.Error(), want) || calls != 1 {
			t.Errorf("after %d calls: %v", calls, err)
		}
		err = c.do(t.Context(), "put x", 0, func(context.Context) error { return &sdk.Error{Code: sdk.Throttled, RetryAfter: time.Second} })
		if !errors.Is(err, sdk.Throttled) || !strings.HasPrefix(err.Error(), "gave up after 15m0s: target ") && !strings.HasPrefix(err.Error(), "gave up after 14m") || strings.Contains(err.Error(), "left alone") {
			t.Errorf("where the budget ended the trying: %v", err)
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, calls := newCaller(RetryBudget), []time.Time(nil)
		err := c.do(t.Context(), "put x", 0, func(context.Context) error {
			if calls = append(calls, time.Now()); len(calls) < 3 {
				return &sdk.Error{Code: sdk.Throttled, RetryAfter: 2 * time.Minute}
			}
			return nil
		})
		if err != nil || calls[1].Sub(calls[0]) != 2*time.Minute || calls[2].Sub(calls[1]) != 2*time.Minute {
			t.Errorf("error %v, calls at %v", err, calls)
		}
	})
}

func TestADeadContextTouchesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	called := false
	err := newCaller(time.Minute).do(ctx, "put x", 0, func(context.Context) error { called = true; return nil })
	if called || !errors.Is(err, context.Canceled) {
		t.Errorf("called %t, error %v", called, err)
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Second)
			cancel()
		}()
		began := time.Now()
		err := newCaller(RetryBudget).do(ctx, "put x", 0, func(context.Context) error {
			return &sdk.Error{Code: sdk.Unavailable, RetryAfter: time.Hour / 10}
		})
		if !errors.Is(err, sdk.Unavailable) || time.Since(began) != time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestTheLimiterServesInTurnAndNeverExceedsItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(2)
		served := make(chan int, 6)
		var inUse, most atomic.Int64
		for i := range 6 {
			go func() {
				s, err := l.acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				served <- i
				now := inUse.Add(1)
				for seen := most.Load(); seen < now && !most.CompareAndSwap(seen, now); seen = most.Load() {
				}
				time.Sleep(time.Second)
				inUse.Add(-1)
				l.release(s, nil)
			}()
			synctest.Wait()
		}
		for i := range 6 { // pairs go at the same moment; the pairs are in turn
			if got := <-served; got/2 != i/2 {
				t.Errorf("number %d was served in place %d", got, i)
			}
		}
		time.Sleep(time.Minute)
		if most.Load() != 2 {
			t.Errorf("%d at a time", most.Load())
		}
	})
}

func TestAWaiterThatGivesUpLeavesItsSlotToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(1)
		s, err := l.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp, served := make(chan error, 1), make(chan slot, 1)
		go func() {
			_, err := l.acquire(ctx)
			gaveUp <- err
		}()
		synctest.Wait()
		go func() {
			s, _ := l.acquire(t.Context())
			served <- s
		}()
		synctest.Wait()
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		l.release(s, nil)
		l.release(<-served, nil)
		if calls, _ := l.InFlight(); calls != 0 {
			t.Errorf("%d in flight at the end", calls)
		}
	})
}

// CASES A72
func TestABurstOfThrottlingHalvesOnceAndGoodCallsRaiseAgain(t *testing.T) {
	l := NewLimiter(8)
	throttled := &sdk.Error{Code: sdk.Throttled}
	hold := make([]slot, 8)
	for i := range hold {
		hold[i], _ = l.acquire(t.Context())
	}
	for _, s := range hold {
		l.release(s, throttled)
	}
	if _, bound := l.InFlight(); bound != 4 {
		t.Fatalf("bound %d after one burst, want 4", bound)
	}
	for range 100 {
		s, _ := l.acquire(t.Context())
		l.release(s, &sdk.Error{Code: sdk.Unavailable})
	}
	if _, bound := l.InFlight(); bound != 4 {
		t.Errorf("bound %d: an outage says nothing about the rate", bound)
	}
	for range 100 {
		s, _ := l.acquire(t.Context())
		l.release(s, nil)
	}
	if _, bound := l.InFlight(); bound != 8 {
		t.Errorf("bound %d after a hundred good calls, want 8", bound)
	}
	for range 20 {
		s, _ := l.acquire(t.Context())
		l.release(s, throttled)
	}
	if _, bound := l.InFlight(); bound != 1 {
		t.Errorf("bound %d, it never falls below 1", bound)
	}
}

// givenUp is an error as a supervisor makes it: its code alone would be tried again.
type givenUp struct{ lasts bool }

func (givenUp) Error() string     { return "the plugin is broken" }
func (e givenUp) Permanent() bool { return e.lasts }

func TestWhatIsKnownToLastIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, code := range []sdk.Code{sdk.PluginGone, sdk.Internal, sdk.Corrupt} {
			c, began := newCaller(RetryBudget), time.Now()
			err := c.do(t.Context(), "list x", 0, func(context.Context) error {
				return &sdk.Error{Code: code, Err: fmt.Errorf("wrapped: %w", givenUp{lasts: true})}
			})
			if rec := c.note.snapshot(); !errors.Is(err, code) && code != sdk.Internal || rec.Requests != 1 || !time.Now().Equal(began) {
				t.Errorf("%s: %d requests in %s: %v", code, rec.Requests, time.Since(began), err)
			}
		}
		c := newCaller(time.Minute)
		if c.do(t.Context(), "list x", 0, func(context.Context) error { return &sdk.Error{Code: sdk.PluginGone, Err: givenUp{}} }) == nil {
			t.Error("no error")
		}
		if rec := c.note.snapshot(); rec.Requests < 3 {
			t.Errorf("%d requests to a plugin that may come back", rec.Requests)
		}
	})
}

func TestAJobOfABrokenPluginFailsAtOnce(t *testing.T) {
	b := newBench(t)
	id := b.publish(1, map[string]string{"f": "1"})
	synctest.Test(t, func(t *testing.T) {
		w, began := b.worker(func(c *Config) { c.RetryBudget = RetryBudget }), time.Now()
		b.store.Before = func(ctxt, callt) error { return &sdk.Error{Code: sdk.PluginGone, Err: givenUp{lasts: true}} }
		err := w.Push(t.Context(), Job{Checkpoint: id, Trigger: Shutdown})
		if !errors.Is(err, sdk.PluginGone) || !time.Now().Equal(began) {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestAnErrorSaysTheCallAndEachRemedyOnce(t *testing.T) {
	const key, hint = "strikes/commit/", "mount the disk"
	for want, row := range map[string]struct {
		what    string
		attempt int
		err     error
	}{
		`target "t": list strikes/commit/: store unavailable`: {"list " + key, 1, &sdk.Error{Code: sdk.Unavailable, Op: "list", Key: key}},
		`target "t": attempt 7: put strikes/commit/: plugin gone: it ended: mount the disk`: {
			"create " + key, 7, &sdk.Error{Code: sdk.PluginGone, Op: "put", Key: key, Hint: hint, Err: errors.New("it ended")},
		},
		`target "t": list strikes/commit/: store unavailable: mount the disk`: {
			"list " + key, 1, &sdk.Error{Code: sdk.Unavailable, Op: "list", Key: key, Hint: hint, Err: errors.New(hint)},
		},
		`target "t": attempt 2: list strikes/commit/: page 3: store unavailable`: {"list " + key, 2, fmt.Errorf("page 3: %w", sdk.Unavailable)},
		`target "t": list strikes/commit/: get other: not found`:                 {"list " + key, 1, &sdk.Error{Code: sdk.NotFound, Op: "get", Key: "other"}},
	} {
		if got := explained(newCaller(0).explain(row.what, row.attempt, row.err)); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
