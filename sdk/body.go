package sdk

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
)

// Sums are the digests of one body, taken by the host in the pass that built the object.
type Sums struct {
	SHA256 [32]byte
	CRC32C uint32 // Castagnoli, for stores that check it on arrival
}

// SumsOf takes the sums of content that lies in memory.
func SumsOf(content []byte) Sums {
	return Sums{SHA256: sha256.Sum256(content), CRC32C: crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))}
}

// Body is the content of one object. Its size and digests are known before the first byte is read, and it can be read any number of
// times, also at once. It owns nothing: whoever made it keeps the source open until the Put has returned.
type Body struct {
	src  io.ReaderAt
	off  int64
	size int64
	sums Sums
	file *os.File
}

// NewBody is a body of the first size bytes of src. Above MaxInline bytes it can be used in process only: it cannot cross the RPC.
func NewBody(src io.ReaderAt, size int64, sums Sums) Body {
	return Body{src: src, size: size, sums: sums}
}

// BytesBody is a body of content, which must not change while the body is in use.
func BytesBody(content []byte) Body {
	return NewBody(bytes.NewReader(content), int64(len(content)), SumsOf(content))
}

// FileBody is a body of the n bytes of f that begin at off, usually a range of a spool file: only its name crosses the RPC.
func FileBody(f *os.File, off, n int64, sums Sums) Body {
	return Body{src: f, off: off, size: n, sums: sums, file: f}
}

// Size is the length in bytes.
func (b Body) Size() int64 { return b.size }

// SHA256 is the declared digest.
func (b Body) SHA256() [32]byte { return b.sums.SHA256 }

// CRC32C is the declared Castagnoli checksum.
func (b Body) CRC32C() uint32 { return b.sums.CRC32C }

// Sums are both declared digests.
func (b Body) Sums() Sums { return b.sums }

// File is the file and offset of a FileBody, for the host's side of the RPC; nil and 0 for any other body.
func (b Body) File() (f *os.File, off int64) { return b.file, b.off }

// Section is the raw content, unchecked: for a store that checks the declared digest on arrival, or for parallel parts.
func (b Body) Section() *io.SectionReader {
	if b.src == nil {
		return io.NewSectionReader(bytes.NewReader(nil), 0, b.size)
	}
	return io.NewSectionReader(b.src, b.off, b.size)
}

// Reader is a fresh checked reader from the start. See BodyReader.
func (b Body) Reader() *BodyReader {
	return &BodyReader{body: b, section: b.Section(), hash: sha256.New()}
}

// BodyReader reads a Body and withholds its last bytes unless size and digest agree: a store that is fed by it can never hold a
// complete object of damaged content, because the declared length never arrives. The error is Corrupt. It is an io.ReadSeekCloser
// for one goroutine; Seek is cheap at 0 and costs one more pass over the content elsewhere.
type BodyReader struct {
	body    Body
	section *io.SectionReader
	pos     int64 // of the next Read
	hashed  int64 // hash covers the bytes before it
	hash    hash.Hash
	err     error // sticky: what was withheld once stays withheld
}

var _ io.ReadSeekCloser = (*BodyReader)(nil)

// Read yields content; the bytes that complete it come only after the digest has been checked.
func (r *BodyReader) Read(p []byte) (int, error) {
	switch {
	case r.err != nil:
		return 0, r.err
	case r.body.size > 0 && r.pos >= r.body.size:
		return 0, io.EOF
	case r.body.size > 0 && len(p) == 0:
		return 0, nil
	}
	n, err := r.section.Read(p)
	r.note(p[:n])
	if err != nil && (!errors.Is(err, io.EOF) || r.pos < r.body.size) {
		return 0, r.fail(r.readFault(err))
	}
	if r.pos < r.body.size {
		return n, nil
	}
	if err := r.verify(); err != nil {
		return 0, r.fail(err)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// note advances past what was read, and the hash with it as long as reading is contiguous from the start.
func (r *BodyReader) note(p []byte) {
	if r.pos == r.hashed {
		r.hash.Write(p)
		r.hashed += int64(len(p))
	}
	r.pos += int64(len(p))
}

func (r *BodyReader) readFault(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("body ends after %d of %d bytes", r.pos, r.body.size)
	}
	return fmt.Errorf("read body at byte %d of %d: %w", r.pos, r.body.size, err)
}

// verify compares the digest once all content has been read; after seeks that broke the run of the hash it reads all of it again.
func (r *BodyReader) verify() error {
	if r.hashed != r.body.size {
		r.hash.Reset()
		r.hashed = 0
		if n, err := io.Copy(r.hash, r.body.Section()); err != nil || n != r.body.size {
			return fmt.Errorf("read body again for its digest: %d of %d bytes: %w", n, r.body.size, cmpErr(err, io.ErrUnexpectedEOF))
		}
		r.hashed = r.body.size
	}
	if [32]byte(r.hash.Sum(nil)) != r.body.sums.SHA256 {
		return errors.New("the content of the body is not what its SHA-256 declares")
	}
	return nil
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

func (r *BodyReader) fail(err error) error {
	r.err = &Error{Code: Corrupt, Err: err}
	return r.err
}

// Seek sets the offset of the next Read, between 0 and the size.
func (r *BodyReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.pos
	case io.SeekEnd:
		offset += r.body.size
	}
	if whence < io.SeekStart || whence > io.SeekEnd || offset < 0 || offset > r.body.size {
		return r.pos, fmt.Errorf("seek body to byte %d of %d: out of range", offset, r.body.size)
	}
	if _, err := r.section.Seek(offset, io.SeekStart); err != nil {
		return r.pos, fmt.Errorf("seek body: %w", err)
	}
	if offset == 0 {
		r.hash.Reset()
		r.hashed = 0
	}
	r.pos = offset
	return offset, nil
}

// Close is a no-op: the source belongs to whoever made the body.
func (r *BodyReader) Close() error { return nil }
