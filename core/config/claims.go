package config

import (
	"fmt"
	"path/filepath"
	"slices"
)

// claims remembers who owns which folder and which keys, so that no two pipelines write over each other.
type claims struct {
	targets         []Target
	paths, prefixes []claim
}

type claim struct {
	pipeline, target, name string
	line                   int
	reads                  bool // a standby's: nothing is written there before it is activated
}

func (c *claims) path(s section, pipeline, path string, host Host) {
	for _, other := range c.paths {
		if inside(path, other.name) || inside(other.name, path) {
			s.fault(s.where("path"), fmt.Sprintf("storage path %s overlaps that of pipeline %q", path, other.pipeline), fmt.Sprintf("Line %d has %s. Give each pipeline a folder of its own.", other.line, other.name))
		}
	}
	if clean := filepath.Clean(path); inside(host.DataDir, clean) {
		s.fault(s.where("path"), fmt.Sprintf("storage path %s holds more than one pipeline", clean), "Name a folder below it.")
	} else {
		s.refuseOwn(path, host)
	}
	c.paths = append(c.paths, claim{pipeline: pipeline, name: path, line: s.where("path").Start.Line})
}

// refuseOwn reports a folder that overlaps one of those which the host makes and empties itself.
func (s section) refuseOwn(path string, host Host) {
	for _, own := range []struct{ what, folder string }{
		{"the spool folder", host.SpoolDir}, {"the folder that plugins run from", host.RunDir()}, {"the folder of memory storage", host.MemoryDir()},
	} {
		if inside(path, own.folder) || inside(own.folder, path) {
			s.fault(s.where("path"), fmt.Sprintf("storage path %s overlaps %s %s", path, own.what, own.folder),
				"The host removes what it finds there: name another folder with path, in the storage block.")
		}
	}
}

// repository claims the keys below a prefix of a target.
func (c *claims) repository(s section, p Pipeline, block Sync) {
	mine := claim{
		pipeline: p.Name, target: block.Target, name: block.Prefix, line: s.where("prefix").Start.Line,
		reads: p.Initial == InitiallyStandby && block.PullInterval > 0,
	}
	for _, other := range c.prefixes {
		switch {
		case !inside(mine.name, other.name) && !inside(other.name, mine.name):
		case other.target == mine.target:
			s.fault(s.where("prefix"), fmt.Sprintf("prefix %q overlaps %q of pipeline %q on target %q", mine.name, other.name, other.pipeline, mine.target), fmt.Sprintf("See line %d. Give each pipeline a prefix of its own, none inside another.", other.line))
		case s.opts.whole() && !mine.reads && !other.reads:
			c.onePlace(s, mine, other)
		}
	}
	c.prefixes = append(c.prefixes, mine)
}

// onePlace reports two repositories on targets of different names that are one place: their writers would fence each other for ever.
func (c *claims) onePlace(s section, mine, other claim) {
	a, b := c.target(other.target), c.target(mine.target)
	if !a.samePlace(b) {
		return
	}
	s.fault(s.where("prefix"),
		fmt.Sprintf("prefix %q on target %q overlaps %q of pipeline %q on target %q: the targets are one place", mine.name, mine.target, other.name, other.pipeline, other.target),
		fmt.Sprintf("Line %d has the other; the targets in lines %d and %d name one plugin with one configuration. Give one of the targets a place of its own, or one of the repositories a prefix outside the other.",
			other.line, a.Body.places[""].Line, b.Body.places[""].Line))
}

func (c *claims) target(name string) Target {
	i := slices.IndexFunc(c.targets, func(t Target) bool { return t.Name == name })
	return c.targets[i] // a sync block that names no target claims nothing
}
