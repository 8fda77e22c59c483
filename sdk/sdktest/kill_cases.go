package sdktest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/cairnsync/cairn/sdk"
)

func killCases() []Case {
	return []Case{
		{"an object whose Put returned is there after kill -9", Process, storedBeforeKill},
		{"kill -9 during Puts leaves whole objects or none, and none that was stored is lost", Process, killDuringPuts},
		{"kill -9 during Puts with IfAbsent leaves each key whole or free", Process, killDuringCreates},
		{"64 Puts of 16 MiB at the same time are stored, and the process lives", Process, memoryOfPuts},
	}
}

func storedBeforeKill(ctx context.Context, e *Env) error {
	for round, size := range []int{10, 100_000, sdk.MaxInline + 1000} {
		err := e.withConfigured(ctx, func(i Instance) error {
			name := fmt.Sprintf("kept-%d", round)
			want := content(size, uint64(round))
			if err := errors.Join(e.through(i).put(ctx, name, want), i.Signal(syscall.SIGKILL)); err != nil {
				return err
			}
			if !e.ends(i, endsWithHost) {
				return errors.New("the process is there after SIGKILL")
			}
			if err := e.listed(ctx, "kept-"+fmt.Sprint(round), "", name); err != nil {
				return err
			}
			return e.holds(ctx, e.Target, name, want)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func killDuringPuts(ctx context.Context, e *Env) error {
	const n = 3 << 20
	return e.withStock(busyStock, 1, func(s *stock) error {
		for _, after := range []int64{3, 10, 17} { // so many Puts are over when the others are cut off
			err := e.withConfigured(ctx, func(i Instance) error {
				killed := fmt.Errorf("not %d Puts of 3 MiB were done in time", after)
				stored := busyPuts(ctx, e, i, s, n, func(done int64) {
					if done == after {
						killed = i.Signal(syscall.SIGKILL)
					}
				})
				return errors.Join(killed, e.checkBusy(ctx, s, n, stored))
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// killDuringCreates comes back, as a host does: a key that a dead process has left is either taken by a whole object or can be created.
func killDuringCreates(ctx context.Context, e *Env) error {
	const n, keys = 2 << 20, 24
	return e.withStock(n, 1, func(s *stock) error {
		body, err := s.body(0, n)
		if err != nil {
			return err
		}
		request := func(k int) sdk.PutRequest {
			return sdk.PutRequest{Key: e.key(fmt.Sprintf("created-%02d", k)), Body: body, IfAbsent: true}
		}
		err = e.withConfigured(ctx, func(i Instance) error {
			var done atomic.Int64
			killed := errors.New("too few creates of 2 MiB succeed to kill the process among them")
			_ = together(keys, func(k int) error { // they end with the process
				_, err := i.Put(ctx, request(k))
				if err == nil && done.Add(1) == keys/4 {
					killed = i.Signal(syscall.SIGKILL)
				}
				return err
			})
			return killed
		})
		if err != nil {
			return err
		}
		for k := range keys {
			_, err := e.Target.Put(ctx, request(k))
			if errors.Is(err, sdk.Unsupported) {
				return skipped("the store cannot do a Put with IfAbsent")
			}
			if err != nil && !errors.Is(err, sdk.Exists) {
				return fmt.Errorf("create a key that a dead process may have left: %w", err)
			}
			if err := s.answers(ctx, e.Target, whole(request(k).Key), 0, n); err != nil {
				return err
			}
		}
		return nil
	})
}

// memoryOfPuts tells how much memory a plugin needs for what a host at its busiest asks of it. The figure is a note: what is too much is for
// the operator to say.
func memoryOfPuts(ctx context.Context, e *Env) error {
	const writers = 64
	n := e.pack
	return e.withStock(n+writers*4096, 1, func(s *stock) error {
		return e.withConfigured(ctx, func(i Instance) error {
			before := i.PeakMemory()
			err := together(writers, func(worker int) error {
				return s.put(ctx, e, i, fmt.Sprintf("memory-%02d", worker), int64(worker)*4096, n)
			})
			if err != nil {
				return err
			}
			if peak := i.PeakMemory(); peak > 0 {
				e.notes.add("peak memory of the plugin: %d MiB with 64 Puts of %d MiB at once, %d MiB before", peak>>20, n>>20, before>>20)
			}
			for _, worker := range []int{0, 31, 63} {
				if err := s.holds(ctx, e, i, fmt.Sprintf("memory-%02d", worker), int64(worker)*4096, n); err != nil {
					return err
				}
			}
			listed, err := e.list(ctx, sdk.ListRequest{Prefix: e.key("memory-")})
			if err == nil && len(listed) != writers {
				err = fmt.Errorf("%d of %d objects are listed", len(listed), writers)
			}
			return err
		})
	})
}
