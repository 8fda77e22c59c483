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
	reads                  bool   // a standby's: nothing is written there before it is activated
	spots                  []spot // where the claimed folders are: a storage path, or a repository on a target of folders
}

func (c *claims) path(s section, pipeline, path string, host Host) {
	mine := claim{pipeline: pipeline, name: path, line: s.where("path").Start.Line, spots: []spot{s.spot(path)}}
	for _, other := range c.paths {
		if mine.spots[0].overlap(other.spots[0]) != "" {
			s.fault(s.where("path"), fmt.Sprintf("storage path %s overlaps that of pipeline %q", path, other.pipeline), fmt.Sprintf("Line %d has %s. Give each pipeline a folder of its own.", other.line, other.name))
		}
	}
	if data := s.spot(host.DataDir); mine.spots[0].holds(data) {
		s.fault(s.where("path"), fmt.Sprintf("storage path %s holds more than one pipeline", filepath.Clean(path)), "Name a folder below it.")
	} else {
		s.refuseOwn(mine, host)
		if !data.holds(mine.spots[0]) { // else the target was told of already
			c.refuseTargets(s, mine)
		}
	}
	c.paths = append(c.paths, mine)
}

// refuseTargets reports a storage path that overlaps the folder of a target.
func (c *claims) refuseTargets(s section, mine claim) {
	for _, t := range c.targets {
		for _, f := range t.folders {
			if how := mine.spots[0].overlap(f.spot); how != "" {
				s.fault(s.where("path"), fmt.Sprintf("storage path %s %s the folder of target %q, %s", mine.name, how, t.Name, f.path),
					"What is pushed is to outlive what it was made from: give each a folder of its own, best on two disks.")
			}
		}
	}
}

// refuseOwn reports a folder that overlaps one of those which the host makes and empties itself.
func (s section) refuseOwn(mine claim, host Host) {
	for _, own := range []struct{ what, folder string }{
		{"the spool folder", host.SpoolDir}, {"the folder that plugins run from", host.RunDir()}, {"the folder of memory storage", host.MemoryDir()},
	} {
		if mine.spots[0].overlap(s.spot(own.folder)) != "" {
			s.fault(s.where("path"), fmt.Sprintf("storage path %s overlaps %s %s", mine.name, own.what, own.folder),
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
	for _, f := range c.target(mine.target).folders {
		mine.spots = append(mine.spots, s.below(f.spot, mine.name))
	}
	for _, other := range c.prefixes {
		overlap := inside(mine.name, other.name) || inside(other.name, mine.name)
		switch {
		case other.target == mine.target && overlap:
			s.fault(s.where("prefix"), fmt.Sprintf("prefix %q overlaps %q of pipeline %q on target %q", mine.name, other.name, other.pipeline, mine.target), fmt.Sprintf("See line %d. Give each pipeline a prefix of its own, none inside another.", other.line))
		case other.target == mine.target || !s.opts.whole() || mine.reads || other.reads:
		case overlap && c.target(other.target).samePlace(c.target(mine.target)):
			c.onePlace(s, mine, other)
		default:
			s.oneFolder(mine, other)
		}
	}
	c.prefixes = append(c.prefixes, mine)
}

// onePlace reports two repositories on targets of different names that are one place: their writers would fence each other for ever.
func (c *claims) onePlace(s section, mine, other claim) {
	a, b := c.target(other.target), c.target(mine.target)
	s.fault(s.where("prefix"),
		fmt.Sprintf("prefix %q on target %q overlaps %q of pipeline %q on target %q: the targets are one place", mine.name, mine.target, other.name, other.pipeline, other.target),
		fmt.Sprintf("Line %d has the other; the targets in lines %d and %d name one plugin with one configuration. Give one of the targets a place of its own, or one of the repositories a prefix outside the other.",
			other.line, a.Body.places[""].Line, b.Body.places[""].Line))
}

// oneFolder reports two repositories of which one lies in the other's folder, however that is called.
func (s section) oneFolder(mine, other claim) {
	for _, a := range mine.spots {
		for _, b := range other.spots {
			how := a.overlap(b)
			text := fmt.Sprintf("the folder %s %s %s", a.path, how, b.path)
			if a.path == b.path {
				text = "both are the folder " + a.path
			}
			if how != "" {
				s.fault(s.where("prefix"),
					fmt.Sprintf("prefix %q on target %q overlaps %q of pipeline %q on target %q: %s", mine.name, mine.target, other.name, other.pipeline, other.target, text),
					fmt.Sprintf("Line %d has the other. Give one of the targets a folder of its own, or one of the repositories a prefix outside the other.", other.line))
				return
			}
		}
	}
}

func (c *claims) target(name string) Target {
	i := slices.IndexFunc(c.targets, func(t Target) bool { return t.Name == name })
	return c.targets[i] // a sync block that names no target claims nothing
}
