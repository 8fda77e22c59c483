package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/google/uuid"
)

// BeginInstead is BeginAs for a checkpoint that is published here and damaged. That stays where it is until Publish has the new one whole, durable and
// compared with what it was to be; then they change places in one step with respect to all readers, and the damaged one is kept where SetAside puts
// such. Publish is refused while it is pinned. A crash between leaves the one or the other under the name.
func (s *Store) BeginInstead(id uuid.UUID) (*Draft, error) {
	d, err := s.beginPull(id, true)
	if err != nil {
		return nil, err
	}
	d.instead = true
	return d, nil
}

// giveWay takes the name from a damaged checkpoint; mu is held. Whoever calls it gives the name to another, or calls takeBack.
func (s *Store) giveWay(id uuid.UUID) error {
	if s.pins[id] > 0 {
		return fmt.Errorf("replace checkpoint %s: it is being read", id)
	}
	delete(s.cache, id)
	return s.disk.Rename(s.dir(published, id), s.dir(replaced, id))
}

func (s *Store) takeBack(id uuid.UUID) error {
	return s.disk.Rename(s.dir(replaced, id), s.dir(published, id))
}

// keepReplaced gives a damaged checkpoint whose place is taken the name under which people find it; an earlier one of that name goes.
func (s *Store) keepReplaced(id uuid.UUID) error {
	kept := s.dir(setAside, id)
	if err := os.RemoveAll(kept); err != nil {
		return err
	}
	if err := s.disk.Rename(s.dir(replaced, id), kept); err != nil {
		return err
	}
	return syncDir(s.disk, s.root)
}

// endReplacements ends what a crash in a replacement has left.
func (s *Store) endReplacements() error {
	ids, err := s.names(replaced)
	if err != nil {
		return err
	}
	for _, id := range ids {
		_, err := os.Lstat(s.dir(published, id))
		switch {
		case err == nil:
			err = s.keepReplaced(id)
		case errors.Is(err, fs.ErrNotExist):
			err = errors.Join(s.takeBack(id), syncDir(s.disk, s.root))
		}
		if err != nil {
			return fmt.Errorf("end the replacement of checkpoint %s: %w", id, err)
		}
	}
	return nil
}
