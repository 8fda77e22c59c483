package sqlcircuit

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// drain reads all records, each as its text or as "!" and the reason.
func drain(t testing.TB, r *recordReader) (records []string, end int64) {
	t.Helper()
	for {
		rec, err := r.next()
		if errors.Is(err, io.EOF) {
			return records, end
		}
		if err != nil {
			t.Fatal(err)
		}
		if rec.start < end || rec.end <= rec.start {
			t.Fatalf("record at %d to %d follows one that ends at %d", rec.start, rec.end, end)
		}
		end = rec.end
		if rec.refusal != "" {
			records = append(records, "!"+rec.refusal)
			continue
		}
		records = append(records, rec.text)
	}
}

func TestNDJSONRecords(t *testing.T) {
	long := `"` + strings.Repeat("x", MaxRecord) + `"`
	for _, row := range []struct {
		name, text string
		final      bool
		want       []string
		end        int64
	}{
		{"a line is a record", "{\"a\":1}\n[2]\n", true, []string{`{"a":1}`, "[2]"}, 12},
		{"a last line without newline counts at the end", "1\n2", true, []string{"1", "2"}, 3},
		{"a last line without newline waits when the file may grow", "1\n2", false, []string{"1"}, 2},
		{"CRLF ends a line", "1\r\n2\r\n", true, []string{"1", "2"}, 6},
		{"blank lines are no records", "\n1\n  \n\n2\n", true, []string{"1", "2"}, 9},
		{"a byte order mark is passed over", "\ufeff1\n", true, []string{"1"}, 5},
		{"a line that is no JSON is refused alone", "1\n{\n2\n", true, []string{"1", "!it is not JSON: unexpected end of JSON input", "2"}, 6},
		{"two values on a line are refused", "1 2\n", true, []string{"!it is not JSON: invalid character '2' after top-level value"}, 4},
		{"what is not UTF-8 is refused", "\"\xff\"\n1\n", true, []string{"!it is not UTF-8 text", "1"}, 6},
		{"digits stay as they are", "12345678901234567890123\n", true, []string{"12345678901234567890123"}, 24},
		{"a line above 1 MiB is refused alone", long + "\n1\n", true, []string{"!" + refusalTooLong, "1"}, int64(len(long) + 3)},
		{"a last line above 1 MiB is refused at the end", "1\n" + long, true, []string{"1", "!" + refusalTooLong}, int64(len(long) + 2)},
		{"a line above 1 MiB that is still written waits", "1\n" + long, false, []string{"1"}, 2},
		{"nothing is no record", "", true, nil, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			for name, src := range map[string]io.Reader{
				"whole": strings.NewReader(row.text), "halves": iotest.HalfReader(strings.NewReader(row.text)),
			} {
				got, end := drain(t, newNDJSONReader(src, 0, row.final))
				if strings.Join(got, "\n") != strings.Join(row.want, "\n") || end != row.end {
					t.Errorf("%s: got %.200q ending at %d, want %.200q at %d", name, got, end, row.want, row.end)
				}
			}
		})
	}
}

func TestCSVRecords(t *testing.T) {
	open := "\"" + strings.Repeat("y\n", MaxRecord)
	for _, row := range []struct {
		name, rows string
		final      bool
		want       []string
	}{
		{"values are text", "1,x\n", true, []string{`{"a":"1","b":"x"}`}},
		{"a last row without newline counts at the end", "1,2", true, []string{`{"a":"1","b":"2"}`}},
		{"a last row without newline waits when the file may grow", "1,2\n3,4", false, []string{`{"a":"1","b":"2"}`}},
		{"quotes hold commas, newlines and doubled quotes", "\"x,\ny\",\"say \"\"hi\"\"\"\n", true, []string{`{"a":"x,\ny","b":"say \"hi\""}`}},
		{"an open quote waits when the file may grow", "\"x\ny", false, nil},
		{"a quote at the very end may still be doubled", "1,\"x\"", false, nil},
		{"empty values are empty texts", ",\"\"\n", true, []string{`{"a":"","b":""}`}},
		{"blank lines are no records", "\n1,2\n\r\n", true, []string{`{"a":"1","b":"2"}`}},
		{"CRLF ends a row", "1,2\r\n3,4\r\n", true, []string{`{"a":"1","b":"2"}`, `{"a":"3","b":"4"}`}},
		{"a row of another width is refused alone", "1\n1,2,3\n1,2\n", true, []string{
			"!it has 1 fields, the header has 2", "!it has 3 fields, the header has 2", `{"a":"1","b":"2"}`,
		}},
		{"a quote inside an unquoted field is refused alone", "5\" pipe,x\n1,2\n", true, []string{
			"!there is a quote inside the unquoted field 1", `{"a":"1","b":"2"}`,
		}},
		{"text behind a closing quote is refused alone", "\"a\"b,c\n1,2\n", true, []string{
			"!there is text behind the closing quote of field 1", `{"a":"1","b":"2"}`,
		}},
		{"a quote that is never closed costs its own line only", "\"x,1\n3,4\n", true, []string{"!" + refusalOpenQuote, `{"a":"3","b":"4"}`}},
		{"control characters are escaped", "\x01\t,\\\n", true, []string{`{"a":"\u0001\u0009","b":"\\"}`}},
		{"what is not UTF-8 is refused", "\xff,1\n1,2\n", true, []string{"!it is not UTF-8 text", `{"a":"1","b":"2"}`}},
		{"a quote open for more than 1 MiB is refused", open, false, []string{"!" + refusalOpenQuote, "!it has 1 fields, the header has 2"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, err := parseCSVHeader([]byte("a,b\n"))
			if err != nil {
				t.Fatal(err)
			}
			got, _ := drain(t, newCSVReader(iotest.HalfReader(strings.NewReader(row.rows)), 4, row.final, h))
			got = got[:min(len(got), max(2, len(row.want)))]
			if strings.Join(got, "\n") != strings.Join(row.want, "\n") {
				t.Errorf("got %.300q, want %.300q", got, row.want)
			}
		})
	}
}

