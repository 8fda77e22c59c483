package repository

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// The longest texts in bytes. They are names for people.
const (
	MaxWrittenBy    = 64
	MaxPipelineName = 255
	MaxHost         = 255
	MaxIdentityKind = 64
)

type formatWire struct {
	header
	RepositoryID uuid.UUID `json:"repository_id"`
	PipelineID   uuid.UUID `json:"pipeline_id"`
	PipelineName string    `json:"pipeline_name"`
	Created      time.Time `json:"created"`
	ChunkSize    int64     `json:"chunk_size"`
	Hash         string    `json:"hash"`
}

// EncodeFormat gives the bytes of FORMAT.json.
func EncodeFormat(f Format) ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("encode FORMAT.json: %w", err)
	}
	return encodeLine(formatWire{
		header:       header{FormatVersion, f.WrittenBy},
		RepositoryID: f.RepositoryID, PipelineID: f.PipelineID, PipelineName: f.PipelineName, Created: f.Created.UTC(),
		ChunkSize: ChunkSize, Hash: HashName,
	})
}

// DecodeFormat reads FORMAT.json. A repository that must be read in another way than format 1 is an *UnsupportedError.
func DecodeFormat(b []byte) (Format, error) {
	const object = "FORMAT.json"
	var w formatWire
	if err := decodeSmall(object, b, &w); err != nil {
		return Format{}, err
	}
	if w.ChunkSize != ChunkSize || w.Hash != HashName {
		what := fmt.Sprintf("chunk size %d with hash %q", w.ChunkSize, w.Hash)
		return Format{}, &UnsupportedError{Object: object, What: what, WrittenBy: w.WrittenBy}
	}
	f := Format{
		RepositoryID: w.RepositoryID, PipelineID: w.PipelineID, PipelineName: w.PipelineName, Created: w.Created.UTC(), WrittenBy: w.WrittenBy,
	}
	if err := f.check(); err != nil {
		return Format{}, corrupt(object, "%v", err)
	}
	return f, nil
}

func (f Format) check() error {
	return errors.Join(
		checkID("repository_id", f.RepositoryID), checkID("pipeline_id", f.PipelineID), checkText("pipeline_name", f.PipelineName, MaxPipelineName),
		checkTime("created", f.Created), checkText("written_by", f.WrittenBy, MaxWrittenBy),
	)
}

type epochWire struct {
	header
	Number  uint64    `json:"number"`
	Writer  Writer    `json:"writer"`
	Host    string    `json:"host"`
	Started time.Time `json:"started"`
}

// EncodeEpoch gives the bytes of an epoch object.
func EncodeEpoch(e Epoch) ([]byte, error) {
	if err := e.check(); err != nil {
		return nil, fmt.Errorf("encode epoch %d: %w", e.Number, err)
	}
	return encodeLine(epochWire{
		header: header{FormatVersion, e.WrittenBy}, Number: e.Number, Writer: e.Writer, Host: e.Host, Started: e.Started.UTC(),
	})
}

// DecodeEpoch reads the epoch object stored as number.
func DecodeEpoch(number uint64, b []byte) (Epoch, error) {
	object := fmt.Sprintf("epoch %d", number)
	var w epochWire
	if err := decodeSmall(object, b, &w); err != nil {
		return Epoch{}, err
	}
	e := Epoch{Number: w.Number, Writer: w.Writer, Host: w.Host, Started: w.Started.UTC(), WrittenBy: w.WrittenBy}
	if err := errors.Join(checkNumber(e.Number, number), e.check()); err != nil {
		return Epoch{}, corrupt(object, "%v", err)
	}
	return e, nil
}

func (e Epoch) check() error {
	return errors.Join(
		checkPositive("number", e.Number), e.Writer.check(), checkText("host", e.Host, MaxHost), checkTime("started", e.Started),
		checkText("written_by", e.WrittenBy, MaxWrittenBy),
	)
}

type gcWire struct {
	header
	Number  uint64    `json:"number"`
	Epoch   uint64    `json:"epoch"`
	Writer  Writer    `json:"writer"`
	UpTo    uint64    `json:"up_to"`
	Kept    []uint64  `json:"kept"`
	Created time.Time `json:"created"`
}

// EncodeGC gives the bytes of a gc object.
func EncodeGC(g GC) ([]byte, error) {
	if err := g.check(); err != nil {
		return nil, fmt.Errorf("encode gc %d: %w", g.Number, err)
	}
	b, err := encodeLine(gcWire{
		header: header{FormatVersion, g.WrittenBy}, Number: g.Number, Epoch: g.Epoch, Writer: g.Writer,
		UpTo: g.UpTo, Kept: append([]uint64{}, g.Kept...), Created: g.Created.UTC(),
	})
	if err == nil && len(b) > MaxSmall {
		return nil, fmt.Errorf("encode gc %d: %d commits kept make %d bytes, at most %d: keep fewer", g.Number, len(g.Kept), len(b), MaxSmall)
	}
	return b, err
}

// DecodeGC reads the gc object stored as number.
func DecodeGC(number uint64, b []byte) (GC, error) {
	object := fmt.Sprintf("gc %d", number)
	var w gcWire
	if err := decodeSmall(object, b, &w); err != nil {
		return GC{}, err
	}
	g := GC{Number: w.Number, Epoch: w.Epoch, Writer: w.Writer, UpTo: w.UpTo, Kept: w.Kept, Created: w.Created.UTC(), WrittenBy: w.WrittenBy}
	if err := errors.Join(checkNumber(g.Number, number), g.check()); err != nil {
		return GC{}, corrupt(object, "%v", err)
	}
	return g, nil
}

func (g GC) check() error {
	for i, n := range g.Kept {
		if n == 0 || n > g.UpTo || i > 0 && n <= g.Kept[i-1] {
			return fmt.Errorf("kept %d: not ascending between 1 and %d", n, g.UpTo)
		}
	}
	return errors.Join(
		checkPositive("number", g.Number), checkPositive("epoch", g.Epoch), g.Writer.check(), checkTime("created", g.Created),
		checkText("written_by", g.WrittenBy, MaxWrittenBy),
	)
}

func (w Writer) check() error {
	return errors.Join(checkID("writer id", w.ID), checkID("writer incarnation", w.Incarnation))
}

func decodeSmall(object string, b []byte, v any) error {
	if len(b) > MaxSmall {
		return corrupt(object, "%d bytes, at most %d", len(b), MaxSmall)
	}
	return decodeStrict(object, b, v)
}

func checkNumber(got, want uint64) error {
	if got != want {
		return fmt.Errorf("it says that it is number %d", got)
	}
	return nil
}

func checkPositive(field string, n uint64) error {
	if n == 0 {
		return fmt.Errorf("%s: 0", field)
	}
	return nil
}

func checkID(field string, id uuid.UUID) error {
	if id == uuid.Nil {
		return fmt.Errorf("%s: none", field)
	}
	return nil
}

// checkTime wants what RFC 3339 can write.
func checkTime(field string, t time.Time) error {
	if y := t.UTC().Year(); t.IsZero() || y < 1 || y > 9999 {
		return fmt.Errorf("%s: no time", field)
	}
	return nil
}

func checkText(field, s string, limit int) error {
	if s == "" || len(s) > limit || !utf8.ValidString(s) || strings.ContainsFunc(s, isControl) {
		return fmt.Errorf("%s %q: want 1 to %d bytes of printable text", field, s, limit)
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
