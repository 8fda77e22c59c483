package syncer

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
)

// source is where checkpoints come from: a checkpoint.Store, or memory in the model test.
type source interface {
	pin(id uuid.UUID) (pinned, error) // keeps it from being collected until Release
}

// pinned is a checkpoint that stays while it is pushed.
type pinned interface {
	Manifest() checkpoint.Manifest
	Release()
	open(f checkpoint.File) (chunkFile, error)
}

type chunkFile interface {
	io.ReaderAt
	io.Closer
}

// localSource are the checkpoints on disk.
type localSource struct{ *checkpoint.Store }

func (s localSource) pin(id uuid.UUID) (pinned, error) {
	p, err := s.Pin(id)
	if err != nil {
		return nil, err
	}
	return localPinned{p}, nil
}

type localPinned struct{ *checkpoint.Pinned }

// open opens a file of the checkpoint, confined to its directory. It must be what checkpoint.json says: regular and of that size.
func (p localPinned) open(f checkpoint.File) (chunkFile, error) {
	root, err := os.OpenRoot(p.Dir())
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	defer func() { _ = root.Close() }() // read only
	file, err := root.OpenFile(filepath.FromSlash(f.Path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint file: %w", err)
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		err = fmt.Errorf("stat checkpoint file: %w", err)
	case !info.Mode().IsRegular():
		err = changed(filepath.Join(p.Dir(), f.Path), errors.New("it is no longer a regular file"))
	case info.Size() != f.Size:
		err = changed(filepath.Join(p.Dir(), f.Path), fmt.Errorf("%d bytes, %d when it was published", info.Size(), f.Size))
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// chunkFiles reads chunks file after file, each checked against its digest in checkpoint.json. It is used by one goroutine.
type chunkFiles struct {
	pinned
	files []checkpoint.File // ascending by path, as in every manifest

	path string // of the open file
	file chunkFile
	buf  []byte // reused; valid until the next read
}

// read gives the content of a planned chunk. It is valid until the next call.
func (r *chunkFiles) read(path string, c repository.NewChunk) ([]byte, error) {
	if err := r.switchTo(path); err != nil {
		return nil, err
	}
	if int64(cap(r.buf)) < c.Length {
		r.buf = make([]byte, c.Length)
	}
	raw := r.buf[:c.Length]
	n, err := r.file.ReadAt(raw, int64(c.Index)*repository.ChunkSize)
	switch {
	case n == len(raw): // ReadAt may say io.EOF with the last bytes
	case errors.Is(err, io.EOF):
		return nil, changed(path, fmt.Errorf("chunk %d ends after %d of %d bytes", c.Index, n, c.Length))
	default:
		return nil, fmt.Errorf("read checkpoint file %q: %w", path, err)
	}
	if sha256.Sum256(raw) != c.Digest {
		return nil, changed(path, fmt.Errorf("chunk %d is not what checkpoint.json says", c.Index))
	}
	return raw, nil
}

func (r *chunkFiles) switchTo(path string) error {
	if r.file != nil && r.path == path {
		return nil
	}
	r.close()
	i, found := slices.BinarySearchFunc(r.files, path, func(f checkpoint.File, path string) int { return strings.Compare(f.Path, path) })
	if !found {
		return fmt.Errorf("checkpoint has no file %q", path)
	}
	file, err := r.open(r.files[i])
	if err != nil {
		return err
	}
	r.path, r.file = path, file
	return nil
}

func (r *chunkFiles) close() {
	if r.file != nil {
		r.file.Close() // read only
		r.file = nil
	}
}

// changed is the error for a checkpoint that is not what was published. A push never guesses: nothing of it is committed.
func changed(path string, err error) error {
	return &checkpoint.CorruptError{Path: path, Err: err, Remedy: "it changed on disk after it was published: take a new checkpoint and check the disk"}
}