func TestCSVHeaders(t *testing.T) {
	for _, row := range []struct{ name, text, want, fault string }{
		{"names may hold spaces, commas and $", "Cost Total $,\"a,b\"\n1\n", "Cost Total $|a,b", ""},
		{"a byte order mark is passed over", "\ufeffa,b\n", "a|b", ""},
		{"a header without newline counts at the end", "a", "a", ""},
		{"an empty name is refused", "a,,b\n", "", "header: column 2 has no name"},
		{"a name that stands twice is refused", "a,b,a\n", "", `header: name "a" stands there twice`},
		{"a name that holds a quote is refused", "\"a\"\"b\"\n", "", `header: name "a\"b" holds a quote`},
		{"an empty first line is refused", "\na\n", "", "header: the first line is empty"},
		{"an open quote is refused", "\"a\nb\n", "", "header: " + refusalOpenQuote},
		{"what is not UTF-8 is refused", "\xff\n", "", "header: it is not UTF-8 text"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h, length, err := readCSVHeader(strings.NewReader(row.text), true)
			switch {
			case row.fault == "" && (err != nil || strings.Join(h.names, "|") != row.want):
				t.Errorf("names %q, %v", h.names, err)
			case row.fault != "" && (err == nil || !strings.HasPrefix(err.Error(), row.fault)):
				t.Errorf("error %v, want %q", err, row.fault)
			case err == nil && length == 0:
				t.Error("the header has no length")
			}
		})
	}
	if _, _, err := readCSVHeader(strings.NewReader("a,b"), false); !errors.Is(err, io.EOF) {
		t.Errorf("a header that is still written: %v", err)
	}
}

func TestAFileThatShrinksWhileItIsReadYieldsNoCutLine(t *testing.T) {
	src := &exactly{src: strings.NewReader("1\n23"), n: 10}
	r := newNDJSONReader(src, 0, true)
	if rec, err := r.next(); err != nil || rec.text != "1" {
		t.Fatalf("first: %+v, %v", rec, err)
	}
	if rec, err := r.next(); !errors.Is(err, errShrunk) {
		t.Fatalf("second: %+v, %v", rec, err)
	}
}

// Every record is JSON or refused, offsets join up, and reading on from the end of any record yields the same rest.
func FuzzNDJSON(f *testing.F) {
	for _, seed := range []string{"{\"a\":1}\n2", "\n\n[", "\ufeff1\r\n", "\xff\n1", ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		records, _ := drain(t, newNDJSONReader(bytes.NewReader(data), 0, true))
		r := newNDJSONReader(bytes.NewReader(data), 0, true)
		for i := range records {
			rec, err := r.next()
			if err != nil {
				t.Fatal(err)
			}
			if rec.refusal == "" && !json.Valid([]byte(rec.text)) {
				t.Fatalf("record %q is not JSON", rec.text)
			}
			rest, _ := drain(t, newNDJSONReader(bytes.NewReader(data[rec.end:]), rec.end, true))
			if strings.Join(rest, "\n") != strings.Join(records[i+1:], "\n") {
				t.Fatalf("from %d: %q, want %q", rec.end, rest, records[i+1:])
			}
		}
	})
}

// Where encoding/csv reads a whole input without a fault, this reader reads the same values.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{"a,b\n1,2\n", "a,b\n\"x\n\",\"\"\"\"\n", "a\n\"", "a,b\n1\n\n2,3", "\"a\"\"\",b\n", "a,b\r\n\"\r\n\",\r\n", "x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, length, err := readCSVHeader(bytes.NewReader(data), true)
		if err != nil {
			return
		}
		records, _ := drain(t, newCSVReader(bytes.NewReader(data[length:]), length, true, h))
		want, err := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte(byteOrderMark)))).ReadAll()
		if err != nil || !utf8.Valid(data) || bytes.Contains(data, []byte("\r")) {
			return // carriage returns: encoding/csv rewrites those inside quotes
		}
		if len(records) != len(want)-1 {
			t.Fatalf("%d records, encoding/csv reads %d rows and a header", len(records), len(want)-1)
		}
		for i, record := range records {
			object := map[string]string{}
			if err := json.Unmarshal([]byte(record), &object); err != nil {
				t.Fatalf("record %q: %v", record, err)
			}
			for j, name := range h.names {
				if object[name] != want[i+1][j] {
					t.Fatalf("row %d, %q: %q, want %q", i+1, name, object[name], want[i+1][j])
				}
			}
		}
	})
}
