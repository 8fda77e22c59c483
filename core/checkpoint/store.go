package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	manifestName = "checkpoint.json"
	filesName    = "files" // a directory of its own, so that a circuit may name its files as it likes and a copy of it holds nothing else
	lastIDName   = ".last-id"
)

// Store is the set of checkpoints of one Dir.
type Store struct {
	root string // <storage path>/checkpoints
	now  func() time.Time
	hook func(point string)
	disk disk

	mu     sync.Mutex
	last   uuid.UUID         // no id that was ever seen is greater
	pins   map[uuid.UUID]int // by how many a checkpoint is held
	drafts map[uuid.UUID]struct{}
	cache  map[uuid.UUID]cached
}

// cached is a decoded checkpoint.json and the file it was decoded from: published checkpoints do not change, and decoding one of
// 100,000 files for every status would.
type cached struct {
	info     fs.FileInfo
	manifest Manifest
}

// openStore removes the leftovers of a crash and learns the greatest id.
func openStore(root string, o Options, d disk) (*Store, error) {
	s := &Store{
		root: root, now: o.Now, hook: o.Hook, disk: d,
		pins: map[uuid.UUID]int{}, drafts: map[uuid.UUID]struct{}{}, cache: map[uuid.UUID]cached{},
	}
	if s.hook == nil {
		s.hook = func(string) {}
	}
	if err := s.endReplacements(); err != nil {
		return nil, err
	}
	if err := s.learnLastID(); err != nil {
		return nil, err
	}
	return s, sweep(root, func(name string) bool {
		prefix, _, ok := parseName(name)
		return ok && (prefix == writing || prefix == removing)
	})
}

func (s *Store) learnLastID() error {
	for _, prefix := range []string{published, pulling} {
		ids, err := s.names(prefix)
		if err != nil {
			return err
		}
		for _, id := range ids {
			s.last = maxID(s.last, id)
		}
	}
	path := filepath.Join(s.root, lastIDName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	id, err := uuid.Parse(strings.TrimSpace(string(text)))
	if err == nil {
		err = checkID(id)
	}
	if err != nil {
		return &CorruptError{Path: path, Err: err, Remedy: "remove it, unless the clock of this machine was set back lately"}
	}
	s.last = maxID(s.last, id)
	return nil
}

// names lists the ids of the directories with the prefix. Names that are not ours are let alone.
func (s *Store) names(prefix string) ([]uuid.UUID, error) {
	entries, err := os.ReadDir(s.root)
	if err != nil {
		return nil, fmt.Errorf("list checkpoints: %w", err)
	}
	var ids []uuid.UUID
	for _, e := range entries {
		if p, id, ok := parseName(e.Name()); ok && p == prefix {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (s *Store) dir(prefix string, id uuid.UUID) string {
	return filepath.Join(s.root, prefix+id.String())
}

// Observe tells the store of an id of this pipeline seen elsewhere (a commit on a target), so that later ids are greater than it.
func (s *Store) Observe(id uuid.UUID) error {
	if err := checkID(id); err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = maxID(s.last, id)
	return nil
}

// List reads the published checkpoints, ascending by step, then id: the newest comes last. When the metadata of some cannot be
// used, the others are returned together with the joined errors that name them (*CorruptError, *FormatError).
func (s *Store) List(ctx context.Context) ([]Manifest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list(ctx.Err)
}

// list is called with mu held. stopped is asked before each checkpoint.
func (s *Store) list(stopped func() error) ([]Manifest, error) {
	ids, err := s.names(published)
	if err != nil {
		return nil, err
	}
	s.forgetAllBut(ids)
	var manifests []Manifest
	var damaged []error
	for _, id := range ids {
		if err := stopped(); err != nil {
			return nil, err
		}
		m, err := s.read(id)
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		manifests = append(manifests, m)
	}
	slices.SortFunc(manifests, byAge)
	return manifests, errors.Join(damaged...)
}

func neverStopped() error { return nil }

// byAge puts the newest last.
func byAge(a, b Manifest) int {
	return cmp.Or(cmp.Compare(a.Step, b.Step), compareIDs(a.ID, b.ID))
}

// read gives the manifest of a published checkpoint; mu is held. Whatever hinders it is an error: the directory is there.
func (s *Store) read(id uuid.UUID) (Manifest, error) {
	path := filepath.Join(s.dir(published, id), manifestName)
	info, err := os.Lstat(path)
	if err != nil {
		return Manifest{}, unreadable(path, err)
	}
	if c, ok := s.cache[id]; ok && sameFile(c.info, info) {
		return c.manifest, nil
	}
	if !info.Mode().IsRegular() {
		return Manifest{}, unreadable(path, fmt.Errorf("it is a %s", kindOf(info.Mode())))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Manifest{}, unreadable(path, err)
	}
	m, err := decodeManifest(path, data)
	if err != nil {
		return Manifest{}, withRemedy(err, manifestRemedy)
	}
	if m.ID != id {
		return Manifest{}, unreadable(path, fmt.Errorf("it belongs to checkpoint %s", m.ID))
	}
	s.cache[id] = cached{info: info, manifest: m}
	return m, nil
}

const manifestRemedy = "move its directory away to go on without this checkpoint"

// unreadable: a directory bears a checkpoint's name, so its index must be there.
func unreadable(path string, err error) error {
	return &CorruptError{Path: path, Err: err, Remedy: manifestRemedy}
}

func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func (s *Store) forgetAllBut(ids []uuid.UUID) {
	for id := range s.cache {
		if !slices.Contains(ids, id) {
			delete(s.cache, id)
		}
	}
}
