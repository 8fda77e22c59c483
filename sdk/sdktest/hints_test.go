package sdktest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// lockedWhileRead is a store whose Put waits until no Body is open.
type lockedWhileRead struct {
	sdk.Target
	slot chan struct{}
	deaf bool // Put waits without regard to ctx, as behind a mutex
}

func (l lockedWhileRead) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	ended := ctx.Done()
	if l.deaf {
		ended = nil
	}
	select {
	case l.slot <- struct{}{}:
		defer func() { <-l.slot }()
		return l.Target.Put(context.WithoutCancel(ctx), req)
	case <-ended:
		return sdk.PutResult{}, ctx.Err()
	}
}

func (l lockedWhileRead) Get(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	l.slot <- struct{}{}
	res, err := l.Target.Get(ctx, req)
	if err != nil {
		<-l.slot
		return res, err
	}
	res.Body = unlocker{res.Body, sync.OnceFunc(func() { <-l.slot })}
	return res, nil
}

type unlocker struct {
	io.Reader
	unlock func()
}

func (u unlocker) Close() error {
	u.unlock()
	return nil
}

func TestAStoreThatLocksWritersOutWhileABodyIsOpenIsToldSo(t *testing.T) {
	for name, deaf := range map[string]bool{"until ctx ends": false, "without regard to ctx": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := lockedWhileRead{Target: sdktest.NewMem(), slot: make(chan struct{}, 1), deaf: deaf}
				err := runOne(t, "an object that is replaced while it is read is never a mix of the old and the new", &sdktest.Env{Target: store})
				if err == nil || !strings.Contains(err.Error(), "does the store lock writers out while a Body is open?") {
					t.Errorf("%v; want the hint", err)
				}
			})
		})
	}
}

func TestAStoreThatASecondInstanceCannotReadIsToldThatTheFirstIsOpen(t *testing.T) {
	mem := sdktest.NewMem()
	locked := &sdktest.Faulty{Target: mem, Before: func(context.Context, sdktest.Call) error { return sdk.Unavailable }}
	for name, reopen := range map[string]func(context.Context) (sdk.Target, error){
		"it cannot be read":   func(context.Context) (sdk.Target, error) { return locked, nil },
		"it cannot be opened": func(context.Context) (sdk.Target, error) { return nil, errors.New("locked") },
	} {
		t.Run(name, func(t *testing.T) {
			err := runOne(t, survives, &sdktest.Env{Target: mem, Reopen: reopen})
			if err == nil || !strings.Contains(err.Error(), "The first process is still open") {
				t.Errorf("%v; want the hint", err)
			}
		})
	}
}
