package sdktest

import (
	"context"
	"errors"
	"fmt"
	"maps"
)

// beside is the case that all others of its level stand on: each of them starts a process beside the one of Env.Target.
const beside = "a second process with the same configuration works beside the first"

// notBeside is why the others are not run when it fails: they would fail for its reason and be read for theirs.
const notBeside = "a second process does not work beside the first, which every case of this level needs; put that right first"

// firstIsOpen is what to look at when a second instance cannot work while the first is open.
const firstIsOpen = "The first process is still open: if one process locks the store for itself, open it for each call"

func besideCases() []Case { return []Case{{beside, Process, secondProcess}} }

// after is the Env for what comes after a result.
func (e *Env) after(r Result) *Env {
	if r.Case.Name != beside || r.Err == nil {
		return e
	}
	rest := *e
	rest.Skip = maps.Clone(e.Skip)
	if rest.Skip == nil {
		rest.Skip = map[Level]string{}
	}
	rest.Skip[Process] = notBeside
	return &rest
}

func secondProcess(ctx context.Context, e *Env) error {
	err := e.withConfigured(ctx, func(i Instance) error {
		second := e.through(i)
		want := content(300_000, 1)
		if err := errors.Join(e.put(ctx, "of-first", want), second.put(ctx, "of-second", want)); err != nil {
			return err
		}
		if err := errors.Join(e.holds(ctx, i, "of-first", want), e.holds(ctx, e.Target, "of-second", want)); err != nil {
			return err
		}
		if err := errors.Join(e.listed(ctx, "of-", "", "of-first", "of-second"), second.listed(ctx, "of-", "", "of-first", "of-second")); err != nil {
			return err
		}
		if err := errors.Join(e.remove(ctx, "of-second"), second.remove(ctx, "of-first")); err != nil {
			return err
		}
		return errors.Join(e.listed(ctx, "", ""), second.listed(ctx, "", ""))
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, firstIsOpen)
	}
	return nil
}
