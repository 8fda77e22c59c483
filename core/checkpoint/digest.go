package checkpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// hasher reads files once and takes their digests. Its methods are called concurrently.
type hasher struct{ buffers sync.Pool }

func newHasher() *hasher {
	return &hasher{buffers: sync.Pool{New: func() any { return new([ChunkSize]byte) }}}
}

// hash reads a regular file that nobody changes meanwhile. done, which may be nil, gets the open file after its last byte was read.
func (h *hasher) hash(ctx context.Context, root, path string, done func(*os.File) error) (File, error) {
	f, err := openForReading(filepath.Join(root, path))
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return File{}, err
	}
	if !before.Mode().IsRegular() {
		return File{}, irregular(path, before.Mode())
	}
	chunks, err := h.chunks(ctx, f, before.Size())
	if err != nil {
		return File{}, fmt.Errorf("file %q: %w", path, err)
	}
	after, err := f.Stat()
	if err != nil {
		return File{}, err
	}
	if !sameFile(before, after) {
		return File{}, fmt.Errorf("file %q: %w", path, errChanged)
	}
	if done != nil {
		err = done(f)
	}
	return File{Path: path, Size: before.Size(), Mode: before.Mode().Perm(), Chunks: chunks, Inode: inodeOf(before)}, err
}

var errChanged = errors.New("it changed while it was being read")

// chunks takes the digest of each ChunkSize piece; a file that is shorter or longer than size has changed.
func (h *hasher) chunks(ctx context.Context, r io.Reader, size int64) ([][32]byte, error) {
	buf := h.buffers.Get().(*[ChunkSize]byte)
	defer h.buffers.Put(buf)
	chunks := make([][32]byte, 0, chunkCount(size))
	for left := size; left > 0; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		piece := buf[:min(left, ChunkSize)]
		if _, err := io.ReadFull(r, piece); err != nil {
			return nil, shrunk(err)
		}
		chunks = append(chunks, sha256.Sum256(piece))
		left -= int64(len(piece))
	}
	if n, err := r.Read(buf[:1]); n > 0 {
		return nil, errChanged
	} else if err != nil && err != io.EOF {
		return nil, err
	}
	return chunks, nil
}

func shrunk(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errChanged
	}
	return err
}

// tree is what lies below a directory.
type tree struct {
	files []string // ascending by bytes, separated by "/"
	dirs  []string // the root, as ".", among them
}

// walk lists root without following links. Everything that is neither a directory nor a regular file is refused by name.
func walk(root string) (tree, error) {
	var t tree
	refused := &problems{}
	err := filepath.WalkDir(root, func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path, err := filepath.Rel(root, full)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			t.dirs = append(t.dirs, path)
		case d.Type().IsRegular():
			t.files = append(t.files, path)
		default:
			refused.add(irregular(path, d.Type()))
		}
		return nil
	})
	if err != nil {
		return tree{}, err
	}
	slices.Sort(t.files) // WalkDir orders by name within a directory: "a/b" before "a-b"
	return t, refused.err()
}

func irregular(path string, mode fs.FileMode) error {
	return fmt.Errorf("%q is a %s; %w", path, kindOf(mode), errIrregular)
}

var errIrregular = errors.New("only regular files can be in a checkpoint")

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	case mode.IsDir():
		return "directory"
	}
	return "special file"
}
