package repository

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math/bits"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// ErrTooLarge refuses a commit that a store could not take in one piece.
var ErrTooLarge = errors.New("commit too large")

type commitWire struct {
	header
	Number     uint64          `json:"number"`
	Kind       Kind            `json:"kind"`
	Epoch      uint64          `json:"epoch"`
	Writer     Writer          `json:"writer"`
	Parent     *parentWire     `json:"parent,omitempty"`
	Created    time.Time       `json:"created"`
	Checkpoint *checkpointWire `json:"checkpoint,omitempty"`
	Totals     Totals          `json:"totals"`
	Packs      []PackID        `json:"packs"`
	Files      []fileWire      `json:"files"`
}

type parentWire struct {
	Number uint64 `json:"number"`
	SHA256 Digest `json:"sha256"`
}

type checkpointWire struct {
	ID          uuid.UUID    `json:"id"`
	Step        uint64       `json:"step"`
	Created     time.Time    `json:"created"`
	Incarnation uuid.UUID    `json:"incarnation"`
	Identity    identityWire `json:"identity"`
	History     History      `json:"history"`
}

type identityWire struct {
	Kind        string `json:"kind"`
	Fingerprint Digest `json:"fingerprint"`
}

type fileWire struct {
	Path       string      `json:"path,omitempty"`
	PathBase64 string      `json:"path_base64,omitempty"` // instead of Path when it is not UTF-8
	Size       int64       `json:"size"`
	Mode       string      `json:"mode"` // octal, as "0644"
	Chunks     []chunkWire `json:"chunks"`
}

// chunkWire is an array: [pack index, offset, stored length, encoding, digest].
type chunkWire Chunk

// EncodeCommit gives the bytes to store: the same commit gives the same bytes. They are one zstd frame around the commit's JSON on one line and
// a second line with the hexadecimal SHA-256 of the first, newline included, so that `zstd -d | head -1 | sha256sum` checks it.
// ErrTooLarge when they exceed MaxCommit.
func EncodeCommit(c *Commit) ([]byte, error) { return encodeCommit(c, formatOne()) }

// commitLimits bound a commit in bytes.
type commitLimits struct{ text, stored int }

func formatOne() commitLimits { return commitLimits{text: MaxCommitText, stored: MaxCommit} }

func encodeCommit(c *Commit, limit commitLimits) ([]byte, error) {
	text, err := limit.commitText(c)
	if err != nil {
		return nil, fmt.Errorf("encode commit %d: %w", c.Number, err)
	}
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(windowFor(len(text))),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("encode commit %d: %w", c.Number, err)
	}
	stored := e.EncodeAll(text, nil)
	if len(stored) > limit.stored {
		return nil, fmt.Errorf("encode commit %d: %w", c.Number, tooLarge(c, len(stored), limit.stored))
	}
	return stored, nil
}

// windowFor is the smallest window that holds the text, so that a small commit does not cost the memory of a large one.
func windowFor(size int) int {
	return min(ZstdWindow, max(zstd.MinWindowSize, 1<<bits.Len(uint(size))))
}

// commitText is what is compressed.
func (limit commitLimits) commitText(c *Commit) ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	line, err := encodeLine(c.wire())
	if err != nil {
		return nil, err
	}
	sum := Sum(line)
	text := append(hex.AppendEncode(line, sum[:]), '\n')
	if len(text) > limit.text {
		return nil, tooLarge(c, len(text), limit.text)
	}
	return text, nil
}

func tooLarge(c *Commit, size, limit int) error {
	return fmt.Errorf("%w: %d files of %d bytes need %d bytes of commit, at most %d are stored in one piece: "+
		"divide the state among several pipelines, or let the circuit keep it in fewer files",
		ErrTooLarge, c.Totals.Files, c.Totals.Bytes, size, limit)
}

// DecodeCommit reads the commit stored as number. What it returns satisfies everything that EncodeCommit asks for: paths stay below their root,
// chunks lie inside their packs, files have as many chunks as their size says.
func DecodeCommit(number uint64, stored []byte) (*Commit, error) {
	object := fmt.Sprintf("commit %d", number)
	line, err := formatOne().commitLine(object, stored)
	if err != nil {
		return nil, err
	}
	return decodeLine(object, number, line)
}

