package repository

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxDepth is above the deepest nesting of our own objects: commit, files, file, chunks, chunk.
const maxDepth = 8

// header opens every object: it is what a version that cannot read the rest must still be able to say.
type header struct {
	Format    int    `json:"format"`
	WrittenBy string `json:"written_by"`
}

// decodeStrict reads text, the JSON of the named object, into v. Encoding/json alone would take a key given twice, in other letter case,
// null for anything, invalid UTF-8 and more JSON after the end.
func decodeStrict(object string, text []byte, v any) error {
	if !utf8.Valid(text) {
		return corrupt(object, "not UTF-8")
	}
	if err := scan(text); err != nil {
		return corrupt(object, "%v", err)
	}
	var h header
	if err := json.Unmarshal(text, &h); err != nil {
		return corrupt(object, "%v", err)
	}
	if h.Format < 1 {
		return corrupt(object, "format %d", h.Format)
	}
	if h.Format != FormatVersion {
		return &UnsupportedError{Object: object, What: fmt.Sprintf("format %d", h.Format), WrittenBy: h.WrittenBy}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return corrupt(object, "%v", err)
	}
	return nil
}

// scan walks one JSON text to its end and refuses what a decoder would let pass.
func scan(text []byte) error {
	s := scanner{d: json.NewDecoder(bytes.NewReader(text))}
	s.d.UseNumber()
	if err := s.value(0); err != nil {
		return err
	}
	if _, err := s.d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("bytes after the end")
	}
	return nil
}

type scanner struct{ d *json.Decoder }

func (s scanner) value(depth int) error {
	if depth > maxDepth {
		return errors.New("nested too deeply")
	}
	token, err := s.d.Token()
	if err != nil {
		return err
	}
	switch token {
	case nil:
		return errors.New("null")
	case json.Delim('['):
		for s.d.More() {
			if err := s.value(depth + 1); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		if err := s.fields(depth); err != nil {
			return err
		}
	default:
		return nil
	}
	_, err = s.d.Token() // the closing bracket, or the error that ended More
	return err
}

func (s scanner) fields(depth int) error {
	seen := make(map[string]struct{}, 8)
	for s.d.More() {
		token, err := s.d.Token()
		if err != nil {
			return err
		}
		name, ok := token.(string)
		if !ok || !isFieldName(name) {
			return fmt.Errorf("field name %v", token)
		}
		if _, dup := seen[name]; dup {
			return fmt.Errorf("field %q given twice", name)
		}
		seen[name] = struct{}{}
		if err := s.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// isFieldName holds for the names of our own fields, so that "Size" is not taken for "size".
func isFieldName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_':
		default:
			return false
		}
	}
	return s != ""
}

// encodeLine gives v as JSON on one line with its newline. Characters that HTML would mind stay as they are.
func encodeLine(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
