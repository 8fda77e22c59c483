package sqlcircuit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A record without an end is told once it has been there for so many looks, which are a second apart, or, when it is a quote that holds up
// what follows, once so many bytes wait for it.
const (
	openLooks = 5
	openBytes = 4 << 10
)

// unfinished is a record that waits for its end at the end of a file.
type unfinished struct {
	at    int64 // of its first byte
	bytes int64 // from there to the end of the file; 0 = nothing waits
	quote bool  // it is a quote that waits, so whole lines wait with it
	looks int   // that have seen it
}

// see enters what a look has left unread.
func (u *unfinished) see(at, waiting int64, quote bool) {
	looks := 1
	if u.bytes > 0 && u.at == at {
		looks += u.looks
	}
	*u = unfinished{at: at, bytes: waiting, quote: quote, looks: looks}
}

// note is "" while there is nothing to tell.
func (u *unfinished) note() string {
	long := u.looks >= openLooks || u.quote && u.bytes >= openBytes
	switch {
	case u.bytes == 0 || !long:
		return ""
	case u.quote:
		return fmt.Sprintf("a record has been open since byte %d: a quote is not closed, and %d bytes wait for it", u.at, u.bytes)
	}
	return fmt.Sprintf("the record at byte %d waits for its newline", u.at)
}

// noteMissing reports, once each, files that were read before and are gone, and a pattern that matches nothing.
func (s *fileSource) noteMissing(names []string) {
	gone := []string{}
	for name, k := range s.known {
		if k.length == 0 || slices.Contains(names, name) {
			continue
		}
		path := s.in.cfg.File.place(name)
		gone = append(gone, path)
		k.renamed = k.renamed || k.file != nil && linked(k.file)
		s.reportOnce(path, k, "input file is gone; its position is kept")
	}
	slices.Sort(gone)
	switch {
	case len(gone) > 0:
		s.missing = "gone: " + strings.Join(gone, ", ")
	case len(names) == 0:
		s.missing = "no file matches " + s.in.cfg.File.Path
	default:
		s.missing = ""
	}
	s.tell()
}

// tell makes one note of all that there is to say.
func (s *fileSource) tell() {
	parts := []string{}
	if s.missing != "" {
		parts = append(parts, s.missing)
	}
	for _, name := range slices.Sorted(maps.Keys(s.known)) {
		if note := s.known[name].open.note(); note != "" {
			parts = append(parts, s.in.cfg.File.place(name)+": "+note)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.rotations)) {
		parts = append(parts, fmt.Sprintf("rotated since the start: %s (%d)", s.in.cfg.File.place(name), s.rotations[name]))
	}
	s.in.setNote(strings.Join(parts, "; "))
}

func (s *fileSource) reportOnce(path string, k *tracked, what string) {
	if k.reported != what {
		k.reported = what
		s.log.Warn(what, "input", s.in.cfg.Name, "path", path, "offset", k.offset, "length", k.length)
	}
}
