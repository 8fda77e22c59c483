package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// format is the version of pipeline.json and checkpoint.json that this build writes, and the newest it reads.
const format = 1

// The two files are one line of JSON each: {"format":1,"sha256":"…","body":{…}}. The sum is over the bytes of the body. Every format
// to come begins with its number; all else may change. The frame of format 1 is exactly these bytes, so that a checkpoint of 100,000
// files is parsed once.
const (
	frameStart = `{"format":1,"sha256":"`
	frameBody  = `","body":`
	frameEnd   = "}\n"
)

func sealJSON(body any) ([]byte, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(frameStart+sumOf(data)+frameBody), data, []byte(frameEnd)), nil
}

// openJSON decodes what sealJSON made. path is for the errors only: a *FormatError for a newer format, else a *CorruptError.
func openJSON(path string, data []byte, body any) error {
	version, err := formatOf(data)
	if err == nil && version > format {
		return &FormatError{Path: path, Got: version, Want: format}
	}
	if err == nil {
		err = openFormat1(data, body)
	}
	if err != nil {
		return &CorruptError{Path: path, Err: err}
	}
	return nil
}

// formatOf reads the number at the beginning, and no more.
func formatOf(data []byte) (int, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	for _, want := range []json.Token{json.Delim('{'), "format"} {
		if got, err := dec.Token(); err != nil || got != want {
			return 0, errors.New("it does not begin with a format number")
		}
	}
	var version int
	if err := dec.Decode(&version); err != nil || version < 1 {
		return 0, errors.New("it does not begin with a format number")
	}
	return version, nil
}

func openFormat1(data []byte, body any) error {
	rest, startOK := bytes.CutPrefix(data, []byte(frameStart))
	sum, rest, bodyOK := bytes.Cut(rest, []byte(frameBody))
	content, endOK := bytes.CutSuffix(rest, []byte(frameEnd))
	if !startOK || !bodyOK || !endOK {
		return errors.New("it is incomplete, or not written by cairn")
	}
	if string(sum) != sumOf(content) {
		return errors.New("its SHA-256 does not match its content")
	}
	return strictJSON(content, body)
}

// strictJSON refuses unknown fields and anything after the value.
func strictJSON(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("more data follows the end of the object")
	}
	return nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
