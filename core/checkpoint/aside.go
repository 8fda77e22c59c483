package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"
)

// Restoring is an operator's word that one checkpoint shall be what starts next, whatever is newer here. It stands in pipeline.json from before that
// checkpoint is pulled until everything else is set aside, so that a crash between leaves either nothing done or all of it to be done.
type Restoring struct {
	Checkpoint uuid.UUID    `json:"checkpoint"`
	Aside      string       `json:"aside"`          // name of the folder, below that of AsidePath, for what is here now
	Seen       []SeenCommit `json:"seen,omitempty"` // newest commits that the checkpoint holds, or is
}

// SeenCommit is a commit that was the newest of its target when a restore was asked for.
type SeenCommit struct {
	Target     string    `json:"target"`
	Number     uint64    `json:"number"`
	Checkpoint uuid.UUID `json:"checkpoint"`
	Step       uint64    `json:"step"`
}

func (r *Restoring) check() error {
	if r == nil {
		return nil
	}
	if r.Checkpoint == uuid.Nil || r.Aside == "." || r.Aside != filepath.Base(r.Aside) || !filepath.IsLocal(r.Aside) {
		return fmt.Errorf("a restore of checkpoint %s that sets aside into %q cannot be", r.Checkpoint, r.Aside)
	}
	return nil
}

// AsidePath is where KeepOnly puts what it takes out of the way under that name. Nothing there is read again, or deleted.
func (d *Dir) AsidePath(name string) string { return filepath.Join(d.path, "set-aside", name) }

// KeepOnly makes a checkpoint all that a start can find here: the live state and every other checkpoint, also such that cannot be read, are moved
// to AsidePath(name), beside a copy of pipeline.json, without which they could not be brought back. Where there is nothing else no folder is made.
// ErrNone when the checkpoint is not here: then nothing is moved. What a crash or an error has left undone is done by the next call with the
// same arguments; it also makes durable what that one had only renamed. Nothing may be pinned, and no circuit be open.
func (d *Dir) KeepOnly(id uuid.UUID, name string) error {
	if err := d.keepOnly(id, d.AsidePath(name)); err != nil {
		return fmt.Errorf("set aside all but checkpoint %s: %w", id, err)
	}
	return nil
}

func (d *Dir) keepOnly(id uuid.UUID, into string) error {
	others, err := d.store.others(id)
	if err != nil {
		return err
	}
	// An earlier run may have ended between the rename that gave the checkpoint or pipeline.json its name and the sync of the folder. Without these
	// names what is moved below could not be told from what was lost.
	if err := errors.Join(syncDir(d.disk, d.path), syncDir(d.disk, d.store.root)); err != nil {
		return err
	}
	live, err := exists(d.State())
	if err != nil {
		return err
	}
	if !live && len(others) == 0 {
		return d.syncAside(into)
	}
	if err := d.copyPipeline(into); err != nil {
		return err
	}
	if err := d.store.moveAway(others, filepath.Join(into, "checkpoints")); err != nil {
		return err
	}
	if live {
		if err := d.disk.Rename(d.State(), filepath.Join(into, "state")); err != nil {
			return err
		}
		d.store.hook("aside.moved")
	}
	return d.syncAside(into)
}

// syncAside makes durable what was moved, by whichever run: first where it is now, then that it is not where it was. Where nothing was ever set aside
// there is nothing to do.
func (d *Dir) syncAside(into string) error {
	there, err := exists(into)
	if err != nil || !there {
		return err
	}
	for _, dir := range []string{filepath.Join(into, "checkpoints"), into, filepath.Dir(into), d.store.root, d.path} {
		if err := syncDir(d.disk, dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // what a person has removed meanwhile stays removed
			return err
		}
	}
	return nil
}

// copyPipeline makes the folder and puts pipeline.json there as it was before the restore, unless an earlier call has.
func (d *Dir) copyPipeline(into string) error {
	if err := makeDirs(d.disk, filepath.Join(into, "checkpoints")); err != nil {
		return err
	}
	file := filepath.Join(into, "pipeline.json")
	if there, err := exists(file); there || err != nil {
		return err
	}
	p, err := d.Pipeline()
	if err != nil {
		return err
	}
	p.Restoring = nil
	data, err := sealJSON(p)
	if err != nil {
		return err
	}
	if err := replaceFile(d.disk, file, data); err != nil {
		return err
	}
	d.store.hook("aside.copied")
	return nil
}

// others are the published checkpoints but one, which must be there.
func (s *Store) others(id uuid.UUID) ([]uuid.UUID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids, err := s.names(published)
	if err != nil {
		return nil, err
	}
	var others []uuid.UUID
	found := false
	for _, one := range ids {
		if one == id {
			found = true
			continue
		}
		others = append(others, one)
	}
	if !found {
		return nil, ErrNone
	}
	return others, nil
}

// moveAway moves checkpoints into a folder, under their names. Ids go on rising above theirs. The caller syncs both folders.
func (s *Store) moveAway(ids []uuid.UUID, into string) error {
	if len(ids) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.rememberLastID(ids); err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.disk.Rename(s.dir(published, id), filepath.Join(into, id.String())); err != nil {
			return err
		}
		delete(s.cache, id)
		s.hook("aside.moved")
	}
	return nil
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
