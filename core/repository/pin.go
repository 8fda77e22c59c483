package repository

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// The longest texts of a pin in bytes.
const (
	MaxPinName = 100
	MaxPinNote = 1024
)

// Pin keeps a commit from retention for as long as the pin is there. Pins are the only objects that may be replaced or deleted by hand.
type Pin struct {
	Name       string    // one segment as in CheckPrefix, at most MaxPinName bytes
	Commit     uint64    // keep the commit of this number; 0 = not by number
	Checkpoint uuid.UUID // keep the newest commit of this checkpoint; Nil = not by checkpoint. One of the two is given
	Created    time.Time
	By         string // the machine that made it; at most MaxHost bytes
	Note       string // for people; may be empty
	WrittenBy  string
}

// CheckPinName says whether a pin may have this name.
func CheckPinName(name string) error {
	if len(name) > MaxPinName {
		return fmt.Errorf("pin name of %d bytes: at most %d", len(name), MaxPinName)
	}
	if err := checkSegment(name); err != nil {
		return fmt.Errorf("pin name %q: %w", name, err)
	}
	return nil
}

type pinWire struct {
	header
	Name       string    `json:"name"`
	Commit     uint64    `json:"commit,omitempty"`
	Checkpoint uuid.UUID `json:"checkpoint,omitzero"`
	Created    time.Time `json:"created"`
	By         string    `json:"by"`
	Note       string    `json:"note,omitempty"`
}

// EncodePin gives the bytes of a pin.
func EncodePin(p Pin) ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("encode pin %q: %w", p.Name, err)
	}
	return encodeLine(pinWire{
		header: header{FormatVersion, p.WrittenBy}, Name: p.Name, Commit: p.Commit, Checkpoint: p.Checkpoint,
		Created: p.Created.UTC(), By: p.By, Note: p.Note,
	})
}

// DecodePin reads the pin stored under a name.
func DecodePin(name string, b []byte) (Pin, error) {
	object := fmt.Sprintf("pin %q", name)
	var w pinWire
	if err := decodeSmall(object, b, &w); err != nil {
		return Pin{}, err
	}
	p := Pin{
		Name: w.Name, Commit: w.Commit, Checkpoint: w.Checkpoint, Created: w.Created.UTC(), By: w.By, Note: w.Note, WrittenBy: w.WrittenBy,
	}
	if p.Name != name {
		return Pin{}, corrupt(object, "it says that its name is %q", p.Name)
	}
	if err := p.check(); err != nil {
		return Pin{}, corrupt(object, "%v", err)
	}
	return p, nil
}

func (p Pin) check() error {
	err := errors.Join(
		CheckPinName(p.Name), checkTime("created", p.Created), checkText("by", p.By, MaxHost), checkText("written_by", p.WrittenBy, MaxWrittenBy),
	)
	if p.Commit == 0 && p.Checkpoint == uuid.Nil {
		err = errors.Join(err, errors.New("it names neither a commit nor a checkpoint"))
	}
	if p.Note != "" {
		err = errors.Join(err, checkText("note", p.Note, MaxPinNote))
	}
	return err
}
