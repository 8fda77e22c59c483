package syncer

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
)

// donors are files here: what a pull or a restore finds in them it does not read from the target. Local checkpoints are pinned until release;
// they are immutable, so a file of theirs may be linked. What lies elsewhere, the live state included, is only copied from. A nil *donors has
// nothing.
type donors struct {
	pins   []*checkpoint.Pinned
	whole  map[repository.Digest][]lent // by the first chunk: files of checkpoints that begin with it
	chunks map[repository.Digest]donated
}

// lent is a file of a pinned checkpoint.
type lent struct {
	path string
	file *checkpoint.File
}

// donated is chunk index of the file at path.
type donated struct {
	path  string
	index int
}

func newDonors() *donors {
	return &donors{whole: map[repository.Digest][]lent{}, chunks: map[repository.Digest]donated{}}
}

// donors pins the local checkpoints. One that cannot be read lends nothing; whoever needs it will hear of it.
func (r *Reader) donors(ctx context.Context, local *checkpoint.Store) *donors {
	d := newDonors()
	list, err := local.List(ctx)
	if err != nil {
		r.log.Warn("some local checkpoints cannot be read and lend nothing to the pull", "error", err)
	}
	for _, m := range slices.Backward(list) {
		pin, err := local.Pin(m.ID)
		if err != nil {
			continue // collected since
		}
		d.add(pin)
	}
	return d
}

func (d *donors) add(pin *checkpoint.Pinned) {
	d.pins = append(d.pins, pin)
	files := pin.Manifest().Files
	for i := range files {
		f := &files[i]
		path := filepath.Join(pin.Dir(), f.Path)
		for j, sum := range f.Chunks {
			if j == 0 {
				d.whole[sum] = append(d.whole[sum], lent{path, f})
			}
			d.lend(sum, donated{path, j})
		}
	}
}

// lend notes where a chunk is; the first place stays.
func (d *donors) lend(sum repository.Digest, at donated) {
	if _, known := d.chunks[sum]; !known {
		d.chunks[sum] = at
	}
}

func (d *donors) has(sum repository.Digest) bool {
	if d == nil {
		return false
	}
	_, ok := d.chunks[sum]
	return ok
}

func (d *donors) release() {
	for _, p := range d.pins {
		p.Release()
	}
}

// link makes the wanted file a second name of a donor's that has the same content and mode, and has not been touched since it was
// published. It answers false when there is none, or when the file system cannot: then the file is written. A disk may rot below a file
// whose size and times stay, and publication does not read again what is a name of the newest checkpoint's: so it is read here, into buf,
// which holds a chunk.
func (d *donors) link(ctx context.Context, root *os.Root, want repository.File, buf []byte) bool {
	if d == nil || len(want.Chunks) == 0 {
		return false
	}
	for _, at := range d.whole[want.Chunks[0].Digest] {
		if at.file.Mode != want.Mode || !sameChunks(at.file, want) {
			continue
		}
		info, err := os.Lstat(at.path)
		if err != nil || !untouched(info, at.file) || !stillHolds(ctx, at.path, want, buf) {
			continue
		}
		// The folder was made by this restore, through its root; the name was checked.
		to := filepath.Join(root.Name(), want.Path)
		if there, err := os.Lstat(to); err == nil && os.SameFile(there, info) {
			return true
		} else if err == nil && root.Remove(want.Path) != nil {
			return false
		}
		if os.Link(at.path, to) == nil {
			return true
		}
	}
	return false
}

// untouched says that the file is still the one that was published: same inode, size and modification time, as publication itself asks.
func untouched(info os.FileInfo, f *checkpoint.File) bool {
	return info.Mode().IsRegular() && info.Size() == f.Size && info.Mode().Perm() == f.Mode &&
		f.Inode != (checkpoint.Inode{}) && inodeOf(info) == f.Inode
}

// stillHolds reads a file and says whether every chunk of the wanted one is there.
func stillHolds(ctx context.Context, path string, want repository.File, buf []byte) bool {
	f, err := openRegular(path)
	if err != nil {
		return false
	}
	defer f.Close() // nothing was written through it
	for j, ch := range want.Chunks {
		if ctx.Err() != nil || !readChunk(f, j, ch.Digest, buf[:want.ChunkLen(j)]) {
			return false
		}
	}
	return true
}

// readChunk fills buf with chunk index of a file, and says whether that is the wanted one.
func readChunk(f io.ReaderAt, index int, want repository.Digest, buf []byte) bool {
	_, err := io.ReadFull(io.NewSectionReader(f, int64(index)*repository.ChunkSize, int64(len(buf))), buf)
	return err == nil && repository.Sum(buf) == want
}

func sameChunks(have *checkpoint.File, want repository.File) bool {
	return have.Size == want.Size && slices.EqualFunc(have.Chunks, want.Chunks, func(a [32]byte, b repository.Chunk) bool { return a == b.Digest })
}

func sameContent(a, b checkpoint.File) bool {
	return a.Size == b.Size && slices.Equal(a.Chunks, b.Chunks)
}

// donorReader reads chunks of donors, keeping the file read last open.
type donorReader struct {
	donors *donors
	path   string
	file   *os.File
}

func (d *donors) reader() *donorReader { return &donorReader{donors: d} }

// read fills buf, which has the chunk's length, and checks it. False when no donor has the chunk, or not any more.
func (r *donorReader) read(digest repository.Digest, buf []byte) bool {
	if r.donors == nil {
		return false
	}
	at, ok := r.donors.chunks[digest]
	if !ok {
		return false
	}
	if r.file == nil || at.path != r.path {
		r.close()
		f, err := openRegular(at.path)
		if err != nil {
			return false
		}
		r.path, r.file = at.path, f
	}
	return readChunk(r.file, at.index, digest, buf)
}

func (r *donorReader) close() {
	if r.file != nil {
		r.file.Close() // nothing was written through it
		r.file = nil
	}
}
