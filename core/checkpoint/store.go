package checkpoint

import (
	"context"

	"github.com/google/uuid"
)

// Store is the set of checkpoints of one Dir.
type Store struct{}

// Begin makes an empty draft. Its id is greater than every earlier id of the pipeline, whatever the clock says.
func (s *Store) Begin() (*Draft, error) { panic("being built") }

// BeginAs makes a draft whose id comes from a repository, or resumes the one of that id that an earlier pull left behind: its Dir
// then holds what was written before. Left-behind pulls of other ids are removed. An id that is published is fs.ErrExist.
func (s *Store) BeginAs(id uuid.UUID) (*Draft, error) { panic("being built") }

// Observe tells the store of an id of this pipeline seen elsewhere (a commit on a target), so that later ids are greater than it.
func (s *Store) Observe(id uuid.UUID) { panic("being built") }

// List reads the published checkpoints, ascending by step, then id: the newest comes last. When the metadata of some is damaged,
// the others are returned together with the joined *CorruptErrors that name them.
func (s *Store) List(ctx context.Context) ([]Manifest, error) { panic("being built") }

// Pin keeps the checkpoint id from being collected until Release. ErrNone when there is no such checkpoint.
func (s *Store) Pin(id uuid.UUID) (*Pinned, error) { panic("being built") }

// PinNewest chooses the newest checkpoint and pins it in one step. ErrNone when there is none; when the metadata of any checkpoint is
// damaged, that error, for the newest cannot be known.
func (s *Store) PinNewest() (*Pinned, error) { panic("being built") }

// Collect removes all but the newest keep checkpoints (at least 1) and the pinned ones, and returns the ids removed. Metadata that
// cannot be read aborts it before anything is removed.
func (s *Store) Collect(keep int) ([]uuid.UUID, error) { panic("being built") }

// Draft is a checkpoint being written, by one goroutine.
type Draft struct{}

// ID is the id of the checkpoint to be.
func (d *Draft) ID() uuid.UUID { panic("being built") }

// Dir is the directory to write regular files below. Directories matter only as parts of paths: empty ones are not kept.
func (d *Draft) Dir() string { panic("being built") }

// Publish makes the draft a checkpoint: see the package comment for the order. When it returns an error there is no new
// checkpoint, and the draft can still be published or closed.
func (d *Draft) Publish(ctx context.Context, meta Meta) (Manifest, error) { panic("being built") }

// Close gives up a draft that was not published: one from Begin is removed, one from BeginAs stays on disk to be resumed. After
// Publish or Abort it does nothing, so it can be deferred.
func (d *Draft) Close() error { panic("being built") }

// Abort removes the draft, also one from BeginAs. After Publish or Close it does nothing.
func (d *Draft) Abort() error { panic("being built") }

// Pinned is a checkpoint that stays on disk until Release.
type Pinned struct{}

// Manifest describes the checkpoint.
func (p *Pinned) Manifest() Manifest { panic("being built") }

// Dir holds the checkpoint's files, and only those. Nobody writes there.
func (p *Pinned) Dir() string { panic("being built") }

// Release ends the pin. Calls after the first do nothing.
func (p *Pinned) Release() { panic("being built") }

// Verify compares every byte below dir (as Pinned.Dir gives it) with the manifest. A file that differs, is missing, is not regular
// or is not in the manifest is a *CorruptError; several are joined.
func Verify(ctx context.Context, dir string, m Manifest) error { panic("being built") }
