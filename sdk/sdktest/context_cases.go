package sdktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

func contextCases() []Case {
	return []Case{
		{"a call whose context has ended fails as Cancelled and changes nothing", Core, deadContext},
		{"a call returns soon after its context has ended", Core, endedSoon},
		{"a listing whose context ends on its way is complete or ends in an error", Core, cancelledList},
		{"a Put that is cancelled on its way stores the complete object or nothing", Core, cancelledPut},
	}
}

func deadContext(ctx context.Context, e *Env) error {
	want := content(1000, 1)
	if err := e.put(ctx, "kept", want); err != nil {
		return err
	}
	dead, cancel := context.WithCancel(ctx)
	cancel()
	_, err := e.store(dead, sdk.PutRequest{Key: e.key("dead")}, want)
	_, _, getErr := get(dead, e.Target, whole(e.key("kept")))
	_, listErr := e.list(dead, sdk.ListRequest{Prefix: e.key("")})
	err = errors.Join(
		wantCode(err, sdk.Cancelled, "put with an ended context"),
		wantCode(getErr, sdk.Cancelled, "get with an ended context"),
		wantCode(listErr, sdk.Cancelled, "list with an ended context"),
		wantCode(e.remove(dead, "kept"), sdk.Cancelled, "delete with an ended context"),
	)
	if err != nil {
		return err
	}
	if err := e.absent(ctx, "dead"); err != nil {
		return err
	}
	return e.holds(ctx, e.Target, "kept", want)
}

func cancelledPut(ctx context.Context, e *Env) error {
	want := content(sdk.MaxInline+100_000, 1)
	// From a deadline that has passed to one that a local store meets: somewhere between lies every point of a Put.
	for i := range 12 {
		name := fmt.Sprintf("cancelled-%d", i)
		short, cancel := context.WithTimeout(ctx, time.Duration(i)*250*time.Microsecond)
		_, putErr := e.store(short, sdk.PutRequest{Key: e.key(name)}, want)
		cancel()
		have, _, err := get(ctx, e.Target, whole(e.key(name)))
		switch {
		case putErr == nil && err != nil:
			return fmt.Errorf("put returned nil, get answers: %w", err)
		case err == nil && !bytes.Equal(have, want):
			return fmt.Errorf("a cancelled put left %d of %d bytes", len(have), len(want))
		case err != nil && sdk.CodeOf(err) != sdk.NotFound:
			return fmt.Errorf("get after a cancelled put: %w", err)
		}
	}
	return nil
}

// endedSoon ends the context of calls that are on their way. How far they have come is chance; that they return is not.
func endedSoon(ctx context.Context, e *Env) error {
	large := content(5<<20, 1)
	if err := e.put(ctx, "read", large); err != nil {
		return err
	}
	calls := []struct {
		what string
		call func(ctx context.Context, round int) error
	}{
		{"a put", func(ctx context.Context, round int) error {
			_, err := e.store(ctx, sdk.PutRequest{Key: e.key(fmt.Sprintf("put-%d", round))}, large)
			return err
		}},
		{"a get", func(ctx context.Context, _ int) error {
			_, _, err := get(ctx, e.Target, whole(e.key("read")))
			return err
		}},
		{"a list", func(ctx context.Context, _ int) error {
			_, err := e.list(ctx, sdk.ListRequest{Prefix: e.key("")})
			return err
		}},
		{"a delete", func(ctx context.Context, round int) error {
			return e.Target.Delete(ctx, []string{e.key(fmt.Sprintf("put-%d", round))})
		}},
	}
	for round := range 4 {
		for _, c := range calls {
			short, cancel := context.WithTimeout(ctx, time.Duration(round)*500*time.Microsecond)
			var answer error
			err := e.promptly(c.what, func() { answer = c.call(short, round) })
			cancel()
			if err != nil {
				return err
			}
			if code := sdk.CodeOf(orCancelled(answer)); code != sdk.Cancelled && code != sdk.Unavailable {
				return fmt.Errorf("%s whose context ended answers %s: %w", c.what, code, answer)
			}
		}
	}
	return nil
}

// orCancelled takes a call that was done in time for one that is as it should be.
func orCancelled(err error) error {
	if err == nil {
		return sdk.Cancelled
	}
	return err
}

func cancelledList(ctx context.Context, e *Env) error {
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("listed-%02d", i))
	}
	if err := e.putAll(ctx, names...); err != nil {
		return err
	}
	for _, at := range []int{1, 30, 59} {
		short, cancel := context.WithCancel(ctx)
		seen, errs := 0, 0
		for _, err := range e.Target.List(short, sdk.ListRequest{Prefix: e.key("listed-"), Limit: 10}) {
			switch {
			case errs > 0:
				cancel()
				return errors.New("a listing goes on after its error")
			case err != nil:
				errs++
			default:
				seen++
			}
			if seen == at {
				cancel()
			}
		}
		cancel()
		if errs == 0 && seen != len(names) {
			return fmt.Errorf("a listing that was cancelled at object %d ends without an error after %d of %d", at, seen, len(names))
		}
	}
	return nil
}
