package rpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// script is a stream that gives an event after each pause, and then none until the call is given up.
type script struct {
	ctx    context.Context
	pauses []time.Duration
}

func (s *script) Recv() (*int, error) {
	if len(s.pauses) == 0 {
		<-s.ctx.Done()
		return nil, context.Cause(s.ctx)
	}
	pause := time.NewTimer(s.pauses[0])
	s.pauses = s.pauses[1:]
	select {
	case <-pause.C:
		return new(int), nil
	case <-s.ctx.Done():
		return nil, context.Cause(s.ctx)
	}
}

func TestTheTwoClocksOfACall(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		pauses   []time.Duration
		progress func(event int) int64 // what the call says to have moved by then
		rest     time.Duration         // that the host takes after each event
		want     sdk.Code
		at       time.Duration
	}{
		"silence from the start": {
			progress: func(int) int64 { return 0 }, want: sdk.PluginHung, at: 10 * s,
		},
		"silence after events that moved bytes": {
			pauses: []time.Duration{9 * s, 9 * s, 9 * s}, progress: func(i int) int64 { return int64(i) }, want: sdk.PluginHung, at: 37 * s,
		},
		"events that move nothing": {
			pauses: many(200, s), progress: func(int) int64 { return 0 }, want: sdk.Unavailable, at: 60 * s,
		},
		"bytes that stop to move while events go on": {
			pauses: many(200, s), progress: func(i int) int64 { return int64(min(i, 50)) }, want: sdk.Unavailable, at: 110 * s,
		},
		"a number of bytes that jumps to and fro": {
			pauses: many(200, s), progress: func(i int) int64 { return int64(i % 2) }, want: sdk.Unavailable, at: 61 * s,
		},
		"bytes that crawl": {
			pauses: many(500, s), progress: func(i int) int64 { return int64(i / 50) }, want: sdk.PluginHung, at: 510 * s,
		},
		"time that the host takes for itself": {
			pauses: many(3, s), progress: func(i int) int64 { return int64(i) }, rest: time.Hour, want: sdk.PluginHung, at: 3*time.Hour + 13*s,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, w := newWatch(t.Context(), Clocks{}.orDefault())
			defer w.stop()
			began := time.Now()
			stream := &script{ctx: ctx, pauses: c.pauses}
			for i := 1; ; i++ {
				_, err := next(w, stream)
				if err != nil {
					if !errors.Is(err, c.want) || time.Since(began) != c.at {
						t.Errorf("%s: %v after %s; want %s after %s", name, err, time.Since(began), c.want, c.at)
					}
					return
				}
				w.progress(c.progress(i))
				if c.rest > 0 {
					w.rest()
					time.Sleep(c.rest) // fake time: the bubble's clock jumps
					w.work()
				}
			}
		})
	}
}

func many(n int, pause time.Duration) []time.Duration {
	pauses := make([]time.Duration, n)
	for i := range pauses {
		pauses[i] = pause
	}
	return pauses
}
