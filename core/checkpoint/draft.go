package checkpoint

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"
)

// Draft is a checkpoint being written, by one goroutine.
type Draft struct {
	store  *Store
	id     uuid.UUID
	prefix string // writing or pulling
	done   bool   // published, closed or aborted

	instead bool // a damaged checkpoint of the id gives way when it is published
}

// Begin makes an empty draft. Its id is greater than every earlier id of the pipeline, whatever the clock says.
func (s *Store) Begin() (*Draft, error) {
	var random [16]byte
	rand.Read(random[:]) // never fails, says its documentation
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := mint(s.last, s.now(), random)
	if err != nil {
		return nil, err
	}
	s.last = id
	return s.begin(id, writing)
}

// BeginAs makes a draft whose id comes from a repository, or resumes the one of that id that an earlier pull left behind: its Dir
// then holds what was written before. Pulls of other ids that were left behind are removed. An id that is published already, or
// that another draft is writing, is fs.ErrExist.
func (s *Store) BeginAs(id uuid.UUID) (*Draft, error) { return s.beginPull(id, false) }

func (s *Store) beginPull(id uuid.UUID, instead bool) (*Draft, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkFree(id, instead); err != nil {
		return nil, fmt.Errorf("begin checkpoint: %w", err)
	}
	if err := sweep(s.root, func(name string) bool { return s.abandoned(name, id) }); err != nil {
		return nil, fmt.Errorf("begin checkpoint %s: %w", id, err)
	}
	s.last = maxID(s.last, id)
	return s.begin(id, pulling)
}

// checkFree says whether a draft may have the id. instead = there must be a published checkpoint of it, else there must be none.
func (s *Store) checkFree(id uuid.UUID, instead bool) error {
	if err := checkID(id); err != nil {
		return err
	}
	if _, writing := s.drafts[id]; writing {
		return fmt.Errorf("%s is being written: %w", id, fs.ErrExist)
	}
	_, err := os.Lstat(s.dir(published, id))
	switch {
	case err == nil && !instead:
		return fmt.Errorf("%s is published: %w", id, fs.ErrExist)
	case errors.Is(err, fs.ErrNotExist) && instead:
		return fmt.Errorf("in place of %s: %w", id, ErrNone)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// abandoned is true for the leftover of a pull of another id than wanted that nobody is writing.
func (s *Store) abandoned(name string, wanted uuid.UUID) bool {
	prefix, id, ok := parseName(name)
	_, open := s.drafts[id]
	return ok && prefix == pulling && id != wanted && !open
}

func (s *Store) begin(id uuid.UUID, prefix string) (*Draft, error) {
	d := &Draft{store: s, id: id, prefix: prefix}
	for _, dir := range []string{d.top(), d.Dir()} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			_ = os.Remove(d.top()) // empty: the disk had room for the one directory and not for the other
			return nil, fmt.Errorf("begin checkpoint: %w", Explain(s.root, ExplainRemoved(s.root, err)))
		}
	}
	s.drafts[id] = struct{}{}
	return d, nil
}

// ID is the id of the checkpoint to be.
func (d *Draft) ID() uuid.UUID { return d.id }

// Dir is the directory to write regular files below. Directories matter only as parts of paths: empty ones are not kept.
func (d *Draft) Dir() string { return filepath.Join(d.top(), filesName) }

func (d *Draft) top() string { return d.store.dir(d.prefix, d.id) }

// Close gives up a draft that was not published: one from Begin is removed, one from BeginAs stays on disk to be resumed. After
// Publish or Abort it does nothing, so it can be deferred.
func (d *Draft) Close() error {
	if d.prefix == pulling {
		d.end()
		return nil
	}
	return d.Abort()
}

// Abort removes the draft, also one from BeginAs. After Publish or Close it does nothing.
func (d *Draft) Abort() error {
	if d.done {
		return nil
	}
	defer d.end() // last, so that nobody resumes it while it is being removed
	if err := os.RemoveAll(d.top()); err != nil {
		return fmt.Errorf("abort checkpoint: %w", err)
	}
	return nil
}

func (d *Draft) end() {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	d.endLocked()
}

func (d *Draft) endLocked() {
	if !d.done {
		delete(d.store.drafts, d.id)
	}
	d.done = true
}
