package sdktest

import (
	"fmt"
	"slices"
	"strings"
)

// Level groups cases by what they ask of a target.
type Level uint8

// The levels. A target that fails Core cannot be used; one that cannot do Conditional can be used with fencing = "advisory" only.
const (
	Core        Level = iota // the four methods
	Conditional              // Put with IfAbsent
	Bulk                     // large objects and many keys
	Process                  // the plugin as a process
)

// Levels are all of them, in their order.
func Levels() []Level { return []Level{Core, Conditional, Bulk, Process} }

// String is the level's name, as in a report.
func (l Level) String() string {
	switch l {
	case Core:
		return "core"
	case Conditional:
		return "conditional"
	case Bulk:
		return "bulk"
	case Process:
		return "process"
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// ParseLevels reads names with commas between them, such as "core,conditional". The answer is in the order of the levels.
func ParseLevels(text string) ([]Level, error) {
	var levels []Level
	for name := range strings.SplitSeq(text, ",") {
		i := slices.IndexFunc(Levels(), func(l Level) bool { return l.String() == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("level %q: want core, conditional, bulk or process", name)
		}
		levels = append(levels, Level(i))
	}
	slices.Sort(levels)
	return slices.Compact(levels), nil
}
