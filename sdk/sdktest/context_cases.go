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
