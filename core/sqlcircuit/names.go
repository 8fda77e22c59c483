package sqlcircuit

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// name is what the file at path is known by, in the state and in :position.
func (f *FileInput) name(path string) string {
	if f.Base == "" {
		return path
	}
	name, err := filepath.Rel(f.Base, path)
	if err != nil {
		return path // not of two absolute paths
	}
	return name
}

// place is where the file of that name lies, if it is there.
func (f *FileInput) place(name string) string {
	if f.Base == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(f.Base, name)
}

// alias says that two names may be of one file, written once as an absolute path and once relative to a folder that may have been moved since.
func alias(a, b string) bool {
	if filepath.IsAbs(a) == filepath.IsAbs(b) {
		return false
	}
	if filepath.IsAbs(b) {
		a, b = b, a
	}
	const up = ".." + string(filepath.Separator)
	for strings.HasPrefix(b, up) {
		b = strings.TrimPrefix(b, up)
	}
	return strings.HasSuffix(a, string(filepath.Separator)+b)
}

// adopt gives a file that is not known by its name the position that is kept for it under an alias: an absolute path, as states had before
// names were relative, or as the configuration had it. What the file holds is compared when it is read, as that of any file which is known.
func (s *fileSource) adopt(ctx context.Context, names []string) error {
	for _, name := range names {
		if _, known := s.known[name]; known {
			continue
		}
		from, found := s.aliasOf(name)
		if !found {
			continue
		}
		s.log.Info("input file is known by another name", "input", s.in.cfg.Name, "from", from, "to", name, "offset", s.known[from].offset)
		if err := s.rename(ctx, from, name); err != nil {
			return err
		}
	}
	return nil
}

// aliasOf chooses among the aliases of a name. A state that was read on at another place under absolute paths has several: then the file is
// meant that lies where the name points, else one that holds the same, else the one that most was taken of.
func (s *fileSource) aliasOf(name string) (chosen string, found bool) {
	aliases := []string{}
	for other, k := range s.known {
		if k.length > 0 && alias(other, name) {
			aliases = append(aliases, other)
		}
	}
	if len(aliases) == 0 {
		return "", false
	}
	rank := func(other string) int {
		switch file := s.in.cfg.File; {
		case file.place(other) == file.place(name):
			return 0
		case s.verdictAt(name, s.known[other]) == same:
			return 1
		}
		return 2
	}
	return slices.MinFunc(aliases, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(s.known[b].offset, s.known[a].offset), cmp.Compare(a, b))
	}), true
}

// findMoved follows files that were renamed, until none is left: where several move up by one, each makes room for the next.
func (s *fileSource) findMoved(ctx context.Context, names []string) error {
	for {
		moved, err := s.moveOne(ctx, names)
		if err != nil || !moved {
			return err
		}
	}
}

// moveOne moves a known position to a name that is not known yet and holds the file it was taken from: the very file that is kept open or, when
// its place holds nothing, or another file, one that holds the same. The longest file chooses first, for it fits the fewest.
func (s *fileSource) moveOne(ctx context.Context, names []string) (moved bool, err error) {
	known := slices.SortedFunc(maps.Keys(s.known), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.known[b].length, s.known[a].length), cmp.Compare(a, b))
	})
	unknown := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return s.known[name] != nil })
	for _, from := range known {
		to := -1
		if !s.isAt(from, s.known[from]) {
			to = slices.IndexFunc(unknown, func(name string) bool { return s.isAt(name, s.known[from]) })
		}
		if k := s.known[from]; to < 0 && k.length > 0 && s.verdictAt(from, k) != same {
			to = slices.IndexFunc(unknown, func(name string) bool { return s.verdictAt(name, k) == same })
		}
		if to >= 0 {
			return true, s.move(ctx, from, unknown[to], slices.Contains(names, from))
		}
	}
	return false, nil
}

// isAt says that the file of that name is the very one that k keeps open.
func (s *fileSource) isAt(name string, k *tracked) bool {
	if k.file == nil {
		return false
	}
	info, err := os.Stat(s.in.cfg.File.place(name))
	kept, keptErr := k.file.Stat()
	return err == nil && keptErr == nil && os.SameFile(info, kept)
}

// move follows a file that was renamed. What stands in its place now, or comes there later, is another file, not the same one rewritten: an
// editor that keeps a backup renames too.
func (s *fileSource) move(ctx context.Context, from, to string, inPlace bool) error {
	k, cfg := s.known[from], s.in.cfg.File
	moved, err := os.Open(cfg.place(to))
	if err != nil {
		return k.refused(cfg.place(from), err)
	}
	defer moved.Close()
	if inPlace {
		if err := s.unlike(from, moved); err != nil {
			return k.refused(cfg.place(from), err)
		}
		s.rotations[from]++
	}
	if s.vacated[from], err = k.first(moved, cfg.Format); err != nil {
		return err
	}
	s.log.Warn("input file was renamed", "input", s.in.cfg.Name, "from", from, "to", to, "offset", k.offset)
	return s.rename(ctx, from, to)
}

// unlike refuses a file of that name that begins with the record that another one began with.
func (s *fileSource) unlike(name string, was *os.File) error {
	is, err := os.Open(s.in.cfg.File.place(name))
	if err != nil {
		return err
	}
	defer is.Close()
	alike, err := beginAlike(was, is, s.in.cfg.File.Format)
	if err == nil && alike {
		err = errors.New(string(rewritten))
	}
	return err
}

// rename keeps a position under another name, from the next step on.
func (s *fileSource) rename(ctx context.Context, from, to string) error {
	k := s.known[from]
	delete(s.known, from)
	s.known[to] = k
	k.leaving, k.renamed, k.reported = false, false, ""
	moved := item{mark: true, forget: from, end: k.offset, look: k.look(to)}
	if !s.in.put(ctx, []item{moved}) {
		return errNotTaken
	}
	return nil
}

// verdictAt compares the file of that name with k; a file that cannot be read is not the same, and visit will say why.
func (s *fileSource) verdictAt(name string, k *tracked) verdict {
	f, err := os.Open(s.in.cfg.File.place(name))
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
