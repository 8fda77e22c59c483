package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// format is the version of pipeline.json and checkpoint.json that this build writes, and the newest it reads.
const format = 1

// envelope is the outer object of both files. The sum is over the bytes of body as they stand in the file, so a damaged file is
// told from a strange one.
type envelope struct {
	Format int             `json:"format"`
	SHA256 string          `json:"sha256"`
	Body   json.RawMessage `json:"body"`
}

// sealJSON is one line of JSON: {"format":1,"sha256":"…","body":{…}}.
func sealJSON(body any) ([]byte, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "{\"format\":%d,\"sha256\":\"%s\",\"body\":%s}\n", format, sumOf(data), data), nil
}

// openJSON decodes what sealJSON made. path is for the errors only: a *FormatError for a newer format, else a *CorruptError.
func openJSON(path string, data []byte, body any) error {
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return &CorruptError{Path: path, Err: err}
	}
	if version.Format > format {
		return &FormatError{Path: path, Got: version.Format, Want: format}
	}
	if err := openFormat1(data, body); err != nil {
		return &CorruptError{Path: path, Err: err}
	}
	return nil
}

func openFormat1(data []byte, body any) error {
	var e envelope
	if err := strictJSON(data, &e); err != nil {
		return err
	}
	if e.Format != format {
		return fmt.Errorf("format %d is unknown", e.Format)
	}
	if got := sumOf(e.Body); got != e.SHA256 {
		return errors.New("its SHA-256 does not match its content")
	}
	return strictJSON(e.Body, body)
}

// strictJSON refuses unknown fields and anything after the value.
func strictJSON(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("more data after the end of the object")
	}
	return nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
