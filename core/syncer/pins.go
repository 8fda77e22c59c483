package syncer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// ErrPinExists says that there is a pin of that name already, and it says something else.
var ErrPinExists = errors.New("there is a pin of that name already")

// ErrNoPin says that there is no pin of that name.
var ErrNoPin = errors.New("no such pin")

// PinRequest asks for a pin. Exactly one of Commit and Checkpoint is given.
type PinRequest struct {
	Name       string    // see repository.CheckPinName
	Commit     uint64    // number of the commit to keep
	Checkpoint uuid.UUID // keep the newest commit of this checkpoint
	Note       string    // for people, at most repository.MaxPinNote bytes; may be empty
}

// Pin keeps a commit from retention until Unpin. When it returns nil the commit is there, readers see it, and no plan that was made without the pin can
// take it any more: after the pin is written, a gc object that retires nothing is created, so that whatever still aims at its number, a request of
// ours that lands late among them, is refused. It waits for a maintenance that runs.
//
// The errors to ask for are ErrNoEpoch, ErrNoCommit (the pin is not there then), ErrPinExists, *FencedError and the codes of sdk. After any other
// than ErrNoCommit the pin may be there, and keeps what it names from the next plan on.
func (w *Worker) Pin(ctx context.Context, req PinRequest) (repository.Pin, error) {
	var pin repository.Pin
	err := w.withUpkeep(ctx, false, func(u *upkeepRun) (err error) {
		pin, err = u.pin(ctx, w.cfg.Host, req)
		return err
	})
	if err != nil {
		return repository.Pin{}, fmt.Errorf("pin %q: %w", req.Name, err)
	}
	w.cfg.Log.Info("commit pinned", "target", w.cfg.Target, "pin", pin.Name, "commit", pin.Commit)
	return pin, nil
}

// Unpin removes a pin, also a damaged one; ErrNoPin when there is none. What it kept goes with the next run of retention that finds it too old.
func (w *Worker) Unpin(ctx context.Context, name string) error {
	err := w.withUpkeep(ctx, true, func(u *upkeepRun) error { return u.unpin(ctx, name) })
	if err != nil {
		return fmt.Errorf("unpin %q: %w", name, err)
	}
	w.cfg.Log.Info("pin removed", "target", w.cfg.Target, "pin", name)
	return nil
}

// Pins reads every pin, by name. A damaged one is an error that names it.
func (w *Worker) Pins(ctx context.Context) ([]repository.Pin, error) {
	var pins []repository.Pin
	err := w.withUpkeep(ctx, true, func(u *upkeepRun) (err error) {
		pins, err = u.pins(ctx)
		return err
	})
	return pins, err
}

// withUpkeep does something that must not run beside a maintenance. Without an epoch only what retires nothing may be done.
func (w *Worker) withUpkeep(ctx context.Context, anybody bool, do func(*upkeepRun) error) (err error) {
	if err := w.takeUpkeep(ctx); err != nil {
		return err
	}
	defer w.releaseUpkeep()
	defer recovered(&err)
	u, err := w.beginUpkeep(MaintainRequest{DryRun: anybody}, &MaintainReport{Policy: w.cfg.Retention})
	if err != nil {
		return err
	}
	u.calls.budget = cmp.Or(w.cfg.AskBudget, u.calls.budget)
	return do(u)
}

func (u *upkeepRun) pin(ctx context.Context, host string, req PinRequest) (repository.Pin, error) {
	if (req.Commit == 0) == (req.Checkpoint == uuid.Nil) {
		return repository.Pin{}, errors.New("name a commit or a checkpoint, one of the two")
	}
	if err := u.stillHighest(ctx); err != nil {
		return repository.Pin{}, err
	}
	if err := u.readGC(ctx); err != nil {
		return repository.Pin{}, err
	}
	held, err := u.wanted(ctx, req)
	if err != nil {
		return repository.Pin{}, err
	}
	pin := repository.Pin{
		Name: req.Name, Commit: held.Number, Checkpoint: held.Checkpoint, Created: u.now().UTC(), By: host, Note: req.Note, WrittenBy: u.writtenBy,
	}
	if pin, err = u.writePin(ctx, pin); err != nil {
		return repository.Pin{}, err
	}
	if u.wrong.pinWithoutGC {
		return pin, nil
	}
	return pin, u.makeSure(ctx, pin)
}

