package syncer

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/cairnsync/cairn/core/repository"
)

// folderScan looks in folders for the chunks of a commit. What lies there is somebody else's and may change at any time: nothing of it is
// linked, and a chunk is checked once more when it is taken.
type folderScan struct {
	reader *Reader
	wanted map[repository.Digest]struct{}

	mu    sync.Mutex // guards found
	found *donors
}

// donorsIn reads every regular file below the folders, following no links. It knows chunks where a restore cuts them: at multiples of
// repository.ChunkSize from the beginning of a file. A folder that cannot be read is an error; a file that cannot lends nothing.
func (r *Reader) donorsIn(ctx context.Context, dirs []string, c *repository.Commit) (*donors, error) {
	if len(dirs) == 0 {
		return nil, nil
	}
	s := &folderScan{reader: r, wanted: map[repository.Digest]struct{}{}, found: newDonors()}
	for _, f := range c.Files {
		for _, ch := range f.Chunks {
			if ch.Encoding != repository.Hole {
				s.wanted[ch.Digest] = struct{}{}
			}
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(filesInFlight)
	for _, dir := range dirs {
		if err := s.folder(ctx, dir, group); err != nil {
			_ = group.Wait() // the folder's error says more
			return nil, fmt.Errorf("look for content in %s: %w: name a folder that can be read, or leave it out", dir, err)
		}
	}
	return s.found, group.Wait()
}

func (s *folderScan) folder(ctx context.Context, dir string, group *errgroup.Group) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if _, err := os.ReadDir(dir); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			s.skip(path, err)
		case e.Type().IsRegular():
			group.Go(func() error { return s.file(ctx, path) })
		}
		return nil
	})
}

func (s *folderScan) skip(path string, err error) {
	s.reader.log.Warn("cannot be read and lends nothing to the restore", "path", path, "error", err)
}

func (s *folderScan) file(ctx context.Context, path string) error {
	f, err := openRegular(path)
	if err != nil {
		s.skip(path, err)
		return nil
	}
	defer f.Close() // nothing was written through it
	info, err := f.Stat()
	if err != nil {
		s.skip(path, err)
		return nil
	}
	size := info.Size()
	buf := make([]byte, min(size, repository.ChunkSize))
	for j := 0; int64(j)*repository.ChunkSize < size; j++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		from := int64(j) * repository.ChunkSize
		chunk := buf[:min(repository.ChunkSize, size-from)]
		if _, err := f.ReadAt(chunk, from); err != nil {
			s.skip(path, err)
			return nil
		}
		s.lend(repository.Sum(chunk), donated{path, j})
	}
	return nil
}

func (s *folderScan) lend(sum repository.Digest, at donated) {
	if _, ok := s.wanted[sum]; !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found.lend(sum, at)
}
