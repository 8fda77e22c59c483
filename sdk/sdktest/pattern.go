package sdktest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/cairnsync/cairn/sdk"
)

// pattern is the content of an object that never lies in memory as a whole: no two of its words are alike, and it is the same for the
// same size and seed. What is cut, shifted or swapped shows.
type pattern struct {
	size int64
	seed uint64
}

// word is the one at byte i, a multiple of 8.
func (p pattern) word(i int64) uint64 {
	w := (uint64(i) + p.seed<<40 + uint64(p.size)<<20) * 0x9e3779b97f4a7c15 // odd, so distinct stays distinct
	return w ^ w>>29
}

// at is byte i.
func (p pattern) at(i int64) byte { return byte(p.word(i-i%8) >> (8 * (i % 8))) }

// ReadAt implements io.ReaderAt.
func (p pattern) ReadAt(b []byte, off int64) (n int, err error) {
	if left := p.size - off; left < int64(len(b)) {
		b, err = b[:max(left, 0)], io.EOF
	}
	for ; n < len(b) && (off+int64(n))%8 != 0; n++ {
		b[n] = p.at(off + int64(n))
	}
	for ; len(b)-n >= 8; n += 8 {
		binary.LittleEndian.PutUint64(b[n:], p.word(off+int64(n)))
	}
	for ; n < len(b); n++ {
		b[n] = p.at(off + int64(n))
	}
	return n, err
}

// content is a small pattern in memory.
func content(n int, seed uint64) []byte {
	b := make([]byte, n)
	_, _ = pattern{int64(n), seed}.ReadAt(b, 0) // a pattern has no errors but its end
	return b
}

// sumsOf reads src for its sums.
func sumsOf(src io.Reader) (sdk.Sums, error) {
	sha, crc := sha256.New(), crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if _, err := io.Copy(io.MultiWriter(sha, crc), src); err != nil {
		return sdk.Sums{}, err
	}
	return sdk.Sums{SHA256: [32]byte(sha.Sum(nil)), CRC32C: crc.Sum32()}, nil
}

// stock is one large pattern of which any number of bodies are ranges, so that a gigabyte of Puts costs one file of a few megabytes.
type stock struct {
	pattern pattern
	file    *os.File // nil = bodies are made in memory
}

// stock makes one where this target can take bodies from. It is closed by the caller.
func (e *Env) stock(size int64, seed uint64) (*stock, error) {
	s := &stock{pattern: pattern{size, seed}}
	if e.Spool == "" {
		return s, nil
	}
	f, err := os.CreateTemp(e.Spool, "exam-*")
	if err != nil {
		return nil, fmt.Errorf("make a spool file: %w", err)
	}
	s.file = f
	if _, err := io.Copy(f, io.NewSectionReader(s.pattern, 0, size)); err != nil {
		s.close()
		return nil, fmt.Errorf("fill a spool file: %w", err)
	}
	return s, nil
}

func (s *stock) close() {
	if s.file != nil {
		s.file.Close()
		_ = os.Remove(s.file.Name()) // the spool's owner empties it at the next start
	}
}

// section is the range itself.
func (s *stock) section(off, n int64) *io.SectionReader {
	return io.NewSectionReader(s.pattern, off, n)
}

// body is the range as a body.
func (s *stock) body(off, n int64) (sdk.Body, error) {
	sums, err := sumsOf(s.section(off, n))
	if err != nil {
		return sdk.Body{}, err
	}
	if s.file == nil || n <= sdk.MaxInline {
		return sdk.NewBody(s.section(off, n), n, sums), nil
	}
	return sdk.FileBody(s.file, off, n, sums), nil
}

// put stores a range under a name of this case.
func (s *stock) put(ctx context.Context, e *Env, target sdk.Target, name string, off, n int64) error {
	body, err := s.body(off, n)
	if err != nil {
		return err
	}
	if _, err := target.Put(ctx, sdk.PutRequest{Key: e.key(name), Body: body, Class: sdk.ClassBulk}); err != nil {
		return fmt.Errorf("put %s (%d bytes): %w", name, n, err)
	}
	return nil
}

// holds fails unless the range, or a part of it by GetRequest, is what target answers.
func (s *stock) holds(ctx context.Context, e *Env, target sdk.Target, name string, off, n int64) error {
	return s.answers(ctx, target, whole(e.key(name)), off, n)
}

// answers gets req and compares it with n bytes at off as they come.
func (s *stock) answers(ctx context.Context, target sdk.Target, req sdk.GetRequest, off, n int64) error {
	res, err := target.Get(ctx, req)
	if err != nil {
		return fmt.Errorf("get %s: %w", req.Key, err)
	}
	defer res.Body.Close()
	if res.Size != n {
		return fmt.Errorf("get %s: %d bytes declared; want %d", req.Key, res.Size, n)
	}
	if err := sameBytes(res.Body, s.section(off, n)); err != nil {
		return fmt.Errorf("get %s: %w", req.Key, err)
	}
	return nil
}

// sameBytes compares two streams to their ends in little memory.
func sameBytes(have, want io.Reader) error {
	const frame = 128 << 10
	a, b := make([]byte, frame), make([]byte, frame)
	for at := int64(0); ; {
		n, errHave := io.ReadFull(have, a)
		m, errWant := io.ReadFull(want, b)
		ended := func(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
		switch {
		case errHave != nil && !ended(errHave):
			return fmt.Errorf("after %d bytes: %w", at+int64(n), errHave)
		case n != m:
			return fmt.Errorf("it ends at byte %d; want %d", at+int64(n), at+int64(m))
		case !bytes.Equal(a[:n], b[:n]):
			return fmt.Errorf("it is not what was stored, in the %d bytes from byte %d on", n, at)
		case ended(errHave) && ended(errWant):
			return nil
		}
		at += int64(n)
	}
}
