package checkpoint

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// manifestJSON is the body of checkpoint.json.
type manifestJSON struct {
	ID          uuid.UUID   `json:"id"`
	Step        uint64      `json:"step"`
	Created     time.Time   `json:"created"`
	Incarnation uuid.UUID   `json:"incarnation"`
	Circuit     circuitJSON `json:"circuit"`
	History     History     `json:"history"`
	Files       []fileJSON  `json:"files"`
}

type circuitJSON struct {
	Kind        string `json:"kind"`
	Fingerprint digest `json:"fingerprint"`
}

// fileJSON has exactly one of Path and PathBase64: JSON text is UTF-8, file names are bytes.
type fileJSON struct {
	Path       *string    `json:"path,omitempty"`
	PathBase64 []byte     `json:"path_base64,omitempty"`
	Size       int64      `json:"size"`
	Mode       octal      `json:"mode"`
	Chunks     []digest   `json:"chunks"`
	Inode      *inodeJSON `json:"inode,omitempty"`
}

type inodeJSON struct {
	Device     uint64 `json:"device"`
	Number     uint64 `json:"number"`
	ModifiedNs int64  `json:"modified_ns"`
}

// digest is 32 bytes as 64 lower-case hex digits.
type digest [32]byte

func (d digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

func (d *digest) UnmarshalText(text []byte) error {
	if len(text) != 2*len(d) {
		return fmt.Errorf("digest of %d characters, want %d", len(text), 2*len(d))
	}
	_, err := hex.Decode(d[:], text)
	return err
}

// octal is permission bits in the spelling of chmod: "0640".
type octal fs.FileMode

func (o octal) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%04o", uint32(o)), nil }

func (o *octal) UnmarshalText(text []byte) error {
	bits, err := strconv.ParseUint(string(text), 8, 9)
	*o = octal(bits)
	return err
}

// encodeManifest is the content of checkpoint.json.
func encodeManifest(m Manifest) ([]byte, error) {
	if err := checkManifest(m); err != nil {
		return nil, err
	}
	files := make([]fileJSON, len(m.Files))
	for i, f := range m.Files {
		files[i] = encodeFile(f)
	}
	return sealJSON(manifestJSON{
		ID: m.ID, Step: m.Step, Created: m.Created, Incarnation: m.Incarnation,
		Circuit: circuitJSON{Kind: m.Kind, Fingerprint: m.Fingerprint},
		History: m.History, Files: files,
	})
}

// decodeManifest reads the content of checkpoint.json. path is for errors: *FormatError or *CorruptError.
func decodeManifest(path string, data []byte) (Manifest, error) {
	var j manifestJSON
	if err := openJSON(path, data, &j); err != nil {
		return Manifest{}, err
	}
	m := Manifest{
		ID: j.ID, Step: j.Step, Created: j.Created, Incarnation: j.Incarnation,
		Kind: j.Circuit.Kind, Fingerprint: j.Circuit.Fingerprint,
		History: j.History, Files: make([]File, len(j.Files)),
	}
	for i, f := range j.Files {
		file, err := decodeFile(f)
		if err != nil {
			return Manifest{}, &CorruptError{Path: path, Err: err}
		}
		m.Files[i] = file
	}
	if err := checkManifest(m); err != nil {
		return Manifest{}, &CorruptError{Path: path, Err: err}
	}
	return m, nil
}

func encodeFile(f File) fileJSON {
	j := fileJSON{Size: f.Size, Mode: octal(f.Mode), Chunks: make([]digest, len(f.Chunks))}
	for i, c := range f.Chunks {
		j.Chunks[i] = c
	}
	if utf8.ValidString(f.Path) {
		j.Path = &f.Path
	} else {
		j.PathBase64 = []byte(f.Path)
	}
	if f.Inode != (Inode{}) {
		j.Inode = &inodeJSON{Device: f.Inode.Device, Number: f.Inode.Number, ModifiedNs: f.Inode.ModifiedNs}
	}
	return j
}

func decodeFile(j fileJSON) (File, error) {
	f := File{Path: string(j.PathBase64), Size: j.Size, Mode: fs.FileMode(j.Mode), Chunks: make([][32]byte, len(j.Chunks))}
	if j.Path != nil {
		if j.PathBase64 != nil {
			return File{}, fmt.Errorf("file %q has two paths", *j.Path)
		}
		f.Path = *j.Path
	}
	for i, c := range j.Chunks {
		f.Chunks[i] = c
	}
	if j.Inode != nil {
		f.Inode = Inode{Device: j.Inode.Device, Number: j.Inode.Number, ModifiedNs: j.Inode.ModifiedNs}
	}
	return f, nil
}
