package sqlcircuit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// csvHeader is the first line of a CSV stream, prepared for building JSON objects.
type csvHeader struct {
	names []string
	keys  [][]byte // names as JSON, each with the punctuation in front of it and its colon
}

// parseCSVHeader checks the names: a JSON path could not tell two alike apart, nor reach an empty one or one that holds a quote.
func parseCSVHeader(line []byte) (csvHeader, error) {
	line = bytes.TrimPrefix(trimLineEnd(line), []byte(byteOrderMark))
	if !utf8.Valid(line) {
		return csvHeader{}, errors.New("header: it is not UTF-8 text")
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return csvHeader{}, errors.New("header: the first line is empty")
	}
	fields, refusal := parseCSV(line, nil)
	if refusal != "" {
		return csvHeader{}, errors.New("header: " + refusal)
	}
	h, seen := csvHeader{}, map[string]bool{}
	for i, field := range fields {
		name := string(field)
		switch {
		case name == "":
			return csvHeader{}, fmt.Errorf("header: column %d has no name", i+1)
		case bytes.ContainsRune(field, '"'):
			return csvHeader{}, fmt.Errorf("header: name %q holds a quote, which no JSON path can reach", name)
		case seen[name]:
			return csvHeader{}, fmt.Errorf("header: name %q stands there twice", name)
		}
		seen[name] = true
		key := []byte{'{'}
		if i > 0 {
			key[0] = ','
		}
		h.names = append(h.names, name)
		h.keys = append(h.keys, append(appendJSONString(key, field), ':'))
	}
	return h, nil
}

// readCSVHeader takes the header off src and returns its length in bytes. io.EOF means that the line is not complete: with final it is
// complete at the end of src.
func readCSVHeader(src io.Reader, final bool) (csvHeader, int64, error) {
	f := framer{src: src, final: final, cut: cutCSV}
	s := bufio.NewScanner(src)
	s.Buffer(make([]byte, 4<<10), 2*MaxRecord)
	s.Split(f.split)
	if !s.Scan() {
		if err := s.Err(); err != nil {
			return csvHeader{}, 0, err
		}
		return csvHeader{}, 0, io.EOF
	}
	if f.refusal != "" {
		return csvHeader{}, 0, errors.New("header: " + f.refusal)
	}
	h, err := parseCSVHeader(s.Bytes())
	return h, f.offset, err
}

// convert builds the JSON object of a row.
func (h csvHeader) convert(line []byte) (text, refusal string) {
	fields, refusal := parseCSV(line, make([][]byte, 0, len(h.names)))
	if refusal != "" {
		return "", refusal
	}
	if len(fields) != len(h.names) {
		return "", fmt.Sprintf("it has %d fields, the header has %d", len(fields), len(h.names))
	}
	object := make([]byte, 0, 2*len(line)+16*len(fields))
	for i, field := range fields {
		object = appendJSONString(append(object, h.keys[i]...), field)
	}
	return string(append(object, '}')), ""
}

// cutCSV finds the first newline outside quotes. A quote opens only at the beginning of a field: elsewhere it is a fault of that row
// alone and must not join it with the rows below.
func cutCSV(data []byte) (end int, openQuote bool) {
	newline := bytes.IndexByte(data, '\n')
	if newline >= 0 && bytes.IndexByte(data[:newline], '"') < 0 {
		return newline + 1, false
	}
	fieldStart := true
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case b == '"' && fieldStart:
			closing := closingQuote(data[i+1:])
			if closing < 0 {
				return -1, true
			}
			i += 1 + closing
			fieldStart = false
		case b == '\n':
			return i + 1, false
		default:
			fieldStart = b == ','
		}
	}
	return -1, false
}

// closingQuote is the index of the first quote in data that is not doubled, -1 when there is none.
func closingQuote(data []byte) int {
	for i := 0; i < len(data); i++ {
		next := bytes.IndexByte(data[i:], '"')
		if next < 0 {
			return -1
		}
		i += next
		if i+1 == len(data) || data[i+1] != '"' {
			return i
		}
		i++ // a doubled quote stands for one
	}
	return -1
}

// parseCSV splits one record into fields, appended to fields. They may alias line.
func parseCSV(line []byte, fields [][]byte) (_ [][]byte, refusal string) {
	for {
		if len(line) > 0 && line[0] == '"' {
			closing := closingQuote(line[1:])
			if closing < 0 {
				return nil, refusalOpenQuote
			}
			fields = append(fields, bytes.ReplaceAll(line[1:1+closing], []byte(`""`), []byte(`"`)))
			line = line[2+closing:]
			if len(line) == 0 {
				return fields, ""
			}
			if line[0] != ',' {
				return nil, fmt.Sprintf("there is text behind the closing quote of field %d", len(fields))
			}
			line = line[1:]
			continue
		}
		field, rest, more := bytes.Cut(line, []byte{','})
		if bytes.IndexByte(field, '"') >= 0 {
			return nil, fmt.Sprintf("there is a quote inside the unquoted field %d", len(fields)+1)
		}
		fields = append(fields, field)
		if !more {
			return fields, ""
		}
		line = rest
	}
}