func decodeLine(object string, number uint64, line []byte) (*Commit, error) {
	var w commitWire
	if err := decodeStrict(object, line, &w); err != nil {
		return nil, err
	}
	if err := w.unknown(object); err != nil {
		return nil, err
	}
	c, err := w.commit()
	if err == nil {
		err = errors.Join(checkNumber(c.Number, number), c.check())
	}
	if err != nil {
		return nil, corrupt(object, "%v", err)
	}
	return c, nil
}

// commitLine decompresses a commit within bounds and checks the hash line. It reads the stored bytes twice: what is refused, a few bytes that
// unpack to gigabytes above all, costs time and no memory.
func (limit commitLimits) commitLine(object string, stored []byte) ([]byte, error) {
	if len(stored) > limit.stored {
		return nil, corrupt(object, "%d bytes, at most %d", len(stored), limit.stored)
	}
	d, err := zstd.NewReader(bytes.NewReader(stored),
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(uint64(limit.text)), zstd.WithDecoderMaxWindow(ZstdWindow))
	if err != nil {
		return nil, corrupt(object, "zstd: %v", err)
	}
	defer d.Close()
	lines := commitLines{sum: sha256.New()}
	size, err := io.Copy(&lines, io.LimitReader(d, int64(limit.text)+1))
	switch {
	case err != nil:
		return nil, corrupt(object, "zstd: %v", err)
	case size > int64(limit.text):
		return nil, corrupt(object, "zstd: more than the %d bytes that a commit may have", limit.text)
	}
	if why := lines.wrong(); why != "" {
		return nil, corrupt(object, "%s", why)
	}
	text, err := d.DecodeAll(stored, make([]byte, 0, size))
	if err != nil {
		return nil, corrupt(object, "zstd: %v", err)
	}
	return text[:lines.first], nil
}

// commitLines hashes the first of a commit's two lines as it comes, and keeps the second.
type commitLines struct {
	sum    hash.Hash
	first  int // its bytes so far, with the newline
	ended  bool
	second []byte
}

// Write implements io.Writer.
func (l *commitLines) Write(p []byte) (int, error) {
	n := len(p)
	if !l.ended {
		end := bytes.IndexByte(p, '\n') + 1
		if l.ended = end > 0; !l.ended {
			end = len(p)
		}
		l.sum.Write(p[:end])
		l.first += end
		p = p[end:]
	}
	const most = 2*sha256.Size + 2 // a byte more than is right
	l.second = append(l.second, p[:min(len(p), most-len(l.second))]...)
	return n, nil
}

// wrong says what is wrong with the lines, "" when nothing is.
func (l *commitLines) wrong() string {
	switch {
	case !l.ended:
		return "no line"
	case string(l.second) != Digest(l.sum.Sum(nil)).String()+"\n":
		return "the second line is not the SHA-256 of the first"
	}
	return ""
}

// unknown finds what only a newer version can have written.
func (w *commitWire) unknown(object string) error {
	if w.Kind != KindCheckpoint && w.Kind != KindSeal {
		return &UnsupportedError{Object: object, What: fmt.Sprintf("kind %q", string(w.Kind)), WrittenBy: w.WrittenBy}
	}
	for _, f := range w.Files {
		for _, c := range f.Chunks {
			if c.Encoding != Raw && c.Encoding != Zstd && c.Encoding != Hole {
				return &UnsupportedError{Object: object, What: fmt.Sprintf("encoding %q", string(c.Encoding)), WrittenBy: w.WrittenBy}
			}
		}
	}
	return nil
}

