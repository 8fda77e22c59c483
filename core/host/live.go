package host

import (
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
	if err != nil {
		return nil, fmt.Errorf("tell whose the live state is: %w", err)
	}
	return slices.Compact([]uuid.UUID{by, r.id}), nil
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
	return p.keepOpeners(openers)
}

// hasOpened notes that it is.
func (p *pipeline) hasOpened(r *run) error {
	if p.dir == nil || p.scratch() {
		return nil
	}
	if err := checkpoint.SetOpenedBy(p.dir.State(), r.id); err != nil {
		return fmt.Errorf("note in the live state which run opened it: %w", err)
	}
	p.host.hook("start.marked")
	return p.keepOpeners([]uuid.UUID{r.id})
}

func (p *pipeline) keepOpeners(openers []uuid.UUID) error {
	if slices.Equal(p.known().Openers, openers) {
		return nil
	}
	return p.changeRecord(func(record *checkpoint.Pipeline) { record.Openers = openers })
}
