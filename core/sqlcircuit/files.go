package sqlcircuit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
)

// maxFollowed bounds the files, and so the descriptors, that one input keeps open.
const maxFollowed = 1000

// fileSource reads the files of one input ahead of the steps. One goroutine runs it.
type fileSource struct {
	in    *input
	log   hclog.Logger
	every time.Duration // between two looks
	known map[string]*tracked

	missing   string            // what of it is not there, as the note says it
	rotations map[string]int    // since the start, by name
	vacated   map[string][]byte // names that a file was moved from for another one: what that one must not begin with
}

func newFileSource(in *input, log hclog.Logger, every time.Duration, known map[string]*tracked) *fileSource {
	return &fileSource{in: in, log: log, every: every, known: known, rotations: map[string]int{}, vacated: map[string][]byte{}}
}

// run reads until everything is read (without follow), the input stops, or ctx ends.
func (s *fileSource) run(ctx context.Context) {
	defer s.close()
	for {
		err := s.look(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, errNotTaken):
			return
		case err != nil:
			logStop(s.log, s.in, err.Error())
			s.in.stop(err.Error())
			s.in.wake()
			return
		case !s.in.cfg.File.Follow:
			return
		}
		next := time.NewTimer(s.every)
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return
		}
	}
}

func (s *fileSource) close() {
	for _, k := range s.known {
		k.close()
	}
}

// errNotTaken ends a reader whose items nobody will take.
var errNotTaken = errors.New("the input takes no more records")

// look reads what is new in the input's files.
func (s *fileSource) look(ctx context.Context) error {
	names, err := s.list()
	if err != nil {
		return err
	}
	if err := s.adopt(ctx, names); err != nil {
		return err
	}
	if err := s.findMoved(ctx, names); err != nil {
		return err
	}
	s.noteMissing(names)
	for _, name := range names {
		if err := s.visit(ctx, name); err != nil {
			return err
		}
	}
	s.tell()
	return nil
}

// list answers the names of the files that are there, in the order in which they are read.
func (s *fileSource) list() ([]string, error) {
	cfg := s.in.cfg.File
	paths, err := filepath.Glob(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("list files %s: %w", cfg.Path, err)
	}
	slices.Sort(paths)
	if cfg.Follow && len(paths) > maxFollowed {
		return nil, fmt.Errorf("%s matches %d files; follow reads at most %d: give a narrower pattern", cfg.Path, len(paths), maxFollowed)
	}
	for _, path := range paths { // before one is opened: opening a pipe blocks
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file", path)
		}
	}
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = cfg.name(path)
	}
	return names, nil
}

// visit reads what is new in the file of that name, after making sure that it is the one that was read before.
func (s *fileSource) visit(ctx context.Context, name string) error {
	path := s.in.cfg.File.place(name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it went away between the listing and now; the next look reports it
	}
	if err != nil {
		return fmt.Errorf("read file: %w", err)
	}
	if s.known[name] == nil {
		if err := s.begin(ctx, name, s.vacated[name]); err != nil {
			f.Close()
			return err
		}
	}
	delete(s.vacated, name)
	k := s.known[name]
	v, err := k.judge(f, s.in.cfg.File.Format)
	if err == nil && v == rotated {
		f.Close()
		return s.leave(ctx, name, k)
	}
	k.close()
	k.file = f
	if err == nil && v != same {
		err = errors.New(string(v))
	}
	if err != nil {
		return k.refused(path, err)
	}
	k.reported, k.renamed, k.leaving = "", false, false
	err = s.read(ctx, name, k, !s.in.cfg.File.Follow)
	if !s.in.cfg.File.Follow {
		k.close()
	}
	return err
}

// refused says why the file that lies at path is not read on.
func (k *tracked) refused(path string, why error) error {
	taken := fmt.Sprintf("%d of the %d bytes", k.offset, k.length)
	if k.offset == k.length {
		taken = fmt.Sprintf("all %d bytes", k.length)
	}
	return fmt.Errorf("read %s: %w: %s of the file that was read before were taken; put that file back, or give the new one a name of its own",
		path, why, taken)
}

func sameFile(a, b *os.File) bool {
	x, errA := a.Stat()
	y, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// read queues the records of k.file behind k.offset.
func (s *fileSource) read(ctx context.Context, name string, k *tracked, final bool) error {
	if err := s.readOn(ctx, name, k, final); err != nil {
		if errors.Is(err, errNotTaken) {
			return err
		}
		return fmt.Errorf("read %s: %w", s.in.cfg.File.place(name), err)
	}
	return nil
}

func (s *fileSource) readOn(ctx context.Context, name string, k *tracked, final bool) error {
	now, err := lookAt(name, k.file)
	if err != nil {
		return err
	}
	if now.length < k.length {
		return errShrunk
	}
	cut, err := k.continued(k.file, now.length)
	if err != nil {
		return err
	}
	if cut {
		return fmt.Errorf("its last line, which had no newline and was counted, was continued at byte %d: finish lines before they are "+
			"read, or use follow", k.offset)
	}
	again, err := k.repeats(s.in.cfg.File.Format, final) // of no less than what now tells
	if err != nil {
		return err
	}
	if again {
		return fmt.Errorf("%w: it begins with the record that the file began with which stood there before and was read; give it a name of "+
			"its own if its records are new", errors.New(string(rewritten)))
	}
	records, err := s.open(k, now, final)
	if err != nil {
		return err
	}
	if records == nil {
		k.open.see(0, now.length, false)
		return nil
	}
	if err := s.queue(ctx, records, k, now); err != nil {
		return err
	}
	at, quote := records.unfinished()
	k.open.see(at, now.length-at, quote)
	k.length, k.head = now.length, now.head
	return nil
}

// open returns a reader of what lies between k.offset and the end that was looked at; nil when the header is still to be written.
func (s *fileSource) open(k *tracked, now *look, final bool) (*recordReader, error) {
	start := k.offset
	section := func(from int64) io.Reader {
		return &exactly{src: io.NewSectionReader(k.file, from, now.length-from), n: now.length - from}
	}
	if s.in.cfg.File.Format == NDJSON {
		return newNDJSONReader(section(start), start, final), nil
	}
	header, length, err := readCSVHeader(section(0), final)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	start = max(start, length)
	return newCSVReader(section(start), start, final, header), nil
}

// queue hands records on in portions, so that steps can begin before the file is read.
func (s *fileSource) queue(ctx context.Context, records *recordReader, k *tracked, now *look) error {
	const portion = 512
	for {
		items := make([]item, 0, portion)
		size := 0
		var err error
		for len(items) < portion && size < MaxRecord && err == nil {
			var rec record
			if rec, err = records.next(); err == nil {
				items = append(items, item{text: rec.text, refusal: rec.refusal, start: rec.start, end: rec.end, look: now})
				size += len(rec.text)
			}
		}
		if len(items) > 0 {
			if !s.in.put(ctx, items) {
				return errNotTaken
			}
			k.offset = items[len(items)-1].end
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// checkHeaders refuses, at the start, CSV files whose headers no statement could use.
func checkHeaders(cfg FileInput) error {
	if cfg.Format != CSV {
		return nil
	}
	paths, err := filepath.Glob(cfg.Path)
	if err != nil {
		return err
	}
	faults := []error{}
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue // the reader reports it
		}
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("read file: %w", err)
		}
		if _, _, err = readCSVHeader(f, !cfg.Follow); err != nil && !errors.Is(err, io.EOF) {
			faults = append(faults, fmt.Errorf("%s: %w", path, err))
		}
		f.Close()
	}
	return errors.Join(faults...)
}
