package syncer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/cairnsync/cairn/core/repository"
)

// filesInFlight bounds the files that are prepared at once; each holds two chunks in memory.
const filesInFlight = 8

// tree is the directory that a restore fills. All access goes through an os.Root: no path and no link leads out of it.
type tree struct {
	root   *os.Root
	files  []repository.File
	filled [][]bool // by file and chunk: the right bytes are there
	linked []bool   // by file: it is a hard link to a local checkpoint's and must not be touched
}

func newTree(root *os.Root, files []repository.File) *tree {
	t := &tree{root: root, files: files, filled: make([][]bool, len(files)), linked: make([]bool, len(files))}
	for i, f := range files {
		t.filled[i] = make([]bool, len(f.Chunks))
	}
	return t
}

// has answers repository.PlanRestore.
func (t *tree) has(p repository.Place) bool { return t.filled[p.File][p.Index] }

// prepare makes every file in its length, keeps what an interrupted restore has left there and is right, takes from donors what they have,
// and removes everything else.
func (t *tree) prepare(ctx context.Context, d *donors) error {
	folders := map[string]struct{}{}
	wanted := make(map[string]struct{}, len(t.files))
	for _, f := range t.files {
		wanted[f.Path] = struct{}{}
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			folders[dir] = struct{}{}
		}
	}
	if err := t.clean(".", wanted, folders); err != nil {
		return err
	}
	for dir := range folders {
		if err := t.root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(filesInFlight)
	for i := range t.files {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return t.prepareFile(ctx, i, d)
		})
	}
	return group.Wait()
}

// clean removes below dir what is not a wanted regular file or a needed folder: strays, links, pipes.
func (t *tree) clean(dir string, wanted, folders map[string]struct{}) error {
	f, err := t.root.Open(dir)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		_, isFolder := folders[name]
		_, isFile := wanted[name]
		switch {
		case e.IsDir() && isFolder:
			err = t.clean(name, wanted, folders)
		case !e.Type().IsRegular() || !isFile:
			err = t.root.RemoveAll(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) prepareFile(ctx context.Context, i int, d *donors) error {
	want := t.files[i]
	buf := make([]byte, min(want.Size, repository.ChunkSize))
	if d.link(ctx, t.root, want, buf) {
		t.linked[i] = true
		for j := range t.filled[i] {
			t.filled[i][j] = true
		}
		return nil
	}
	f, resumed, err := t.open(want)
	if err != nil {
		return err
	}
	defer f.Close()
	for j, ch := range want.Chunks {
		t.filled[i][j] = ch.Encoding == repository.Hole // what an earlier attempt left there, keep makes zeros of
	}
	if resumed {
		if err := t.keep(ctx, f, i, buf); err != nil {
			return err
		}
	}
	return t.borrow(ctx, f, i, d, buf)
}

// open gives the file in its length: the one that is there, if nobody else has a name for it, or a new one.
func (t *tree) open(want repository.File) (f *os.File, resumed bool, err error) {
	info, err := t.root.Lstat(want.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, false, err
	case info.Mode().IsRegular() && soleName(info):
		resumed = true
		err = t.root.Chmod(want.Path, 0o600) // it may be read-only already
	default: // a link that an earlier attempt made to a local checkpoint's file
		err = t.root.Remove(want.Path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	flags := os.O_RDWR
	if !resumed {
		flags |= os.O_CREATE | os.O_EXCL // never through a link
	}
	f, err = t.root.OpenFile(want.Path, flags, 0o600)
	if err != nil {
		return nil, false, err
	}
	if err := f.Truncate(want.Size); err != nil {
		f.Close()
		return nil, false, err
	}
	return f, resumed, nil
}

// keep marks the chunks that are right already, and makes zeros of what should be a hole and is not.
func (t *tree) keep(ctx context.Context, f *os.File, i int, buf []byte) error {
	if err := t.compare(ctx, f, i, buf); err != nil {
		return err
	}
	for j, ch := range t.files[i].Chunks {
		if t.filled[i][j] || ch.Encoding != repository.Hole {
			continue
		}
		zeros := buf[:t.files[i].ChunkLen(j)]
		clear(zeros)
		if _, err := f.WriteAt(zeros, int64(j)*repository.ChunkSize); err != nil {
			return err
		}
		t.filled[i][j] = true
	}
	return nil
}

// compare says of each chunk of file i whether f has it in its place. What is beyond f's end counts as zeros.
func (t *tree) compare(ctx context.Context, f io.ReaderAt, i int, buf []byte) error {
	want := t.files[i]
	for j, ch := range want.Chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		chunk := buf[:want.ChunkLen(j)]
		n, err := f.ReadAt(chunk, int64(j)*repository.ChunkSize)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		clear(chunk[n:])
		t.filled[i][j] = repository.Sum(chunk) == ch.Digest
	}
	return nil
}

// borrow copies the missing chunks that donors have.
func (t *tree) borrow(ctx context.Context, f *os.File, i int, d *donors, buf []byte) error {
	from := d.reader()
	defer from.close()
	for j, ch := range t.files[i].Chunks {
		if t.filled[i][j] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		chunk := buf[:t.files[i].ChunkLen(j)]
		if !from.read(ch.Digest, chunk) {
			continue
		}
		if _, err := f.WriteAt(chunk, int64(j)*repository.ChunkSize); err != nil {
			return err
		}
		t.filled[i][j] = true
	}
	return nil
}

// writer writes chunks into the tree's files. It keeps the file written last open: chunks of one file lie one after the other in a pack.
type treeWriter struct {
	tree *tree
	file int
	open *os.File
}

func (t *tree) writer() *treeWriter { return &treeWriter{tree: t} }

func (w *treeWriter) write(p repository.Place, chunk []byte) error {
	if w.open == nil || w.file != p.File {
		if err := w.close(); err != nil {
			return err
		}
		f, err := w.tree.root.OpenFile(w.tree.files[p.File].Path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		w.file, w.open = p.File, f
	}
	_, err := w.open.WriteAt(chunk, int64(p.Index)*repository.ChunkSize)
	return err
}

// close reports what a network file system may say only now.
func (w *treeWriter) close() error {
	if w.open == nil {
		return nil
	}
	f := w.open
	w.open = nil
	return f.Close()
}

// setModes gives each file its mode; a link has it.
func (t *tree) setModes() error {
	for i, f := range t.files {
		if t.linked[i] || f.Mode == 0o600 {
			continue
		}
		if err := t.root.Chmod(f.Path, f.Mode); err != nil {
			return err
		}
	}
	return nil
}

// sync makes files and folders durable.
func (t *tree) sync(ctx context.Context) error {
	names := []string{"."}
	for _, f := range t.files {
		names = append(names, f.Path)
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			names = append(names, dir)
		}
	}
	slices.Sort(names)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * filesInFlight)
	for _, name := range slices.Compact(names) {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			f, err := t.root.Open(name)
			if err != nil {
				return err
			}
			defer f.Close() // nothing was written through it
			if err := f.Sync(); err != nil {
				return fmt.Errorf("sync %q: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}