// wanted is the commit that the request names, as readers see it.
func (u *upkeepRun) wanted(ctx context.Context, req PinRequest) (repository.CommitFacts, error) {
	rows, err := u.commits(ctx)
	if err != nil {
		return repository.CommitFacts{}, err
	}
	for _, row := range slices.Backward(rows) {
		c := row.facts
		if c.Kind == repository.KindCheckpoint && u.gc.Visible(c.Number) && (c.Number == req.Commit || c.Checkpoint == req.Checkpoint) {
			return c, nil
		}
	}
	for _, row := range rows {
		if c := row.facts; c.Number == req.Commit && c.Kind != repository.KindCheckpoint && u.gc.Visible(c.Number) {
			return c, fmt.Errorf("target %q, prefix %q: commit %d is a %s, which holds no checkpoint to keep: %w", u.target, u.prefix, c.Number, c.Kind, ErrNoCommit)
		}
	}
	what := Selector{Number: req.Commit, Checkpoint: req.Checkpoint}
	return repository.CommitFacts{}, fmt.Errorf("target %q, prefix %q: %s: %w", u.target, u.prefix, what, ErrNoCommit)
}

// writePin creates the pin's object. One that is there and pins the same is as good, and is what counts.
func (u *upkeepRun) writePin(ctx context.Context, pin repository.Pin) (repository.Pin, error) {
	body, err := repository.EncodePin(pin)
	if err != nil {
		return pin, err
	}
	key := repository.PinKey(u.prefix, pin.Name)
	err = u.create(ctx, key, sdk.ClassMeta, sdk.BytesBody(body))
	if !errors.Is(err, sdk.Exists) {
		return pin, err
	}
	data, err := u.get(ctx, key, repository.MaxSmall)
	if err != nil || bytes.Equal(data, body) {
		return pin, err
	}
	there, err := repository.DecodePin(pin.Name, data)
	if err != nil {
		return pin, fmt.Errorf("target %q: %w: remove it with %s first", u.target, err, u.commands.Unpin(pin.Name))
	}
	if there.Commit != pin.Commit || there.Checkpoint != pin.Checkpoint {
		return pin, fmt.Errorf("target %q: %w: it keeps commit %d since %s, made on host %q: choose another name or remove it first",
			u.target, ErrPinExists, there.Commit, there.Created.Format("2006-01-02 15:04:05Z"), there.By)
	}
	return there, nil
}

// makeSure has every plan that was made without the pin fail from here on, and then looks whether the pinned commit is still to be seen.
func (u *upkeepRun) makeSure(ctx context.Context, pin repository.Pin) error {
	for range gcRounds {
		err := u.createGC(ctx, repository.GC{UpTo: u.gc.UpTo, Kept: u.gc.Kept})
		switch {
		case errors.Is(err, sdk.Exists):
			if err := u.readGC(ctx); err != nil {
				return err
			}
		case err != nil:
			return fmt.Errorf("the pin is written, but whether it came in time is not known: %w", err)
		default:
			return u.stillThere(ctx, pin)
		}
	}
	return fmt.Errorf("target %q: the pin is written, but whether it came in time is not known: %w", u.target, ErrUnresolved)
}

func (u *upkeepRun) stillThere(ctx context.Context, pin repository.Pin) error {
	if u.gc.Visible(pin.Commit) {
		return u.stillHighest(ctx)
	}
	err := fmt.Errorf("target %q: commit %d was retired by gc %d before the pin came: %w", u.target, pin.Commit, u.gc.Number, ErrNoCommit)
	return errors.Join(err, u.unpin(ctx, pin.Name))
}

func (u *upkeepRun) unpin(ctx context.Context, name string) error {
	if err := repository.CheckPinName(name); err != nil {
		return err
	}
	key := repository.PinKey(u.prefix, name)
	_, err := u.get(ctx, key, repository.MaxSmall)
	switch {
	case isNotFound(err):
		return fmt.Errorf("target %q: %w", u.target, ErrNoPin)
	case err != nil:
		return err
	}
	return u.calls.do(ctx, "delete "+key, repository.MaxSmall, func(ctx context.Context) error { return u.store.Delete(ctx, []string{key}) })
}
