package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cairnsync/cairn/sdk/client"
)

const (
	// lookEvery is how often the status of a host is looked at while a call to it waits: a person begins to wonder after some seconds.
	lookEvery = 2 * time.Second

	// sayAgain is after how many looks that find the same is said again.
	sayAgain = 30

	// silentLooks is how many looks in a row may find no answer before the host is given up: one is lost when a connection breaks or a busy machine is slow,
	// and the call that waits may have hours of work behind it.
	silentLooks = 5
)

// attendance watches a call that the host may answer late.
type attendance struct {
	pipeline string
	target   string // "" = all of the pipeline's
	objects  bool   // targets count under object storage only, as for a checkpoint
	starting bool   // what a start is doing counts, whatever is known of the targets
}

// attend makes a call that may have to wait for a target. Meanwhile it says on standard error what the host's status says is in the way. It bears any
// silence, as long as the host still answers for its status now and then.
func (p *program) attend(ctx context.Context, a attendance, call func(context.Context, *client.Client) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticks := time.NewTicker(cmp.Or(p.look, lookEvery))
		defer ticks.Stop()
		if err := p.watch(ctx, a, ticks.C, p.client().Pipeline); err != nil {
			cancel(err)
		}
	}()
	err := call(ctx, p.clientFor(0))
	cut := context.Cause(ctx)
	cancel(nil)
	<-ended
	if err != nil && cut != nil && !errors.Is(cut, context.Canceled) {
		return cut // it says more than that a context has ended
	}
	return err
}

// watch tells what is in the way at each tick that finds something new, and now and then again. It returns when ctx ends, or with the error of a host
// that does not answer.
func (p *program) watch(ctx context.Context, a attendance, ticks <-chan time.Time, look func(context.Context, string) (client.PipelineView, error)) error {
	told, same, silent := "", 0, 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
		}
		view, err := look(ctx, a.pipeline)
		switch {
		case ctx.Err() != nil:
			return nil
		case is[unreachableError](err):
			if silent++; silent == silentLooks {
				return err
			}
			continue
		}
		silent = 0
		if err != nil {
			continue // the call itself will say so
		}
		now, about := a.waitsFor(view)
		if same++; now == "" || about == told && same < sayAgain {
			continue
		}
		told, same = about, 0
		if !p.asJSON {
			fmt.Fprintf(p.stderr, "still waiting: %s\n", now)
		}
	}
}

// waitsFor is what the status says that the call waits for, and what that is about: it is told again at once only when that changes, however the figures in it do.
func (a attendance) waitsFor(v client.PipelineView) (what, about string) {
	if !a.starting {
		why := a.inTheWay(v)
		return why, why
	}
	if v.State != "starting" {
		return "", ""
	}
	about, _, _ = strings.Cut(v.Doing, ": ")
	return v.Doing, about
}

// inTheWay is what the status says of the first target that does not get on; "" = nothing.
func (a attendance) inTheWay(v client.PipelineView) string {
	if a.objects && v.Storage.Type != "object" {
		return ""
	}
	for _, t := range v.Targets {
		if a.target != "" && a.target != t.Target {
			continue
		}
		if why := t.InTheWay(); why != "" {
			return why
		}
	}
	return ""
}

// within bounds a wait; 0 = it has no end of its own.
func within(ctx context.Context, limit time.Duration, what string) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s has not come within %s; the host goes on trying, and `cairn status` tells how far it is", what, limit))
}

// checkTimeout refuses what cannot be meant.
func checkTimeout(limit time.Duration) error {
	if limit < 0 {
		return usageError{errors.New("--timeout: give a duration above 0, such as 30s; left out, the wait has no end of its own")}
	}
	return nil
}
