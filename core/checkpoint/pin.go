package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/uuid"
)

// Pinned is a checkpoint that stays on disk until Release.
type Pinned struct {
	manifest Manifest
	dir      string
	release  func()
}

// Pin keeps the checkpoint id from being collected until Release. ErrNone when there is no such checkpoint.
func (s *Store) Pin(id uuid.UUID) (*Pinned, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := os.Lstat(s.dir(published, id)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("pin checkpoint %s: %w", id, ErrNone)
	}
	m, err := s.read(id)
	if err != nil {
		return nil, fmt.Errorf("pin checkpoint %s: %w", id, err)
	}
	return s.pin(m), nil
}

// PinNewest chooses the newest checkpoint and pins it in one step. ErrNone when there is none; when the metadata of any checkpoint
// cannot be used, that error, for the newest cannot be known.
func (s *Store) PinNewest() (*Pinned, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.list(neverStopped)
	if err == nil && len(all) == 0 {
		err = ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("pin the newest checkpoint: %w", err)
	}
	return s.pin(all[len(all)-1]), nil
}

// pin is called with mu held, in the same critical section as the choice.
func (s *Store) pin(m Manifest) *Pinned {
	s.pins[m.ID]++
	return &Pinned{
		manifest: m,
		dir:      filepath.Join(s.dir(published, m.ID), filesName),
		release:  sync.OnceFunc(func() { s.unpin(m.ID) }),
	}
}

func (s *Store) unpin(id uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pins[id]--
	if s.pins[id] == 0 {
		delete(s.pins, id)
	}
}

// Manifest describes the checkpoint.
func (p *Pinned) Manifest() Manifest { return p.manifest }

// Dir holds the checkpoint's files, and only those. Nobody writes there.
func (p *Pinned) Dir() string { return p.dir }

// Release ends the pin. Calls after the first do nothing.
func (p *Pinned) Release() { p.release() }
