package sqlcircuit

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

// record is one record of an input: JSON text, or the reason why it cannot be one.
type record struct {
	text       string
	refusal    string // "" = text is good
	start, end int64  // of its bytes in the input; end is where the next one begins
}

// recordReader cuts a stream into records and turns each into JSON.
type recordReader struct {
	scanner *bufio.Scanner
	framer  framer
	blank   func(line []byte) bool                   // the line is no record at all
	convert func(line []byte) (text, refusal string) // of a framed record without its line end
}

// newNDJSONReader reads JSON values, one a line; offset is that of src's first byte. With final, bytes without a newline at the end are a
// record; without it they are left alone.
func newNDJSONReader(src io.Reader, offset int64, final bool) *recordReader {
	return newRecordReader(framer{src: src, offset: offset, final: final, cut: cutLine}, isSpace, convertJSON)
}

// newCSVReader reads CSV rows under header, which the caller has taken off.
func newCSVReader(src io.Reader, offset int64, final bool, h csvHeader) *recordReader {
	return newRecordReader(framer{src: src, offset: offset, final: final, cut: cutCSV}, isEmpty, h.convert)
}

func newRecordReader(f framer, blank func([]byte) bool, convert func([]byte) (string, string)) *recordReader {
	r := &recordReader{scanner: bufio.NewScanner(f.src), framer: f, blank: blank, convert: convert}
	r.scanner.Buffer(make([]byte, 64<<10), 2*MaxRecord)
	r.scanner.Split(r.framer.split)
	return r
}

// next returns io.EOF when no further record is complete. Blank lines are no records.
func (r *recordReader) next() (record, error) {
	for r.scanner.Scan() {
		rec := record{start: r.framer.start, end: r.framer.offset, refusal: r.framer.refusal}
		line := trimLineEnd(r.scanner.Bytes())
		if rec.refusal != "" {
			return rec, nil
		}
		if rec.start == 0 {
			line = bytes.TrimPrefix(line, []byte(byteOrderMark))
		}
		if r.blank(line) {
			continue
		}
		if !utf8.Valid(line) {
			rec.refusal = "it is not UTF-8 text"
			return rec, nil
		}
		rec.text, rec.refusal = r.convert(line)
		return rec, nil
	}
	if err := r.scanner.Err(); err != nil {
		return record{}, err
	}
	return record{}, io.EOF
}

// unfinished is where a record begins that has no end yet, or the end of what was read, and whether a quote is open in it. It is known once next
// has answered io.EOF.
func (r *recordReader) unfinished() (at int64, quote bool) {
	if r.framer.skipping != "" {
		return r.framer.start, false
	}
	return r.framer.offset, r.framer.quote
}

// Refusals of the framer.
const (
	refusalTooLong   = "it is longer than 1 MiB"
	refusalOpenQuote = "a quote is opened and never closed"
)

const byteOrderMark = "\ufeff"

func isEmpty(line []byte) bool { return len(line) == 0 }

func isSpace(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }

func trimLineEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// framer is a bufio.SplitFunc with a memory: it counts offsets and refuses what cannot be framed, in bounded space.
type framer struct {
	offset  int64 // of the first byte not consumed
	start   int64 // of the last token
	refusal string
	quote   bool // one is open in what was last looked at
	final   bool // what stands at the end without a newline is a record
	// skipping is the refusal of the line that is being dropped; "" = none is.
	skipping string
	// cut finds the end of the first record, behind its newline; -1 = not in data. openQuote says that a quote is open at the end of data.
	cut func(data []byte) (end int, openQuote bool)
	src io.Reader
}

func (f *framer) split(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if e, ok := f.src.(*exactly); ok && e.n > 0 {
		atEOF = false // bytes are still to come, or their loss is the reader's error
	}
	if f.skipping != "" {
		return f.skipLine(data, atEOF)
	}
	if len(data) == 0 {
		return 0, nil, nil
	}
	end, openQuote := f.cut(data)
	f.quote = openQuote
	switch {
	case end >= 0 && end <= MaxRecord:
		return f.take(data, end, "")
	case end > MaxRecord:
		return f.take(data, end, refusalTooLong)
	case len(data) >= MaxRecord && openQuote, atEOF && f.final && openQuote:
		return f.takeFirstLine(data, refusalOpenQuote)
	case len(data) >= MaxRecord:
		return f.takeFirstLine(data, refusalTooLong)
	case atEOF && f.final:
		return f.take(data, len(data), "")
	default:
		return 0, nil, nil // more is needed, or still to be written
	}
}

func (f *framer) take(data []byte, n int, refusal string) (int, []byte, error) {
	f.start, f.refusal = f.offset, refusal
	f.offset += int64(n)
	return n, data[:n], nil
}

// takeFirstLine refuses the first line alone: a quote that is never closed must not swallow the rows below it.
func (f *framer) takeFirstLine(data []byte, refusal string) (int, []byte, error) {
	if n := bytes.IndexByte(data, '\n') + 1; n > 0 {
		return f.take(data, n, refusal)
	}
	f.start, f.skipping = f.offset, refusal
	f.offset += int64(len(data))
	return len(data), nil, nil
}

// skipLine drops the rest of a line that is too long and then refuses it as one record. While its end is still to be written there is no
// token, so its reader begins again in front of it.
func (f *framer) skipLine(data []byte, atEOF bool) (int, []byte, error) {
	n := bytes.IndexByte(data, '\n') + 1
	ended := n > 0 || atEOF && f.final
	if n == 0 {
		n = len(data)
	}
	f.offset += int64(n)
	if !ended {
		return n, nil, nil
	}
	f.refusal, f.skipping = f.skipping, ""
	return n, data[:n], nil
}

func cutLine(data []byte) (int, bool) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, false
	}
	return -1, false
}

// errShrunk is what a file's reader answers when bytes that were seen are no longer there.
var errShrunk = errors.New("the file shrank while it was read")

// exactly reads n bytes of src: fewer are an error, so that a cut line is never taken for a last one.
type exactly struct {
	src io.Reader
	n   int64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n, err := e.src.Read(p[:min(int64(len(p)), e.n)])
	e.n -= int64(n)
	if errors.Is(err, io.EOF) {
		if err = nil; e.n > 0 {
			err = errShrunk
		}
	}
	return n, err
}
