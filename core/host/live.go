package host

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
)

// A live state is tied to its pipeline by the run that opened it last, which both note. Its step alone would not tell one that was moved here: out of
// state.before-standby, of what was set aside, from a copy or another pipeline. Such a one may be ahead of the newest checkpoint and on another
// history, and started from it would overrule what is committed.

// foreign is a *checkpoint.ForeignStateError where the live state of a storage path is not the one that the record speaks of.
func foreign(dir *checkpoint.Dir, record checkpoint.Pipeline) error {
	if len(record.Openers) == 0 {
		return nil
	}
	by, err := checkpoint.OpenedBy(dir.State())
	if err != nil {
		return fmt.Errorf("tell whose the live state is: %w", err)
	}
	if !slices.Contains(record.Openers, by) {
		return &checkpoint.ForeignStateError{Path: dir.State(), OpenedBy: by}
	}
	return nil
}

// openers are the runs that may have opened the live state last while this one is about to: a crash leaves either.
func (p *pipeline) openers(r *run) ([]uuid.UUID, error) {
	by, err := checkpoint.OpenedBy(p.dir.State())
	if err != nil && !errors.Is(err, checkpoint.ErrCorrupt) { // a damaged note says nothing, and whatever it lies in gives way
		return nil, fmt.Errorf("tell whose the live state is: %w", err)
	}
	return slices.Compact([]uuid.UUID{by, r.id}), nil
}

// withoutRoom says that a note can be left out because the disk is full: the state is as good without, as long as the record speaks of it as it is. The next
// start notes it.
func (p *pipeline) withoutRoom(err error) error {
	if err == nil {
		return nil
	}
	if _, full := errors.AsType[*checkpoint.FullError](checkpoint.Explain(p.dir.State(), err)); !full || foreign(p.dir, p.known()) != nil {
		return err
	}
	p.log.Warn("which run has opened the live state is not noted", "error", err)
	return nil
}

// opening notes, before the circuit is opened, that this run may be the last that did.
func (p *pipeline) opening(r *run) error {
	if p.dir == nil || p.scratch() {
		return nil
	}
	openers, err := p.openers(r)
	if err != nil {
		return err
	}
	return p.withoutRoom(p.keepOpeners(openers))
}

// hasOpened notes that it is, if opening could note that it might.
func (p *pipeline) hasOpened(r *run) error {
	if p.dir == nil || p.scratch() {
		return nil
	}
	if !slices.Contains(p.known().Openers, r.id) {
		return nil
	}
	if err := checkpoint.SetOpenedBy(p.dir.State(), r.id); err != nil {
		return p.withoutRoom(fmt.Errorf("note in the live state which run opened it: %w", err))
	}
	p.host.hook("start.marked")
	return p.withoutRoom(p.keepOpeners([]uuid.UUID{r.id}))
}

func (p *pipeline) keepOpeners(openers []uuid.UUID) error {
	if slices.Equal(p.known().Openers, openers) {
		return nil
	}
	return p.changeRecord(func(record *checkpoint.Pipeline) { record.Openers = openers })
}
