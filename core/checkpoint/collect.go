package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"
)

// Collect removes all but the newest keep checkpoints (at least 1), the pinned ones and those to spare, and returns the ids removed.
// Metadata that cannot be read aborts it before anything is removed. A crash at any moment leaves whole checkpoints and what the next
// OpenDir sweeps away.
func (s *Store) Collect(keep int, spare ...uuid.UUID) ([]uuid.UUID, error) {
	if keep < 1 {
		return nil, fmt.Errorf("collect checkpoints: keep is %d, at least 1 must stay", keep)
	}
	gone, err := s.remove(func() ([]uuid.UUID, error) {
		all, err := s.list(neverStopped)
		if err != nil {
			return nil, err
		}
		return s.victims(all, keep, spare), nil
	})
	if err != nil {
		return gone, fmt.Errorf("collect checkpoints: %w", err)
	}
	return gone, nil
}

// CollectFor makes newest, which was pulled, the newest of all: what sorts after it belongs to a line that was overruled on the target, and is
// removed, as are all but the keep-1 checkpoints next before it. Pinned ones stay, as in Collect; ErrNone when newest is not there.
func (s *Store) CollectFor(newest uuid.UUID, keep int) ([]uuid.UUID, error) {
	gone, err := s.remove(func() ([]uuid.UUID, error) {
		all, err := s.list(neverStopped)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(m Manifest) bool { return m.ID == newest })
		if at < 0 {
			return nil, fmt.Errorf("%s: %w", newest, ErrNone)
		}
		return append(s.victims(all[:at+1], max(1, keep), nil), s.victims(all[at+1:], 0, nil)...), nil
	})
	if err != nil {
		return gone, fmt.Errorf("collect checkpoints: %w", err)
	}
	return gone, nil
}

// SetAside takes a damaged checkpoint out of the store. Its directory stays beside the checkpoints, for whoever wants to look at it, in the
// place of an earlier one of the same id. One that is pinned is refused.
func (s *Store) SetAside(id uuid.UUID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins[id] > 0 {
		return fmt.Errorf("set checkpoint %s aside: it is being read", id)
	}
	aside := s.dir(setAside, id)
	if err := os.RemoveAll(aside); err != nil {
		return fmt.Errorf("set checkpoint %s aside: %w", id, err)
	}
	if err := s.disk.Rename(s.dir(published, id), aside); err != nil {
		return fmt.Errorf("set checkpoint %s aside: %w", id, err)
	}
	delete(s.cache, id)
	return syncDir(s.disk, s.root)
}

// Discard removes every checkpoint but those to spare and the pinned ones, also such whose metadata cannot be read: for a store that is scratch,
// because what counts lies elsewhere. It returns the ids removed.
func (s *Store) Discard(spare ...uuid.UUID) ([]uuid.UUID, error) {
	gone, err := s.remove(func() ([]uuid.UUID, error) {
		ids, err := s.names(published)
		return slices.DeleteFunc(ids, func(id uuid.UUID) bool { return s.pins[id] > 0 || slices.Contains(spare, id) }), err
	})
	if err != nil {
		return gone, fmt.Errorf("discard checkpoints: %w", err)
	}
	return gone, nil
}

// remove takes the chosen checkpoints away. choose is called with the lock held.
func (s *Store) remove(choose func() ([]uuid.UUID, error)) ([]uuid.UUID, error) {
	gone, err := s.unpublish(choose)
	for _, id := range gone {
		// Outside the lock: 100,000 files take seconds, and the directory is no checkpoint any more.
		err = errors.Join(err, os.RemoveAll(s.dir(removing, id)))
		s.hook("collect.removed")
	}
	return gone, err
}

// unpublish chooses the victims and takes their names from them, in one step with respect to Pin. The renames are durable before
// it returns, so that no file of a checkpoint disappears while its directory still bears the name of one.
func (s *Store) unpublish(choose func() ([]uuid.UUID, error)) ([]uuid.UUID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	victims, err := choose()
	if err != nil {
		return nil, err
	}
	if len(victims) == 0 {
		return nil, nil
	}
	if err := s.rememberLastID(victims); err != nil {
		return nil, err
	}
	s.hook("collect.marked")
	for i, id := range victims {
		if err := s.disk.Rename(s.dir(published, id), s.dir(removing, id)); err != nil {
			return nil, errors.Join(err, s.republish(victims[:i]))
		}
		s.hook("collect.renamed")
	}
	if err := syncDir(s.disk, s.root); err != nil {
		return nil, errors.Join(err, s.republish(victims))
	}
	s.hook("collect.synced")
	return victims, nil
}

func (s *Store) victims(all []Manifest, keep int, spare []uuid.UUID) []uuid.UUID {
	var ids []uuid.UUID
	for _, m := range all[:max(0, len(all)-keep)] {
		if s.pins[m.ID] == 0 && !slices.Contains(spare, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// republish gives back the names after a failure; nothing has been removed yet.
func (s *Store) republish(ids []uuid.UUID) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, s.disk.Rename(s.dir(removing, id), s.dir(published, id)))
	}
	return errors.Join(errs...)
}

// rememberLastID writes the greatest id down when no directory will bear one as great: the newest checkpoint by step need not have
// it (after a restore of an older one), and ids must go on rising.
func (s *Store) rememberLastID(victims []uuid.UUID) error {
	remaining, err := s.names(published)
	if err != nil {
		return err
	}
	var kept, lost uuid.UUID
	for _, id := range remaining {
		kept = maxID(kept, id)
	}
	for _, id := range victims {
		lost = maxID(lost, id)
	}
	if lost != kept {
		return nil // kept counts the victims too: a greater one stays
	}
	return replaceFile(s.disk, filepath.Join(s.root, lastIDName), []byte(s.last.String()+"\n"))
}
