package sqlcircuit

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// The limits that hold when the configuration does not set its own.
const (
	DefaultMaxBatch   = 10_000  // records a step takes from one input: about 50 ms of work
	DefaultMaxBytes   = 8 << 20 // of one HTTP batch; also the most that can be configured
	DefaultMaxRecords = 10_000  // in one HTTP batch; also the most that can be configured
	DefaultMaxPending = 16      // HTTP batches of one input that are read or wait for a step; one more is refused as full
	MaxRecord         = 1 << 20 // bytes of one record as it stands in the input; a longer one is refused
)

// Config is one sql circuit.
type Config struct {
	Schema string // CREATE statements, run once on a fresh start; part of the fingerprint
	Inputs []Input
	Now    func() time.Time // the host's clock; stamps what status shows, decides nothing
}

// Input is one stream of records. Exactly one of File and HTTP is set.
type Input struct {
	Name     string   // letters, digits, "_", "-", "."; at most 200 bytes; part of the fingerprint
	Apply    []string // each exactly one statement; they run in this order for every record. May change between two starts
	MaxBatch int      // records a step takes from this input; 0 = DefaultMaxBatch
	OnError  OnError
	File     *FileInput
	HTTP     *HTTPInput
}

// OnError says what a refused record does.
type OnError string

// The ways to treat a refused record.
const (
	OnErrorRecord OnError = "record" // it becomes a row of cairn_errors; the default
	OnErrorStop   OnError = "stop"   // the input stops in front of it; after a restart it is tried again
)

// Format is how records stand in a file or a batch.
type Format string

// The formats of an input.
const (
	CSV    Format = "csv"    // RFC 4180 with a header line; values are text
	NDJSON Format = "ndjson" // one JSON value a line
)

// FileInput reads files.
type FileInput struct {
	Path string // a glob as of path/filepath; its files are read in the order of their names
	// Base is the folder that the names of the files are relative to: by them their positions are kept, and :position shows them. Whoever
	// moves Base, with the files below it, goes on with the same state. "" = a file is known by its path; else both are absolute.
	Base   string
	Format Format
	// Follow keeps looking, at most once a second, for lines and files that are added; at most 1,000 files. Without it each file is read
	// once to its end as seen at the start, and a last line without newline counts.
	Follow bool
}

// HTTPInput takes batches from Ingest.
type HTTPInput struct {
	Format     Format // a CSV batch begins with its header
	MaxBytes   int64  // of a batch; 0 = DefaultMaxBytes
	MaxRecords int    // in a batch; 0 = DefaultMaxRecords
	MaxPending int    // batches at once; 0 = DefaultMaxPending
}

// withDefaults fills zeros in and copies what it changes.
func (c Config) withDefaults() Config {
	inputs := make([]Input, len(c.Inputs))
	for i, in := range c.Inputs {
		in.MaxBatch = orDefault(in.MaxBatch, DefaultMaxBatch)
		if in.OnError == "" {
			in.OnError = OnErrorRecord
		}
		if in.HTTP != nil {
			http := *in.HTTP
			http.MaxBytes = orDefault(http.MaxBytes, DefaultMaxBytes)
			http.MaxRecords = orDefault(http.MaxRecords, DefaultMaxRecords)
			http.MaxPending = orDefault(http.MaxPending, DefaultMaxPending)
			in.HTTP = &http
		}
		inputs[i] = in
	}
	c.Inputs = inputs
	return c
}

func orDefault[N int | int64](n, otherwise N) N {
	if n == 0 {
		return otherwise
	}
	return n
}

// check finds the faults that need no SQLite.
func (c Config) check() error {
	faults := []error{}
	if c.Now == nil {
		faults = append(faults, errors.New("sql circuit: Now is nil; pass the host's clock"))
	}
	if strings.TrimSpace(c.Schema) == "" {
		faults = append(faults, errors.New("schema: it is empty; give at least one CREATE TABLE"))
	}
	if len(c.Inputs) == 0 {
		faults = append(faults, errors.New("sql circuit: it has no input; give at least one"))
	}
	seen := map[string]bool{}
	for _, in := range c.Inputs {
		for _, err := range in.check() {
			faults = append(faults, fmt.Errorf("input %q: %w", in.Name, err))
		}
		if seen[in.Name] {
			faults = append(faults, fmt.Errorf("input %q: there is another input of this name", in.Name))
		}
		seen[in.Name] = true
	}
	return errors.Join(faults...)
}

func (in Input) check() []error {
	faults := []error{}
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(!validName(in.Name), "a name is 1 to 200 letters, digits, \"_\", \"-\" and \".\"")
	fault(len(in.Apply) == 0, "apply: it has no statement; give at least one")
	fault(in.MaxBatch < 1, "max_batch: %d is not positive", in.MaxBatch)
	fault(in.OnError != OnErrorRecord && in.OnError != OnErrorStop, `on_error: %q is neither "record" nor "stop"`, in.OnError)
	fault((in.File == nil) == (in.HTTP == nil), "it must be either file or http")
	if in.File != nil {
		_, err := filepath.Match(in.File.Path, "")
		fault(in.File.Path == "", "file: path is empty")
		fault(err != nil, "file: path %q is not a valid pattern", in.File.Path)
		bothAbsolute := filepath.IsAbs(in.File.Base) && filepath.IsAbs(in.File.Path)
		fault(in.File.Base != "" && !bothAbsolute, "file: base %q and path %q are not both absolute", in.File.Base, in.File.Path)
		fault(!in.File.Format.known(), `file: format %q is neither "csv" nor "ndjson"`, in.File.Format)
	}
	if h := in.HTTP; h != nil {
		fault(!h.Format.known(), `http: format %q is neither "csv" nor "ndjson"`, h.Format)
		fault(h.MaxBytes < 1 || h.MaxBytes > DefaultMaxBytes, "http: max_bytes %d is not between 1 and %d", h.MaxBytes, DefaultMaxBytes)
		fault(h.MaxRecords < 1 || h.MaxRecords > DefaultMaxRecords, "http: max_records %d is not between 1 and %d", h.MaxRecords, DefaultMaxRecords)
		fault(h.MaxPending < 1, "http: max_pending %d is not positive", h.MaxPending)
	}
	return faults
}

func (f Format) known() bool { return f == CSV || f == NDJSON }

func validName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
	return name != "" && len(name) <= 200 && strings.Trim(name, letters) == "" && strings.Trim(name, ".") != ""
}