func (c *Commit) wire() *commitWire {
	w := &commitWire{
		header: header{FormatVersion, c.WrittenBy},
		Number: c.Number, Kind: c.Kind, Epoch: c.Epoch, Writer: c.Writer, Created: c.Created.UTC(), Totals: c.Totals,
		Packs: append([]PackID{}, c.Packs...), Files: make([]fileWire, len(c.Files)),
	}
	if c.Number > 1 {
		w.Parent = &parentWire{Number: c.Number - 1, SHA256: c.Parent}
	}
	if c.Kind == KindCheckpoint {
		cp := c.Checkpoint
		w.Checkpoint = &checkpointWire{
			ID: cp.ID, Step: cp.Step, Created: cp.Created.UTC(), Incarnation: cp.Incarnation,
			Identity: identityWire(cp.Identity), History: cp.History,
		}
	}
	for i, f := range c.Files {
		w.Files[i] = f.wire()
	}
	return w
}

func (w *commitWire) commit() (*Commit, error) {
	c := &Commit{
		Number: w.Number, Kind: w.Kind, Epoch: w.Epoch, Writer: w.Writer, Created: w.Created.UTC(), WrittenBy: w.WrittenBy,
		Totals: w.Totals, Packs: w.Packs, Files: make([]File, len(w.Files)),
	}
	if w.Parent != nil {
		if w.Number < 2 || w.Parent.Number != w.Number-1 {
			return nil, fmt.Errorf("parent %d: want the commit before", w.Parent.Number)
		}
		c.Parent = w.Parent.SHA256
	}
	if (w.Checkpoint != nil) != (w.Kind == KindCheckpoint) {
		return nil, fmt.Errorf("kind %q disagrees with the field checkpoint", string(w.Kind))
	}
	if cp := w.Checkpoint; cp != nil {
		c.Checkpoint = Checkpoint{
			ID: cp.ID, Step: cp.Step, Created: cp.Created.UTC(), Incarnation: cp.Incarnation,
			Identity: Identity(cp.Identity), History: cp.History,
		}
	}
	for i, f := range w.Files {
		var err error
		if c.Files[i], err = f.file(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (f File) wire() fileWire {
	w := fileWire{Size: f.Size, Mode: fmt.Sprintf("%04o", uint32(f.Mode)), Chunks: make([]chunkWire, len(f.Chunks))}
	if utf8.ValidString(f.Path) {
		w.Path = f.Path
	} else {
		w.PathBase64 = base64.StdEncoding.EncodeToString([]byte(f.Path))
	}
	for i, c := range f.Chunks {
		w.Chunks[i] = chunkWire(c)
	}
	return w
}

func (w fileWire) file() (File, error) {
	f := File{Path: w.Path, Size: w.Size, Chunks: make([]Chunk, len(w.Chunks))}
	if w.PathBase64 != "" {
		path, err := base64.StdEncoding.Strict().DecodeString(w.PathBase64)
		if err != nil || utf8.Valid(path) || w.Path != "" {
			return File{}, fmt.Errorf("path_base64 %q: want standard base64 of a path that is not UTF-8, and no path beside it", w.PathBase64)
		}
		f.Path = string(path)
	}
	mode, err := strconv.ParseUint(w.Mode, 8, 32)
	if err != nil || fmt.Sprintf("%04o", mode) != w.Mode {
		return File{}, fmt.Errorf("path %q: mode %q: want four octal digits", f.Path, w.Mode)
	}
	f.Mode = fs.FileMode(mode)
	for i, c := range w.Chunks {
		f.Chunks[i] = Chunk(c)
	}
	return f, nil
}

// MarshalJSON writes the array on as few bytes as it takes.
func (c chunkWire) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "[%d,%d,%d,%q,%q]", c.Pack, c.Offset, c.Stored, string(c.Encoding), c.Digest.String()), nil
}

// UnmarshalJSON reads an array of exactly five values: the JSON package fills missing ones with nothing and drops further ones.
func (c *chunkWire) UnmarshalJSON(b []byte) error {
	fields := [5]any{&c.Pack, &c.Offset, &c.Stored, &c.Encoding, &c.Digest}
	if bytes.Count(b, []byte{','}) != len(fields)-1 { // none of the five values can hold a comma
		return fmt.Errorf("chunk %s: want %d values", b, len(fields))
	}
	return json.Unmarshal(b, &fields)
}
