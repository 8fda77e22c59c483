package sqlcircuit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
			s.log.Error("input stopped", "input", s.in.cfg.Name, "reason", err)
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
	paths, err := s.paths()
	if err != nil {
		return err
	}
	if err := s.findMoved(ctx, paths); err != nil {
		return err
	}
	s.noteMissing(paths)
	for _, path := range paths {
		if err := s.visit(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

func (s *fileSource) paths() ([]string, error) {
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
	return paths, nil
}

// findMoved follows files that were renamed: a known position whose path now holds nothing, or another file, moves to a path that is not
// known yet and holds the file it was taken from.
func (s *fileSource) findMoved(ctx context.Context, paths []string) error {
	for from, k := range s.known {
		if k.length == 0 || s.verdictAt(from, k) == same {
			continue
		}
		for _, to := range paths {
			if _, known := s.known[to]; known || s.verdictAt(to, k) != same {
				continue
			}
			s.log.Warn("input file was renamed", "input", s.in.cfg.Name, "from", from, "to", to, "offset", k.offset)
			delete(s.known, from)
			s.known[to] = k
			k.leaving, k.reported = false, ""
			moved := item{mark: true, forget: from, end: k.offset, look: &look{path: to, length: k.length, head: k.head}}
			if !s.in.put(ctx, []item{moved}) {
				return errNotTaken
			}
			break
		}
	}
	return nil
}

// verdictAt compares the file at path with k; a file that cannot be read is not the same, and visit will say why.
func (s *fileSource) verdictAt(path string, k *tracked) verdict {
	f, err := os.Open(path)
	if err != nil {
		return replaced
	}
	defer f.Close()
	v, err := k.compare(f)
	if err != nil {
		return replaced
	}
	return v
}

// noteMissing reports, once each, files that were read before and are gone, and a pattern that matches nothing.
func (s *fileSource) noteMissing(paths []string) {
	gone := []string{}
	for path, k := range s.known {
		if k.length == 0 || slices.Contains(paths, path) {
			continue
		}
		gone = append(gone, path)
		s.reportOnce(path, k, "input file is gone; its position is kept")
	}
	slices.Sort(gone)
	switch {
	case len(gone) > 0:
		s.in.setNote("gone: " + strings.Join(gone, ", "))
	case len(paths) == 0:
		s.in.setNote("no file matches " + s.in.cfg.File.Path)
	default:
		s.in.setNote("")
	}
}

func (s *fileSource) reportOnce(path string, k *tracked, what string) {
	if k.reported != what {
		k.reported = what
		s.log.Warn(what, "input", s.in.cfg.Name, "path", path, "offset", k.offset, "length", k.length)
	}
}

// visit reads what is new at path, after making sure that it is the file that was read before.
func (s *fileSource) visit(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it went away between the listing and now; the next look reports it
	}
	if err != nil {
		return fmt.Errorf("read file: %w", err)
	}
	k := s.known[path]
	if k == nil {
		k = &tracked{}
		s.known[path] = k
	}
	v, err := k.compare(f)
	if err == nil && v != same && k.file != nil && !sameFile(k.file, f) {
		f.Close()
		return s.leave(ctx, path, k)
	}
	k.close()
	k.file = f
	if err == nil && v != same {
		err = errors.New(string(v))
	}
	if err != nil {
		return fmt.Errorf("read %s: %w: %d bytes of the file that was read before were taken, of %d; put that file back, or give the new "+
			"one a name of its own", path, err, k.offset, k.length)
	}
	k.reported = ""
	err = s.read(ctx, path, k, !s.in.cfg.File.Follow)
	if !s.in.cfg.File.Follow {
		k.close()
	}
	return err
}

func sameFile(a, b *os.File) bool {
	x, errA := a.Stat()
	y, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// leave finishes a file that was rotated away while it was followed: what is left of it is read through the descriptor that was kept, and
// once more a look later, for a writer that had not reopened yet. Then its last line counts as it stands, and the path begins anew.
func (s *fileSource) leave(ctx context.Context, path string, k *tracked) error {
	s.reportOnce(path, k, "input file was rotated")
	if err := s.read(ctx, path, k, k.leaving); err != nil {
		return err
	}
	if !k.leaving {
		k.leaving = true
		return nil
	}
	k.close()
	s.known[path] = &tracked{}
	empty := sha256.Sum256(nil)
	if !s.in.put(ctx, []item{{mark: true, look: &look{path: path, head: empty[:]}}}) {
		return errNotTaken
	}
	return s.visit(ctx, path)
}

// read queues the records of k.file behind k.offset.
func (s *fileSource) read(ctx context.Context, path string, k *tracked, final bool) error {
	now, err := lookAt(path, k.file)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if now.length < k.length {
		return fmt.Errorf("read %s: %w", path, errShrunk)
	}
	cut, err := k.continued(k.file, now.length)
	if err == nil && cut {
		err = fmt.Errorf("its last line, which had no newline and was counted, was continued at byte %d: finish lines before they are "+
			"read, or use follow", k.offset)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	records, err := s.open(k, now, final)
	if err != nil || records == nil {
		return err
	}
	if err := s.queue(ctx, records, k, now); err != nil {
		return err
	}
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
		return nil, fmt.Errorf("read %s: %w", now.path, err)
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
			return fmt.Errorf("read %s: %w", now.path, err)
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
