package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// spot is where a folder is, whatever it is called: links on the way are followed, and what is there is known as the file system knows it, so
// that a folder is found again below the name of a bind mount.
type spot struct {
	path  string
	above []above // the deepest first
	blind bool    // nothing was looked at: a file system on the way did not answer
}

// above is a folder that is there: the one of the spot, or one that it lies in.
type above struct {
	info fs.FileInfo
	rest string // how the path goes on from there: "" or "/…"
}

// maxLinks is how many links to what is not there are followed on the way to a spot.
const maxLinks = 16

// spot looks where an absolute path leads. The folder need not be there yet.
func (l *loader) spot(path string) spot {
	var seen spot
	look := func() { seen = spotOf(path) }
	switch {
	case l.opts.Look == nil:
		look()
	case !l.opts.Look(look):
		return spot{path: filepath.Clean(path), blind: true} // what was begun may still be written to seen
	}
	return seen
}

func spotOf(path string) spot {
	s := spot{path: follow(path, maxLinks)}
	for dir := s.path; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil {
			s.above = append(s.above, above{info, strings.TrimPrefix(s.path, strings.TrimSuffix(dir, "/"))})
		}
		if dir == filepath.Dir(dir) {
			return s
		}
	}
}

// follow is a path without links, as far as that can be seen: a disk that is away may be what a link leads to.
func follow(path string, links int) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	parent = follow(parent, links)
	to, err := os.Readlink(filepath.Join(parent, filepath.Base(path)))
	switch {
	case err != nil || links == 0:
		return filepath.Join(parent, filepath.Base(path))
	case !filepath.IsAbs(to):
		to = filepath.Join(parent, to)
	}
	return follow(to, links-1)
}

// holds tells whether another spot is this one or lies in it. A mount of a folder that lies in this one is not seen through.
func (s spot) holds(o spot) bool {
	return inside(o.path, s.path) || len(s.above) > 0 && slices.ContainsFunc(o.above, func(a above) bool {
		return inside(a.rest, s.above[0].rest) && os.SameFile(a.info, s.above[0].info)
	})
}

// below is the spot of a repository on a target of folders.
func (l *loader) below(s spot, prefix string) spot {
	path := filepath.Join(s.path, prefix)
	if s.blind {
		return spot{path: path, blind: true}
	}
	return l.spot(path)
}

// overlap is the verb between the names of two folders that have something in common, else "".
func (s spot) overlap(o spot) string {
	switch in, around := o.holds(s), s.holds(o); {
	case in && around && s.path == o.path:
		return "is"
	case in && around:
		return "is, by another name,"
	case in:
		return "lies in"
	case around:
		return "holds"
	}
	return ""
}

// folder is one where a target's objects lie, each at its key.
type folder struct {
	attribute string // that names it
	spot
}

// folders looks where a target's objects lie on this machine. A plugin that does not say which of its attributes names a folder has none.
func (l *loader) folders(t Target) []folder {
	if !t.sound || t.Body.schema == nil || !l.opts.whole() {
		return nil
	}
	var all []folder
	for _, a := range t.Body.schema.Attributes {
		path, ok := t.Body.values[a.Name].(string)
		if !a.Folder || !ok || !filepath.IsAbs(path) { // one that is relative its plugin refuses
			continue
		}
		f := folder{a.Name, l.spot(path)}
		if f.blind {
			remark := t.Fault(a.Name, fmt.Sprintf("the folder of target %q, %s, did not answer", t.Name, path),
				"Whether it overlaps another one is judged by its name alone. See whether what is mounted there is reachable.")
			remark.Severity = Warning
			l.report(remark)
		}
		all = append(all, f)
	}
	return all
}

// refuseHosts reports a target whose objects would lie among the host's own files, or those among its objects.
func (l *loader) refuseHosts(t Target, host Host) {
	for _, f := range t.folders {
		for _, own := range []struct {
			what, path, remedy string
		}{
			{"data_dir", host.DataDir, "What is pushed is to outlive the data folder: give the target a folder of its own outside of it, best on another disk."},
			{"the spool folder", host.SpoolDir, "The spool is emptied at every start: give the target, or the spool with spool_dir, a folder of its own."},
		} {
			if how := f.overlap(l.spot(own.path)); how != "" {
				l.report(t.Fault(f.attribute, fmt.Sprintf("the folder of target %q, %s, %s %s %s", t.Name, f.path, how, own.what, own.path), own.remedy))
				break
			}
		}
	}
}
