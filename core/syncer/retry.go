package syncer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/sdk"
)

// The numbers of the retry law.
const (
	// RetryBudget is how long one call is repeated before its job fails: longer than the restarts and failovers that stores
	// announce, shorter than a person's patience. The trigger starts a failed periodic job again later.
	RetryBudget = 15 * time.Minute

	backoffBase = 200 * time.Millisecond // the first wait is up to this
	backoffMax  = 30 * time.Second       // no wait is longer, unless the store asks for it

	// callBase is what any call may take: connection, signing, a slow store. It is longer than the host bears a plugin's process that says
	// nothing (10 s): such a process is to be found out and replaced, and not taken for a slow store again and again.
	callBase = 15 * time.Second
	callRate = 1 << 20 // bytes a second a transfer must reach, or its attempt is given up

	// corruptAttempts bounds what is repeated after Corrupt: damage on the way heals at once or is no accident.
	corruptAttempts = 3
)

// callDeadline is how long one attempt to move size bytes may take.
func callDeadline(size int64) time.Duration {
	return callBase + time.Duration(size)*time.Second/callRate
}

// retryable says whether the same call, made again, may succeed. attempt counts from 1.
func retryable(code sdk.Code, attempt int) bool {
	switch code {
	case sdk.Internal, sdk.Throttled, sdk.Unavailable, sdk.PluginGone, sdk.PluginHung:
		return true
	case sdk.Cancelled:
		return true // nobody here gave up, or the call would not be repeated: a plugin that drains says so
	case sdk.Corrupt:
		return attempt < corruptAttempts
	default:
		// NotFound and Exists are answers. The others stand until a person acts; the trigger's slower retry finds out.
		return false
	}
}

// lasting is an error whose maker knows whether any repetition can help: a plugin that has been given up stays so until a person acts.
type lasting interface {
	error
	Permanent() bool
}

// permanent says that a part of err is known to last, whatever its code says.
func permanent(err error) bool {
	e, ok := errors.AsType[lasting](err)
	return ok && e.Permanent()
}

// backoff is the wait after the given failed attempt (from 1): anywhere between nothing and a bound that doubles ("full jitter": of many
// hosts that fail together, few return together), but no less than the store asked for. jitter is in [0, 1).
func backoff(attempt int, asked time.Duration, jitter float64) time.Duration {
	bound := backoffMax
	if shift := attempt - 1; shift < 16 {
		bound = min(backoffMax, backoffBase<<shift)
	}
	return max(asked, time.Duration(jitter*float64(bound)))
}

// retryAfter is how long the store asked to be left alone, 0 when it did not.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*sdk.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// caller makes all calls to one target: in turn with the others, each with a deadline, repeated by code. Calls may be made from several
// goroutines.
type caller struct {
	target string // its name, for errors
	slots  *Limiter
	budget time.Duration
	now    func() time.Time
	jitter func() float64
	note   *tally
	log    hclog.Logger // nil = whoever asks for the call tells how it goes
}

// do makes one call that moves size bytes. What it returns is the last attempt's error, with what is known about the others.
func (c *caller) do(ctx context.Context, what string, size int64, call func(context.Context) error) error {
	started := c.now()
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx, size, call)
		c.note.called(attempt, err)
		if err == nil {
			return nil
		}
		code := sdk.CodeOf(err)
		if ctx.Err() != nil || permanent(err) || !retryable(code, attempt) {
			return c.explain(what, attempt, err)
		}
		wait := backoff(attempt, retryAfter(err), c.jitter())
		next := c.now().Add(wait)
		if next.Sub(started) > c.budget {
			return fmt.Errorf("gave up after %s%s: %w", c.now().Sub(started).Round(time.Second), c.tooLate(retryAfter(err), next), c.explain(what, attempt, err))
		}
		c.note.waiting(c.explain(what, attempt, err), next)
		c.announce(what, attempt, wait, err)
		if !pause(ctx, wait) {
			return c.explain(what, attempt, err)
		}
	}
}

// tooLate says what the store asked for where that alone ends the trying: a call that was given up at once would look as if it had not been repeated
// for no reason.
func (c *caller) tooLate(asked time.Duration, next time.Time) string {
	if asked <= backoffMax {
		return ""
	}
	return fmt.Sprintf(", for the store asked to be left alone for %s, until %s, and a call is repeated for %s at most", asked, next.UTC().Format(time.RFC3339), c.budget)
}

// announce logs a call that goes on failing at its attempts 2, 4, 8, …: silence would look like progress, and a line each like noise.
func (c *caller) announce(what string, attempt int, wait time.Duration, err error) {
	if c.log != nil && attempt > 1 && attempt&(attempt-1) == 0 {
		c.log.Warn("call fails, trying again", "call", what, "target", c.target, "attempt", attempt, "in", wait.Round(time.Millisecond), "error", explained(err))
	}
}

// attempt makes the call once, in a slot and under a deadline. A call that its own deadline ended is Unavailable, however it says so.
func (c *caller) attempt(ctx context.Context, size int64, call func(context.Context) error) (err error) {
	slot, err := c.slots.acquire(ctx)
	if err != nil {
		return &sdk.Error{Code: sdk.Cancelled, Err: err}
	}
	defer func() { c.slots.release(slot, err) }() // also when the call panics
	limit := callDeadline(size)
	callCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = call(callCtx)
	if err != nil && callCtx.Err() != nil && ctx.Err() == nil {
		err = &sdk.Error{Code: sdk.Unavailable, Err: fmt.Errorf("no answer within %s: %w", limit.Round(time.Second), err)}
	}
	return err
}

// explain adds what only this layer knows: the target, how often the call was made and, where the error does not say it itself, which it was.
func (c *caller) explain(what string, attempt int, err error) error {
	lead := fmt.Sprintf("target %q: ", c.target)
	if attempt > 1 {
		lead += fmt.Sprintf("attempt %d: ", attempt)
	}
	if e, ok := err.(*sdk.Error); ok && e.Op != "" && e.Key != "" && strings.HasSuffix(what, " "+e.Key) {
		return fmt.Errorf("%s%w", lead, err)
	}
	return fmt.Errorf("%s%s: %w", lead, what, err)
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
