package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// maxLength bounds names, in bytes.
const maxLength = 64

// Names stand in URLs, file names and object keys, so they are the plainest common subset of those.
func validName(name string) bool {
	return len(name) <= maxLength && regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`).MatchString(name)
}

// name checks a label and that no sibling bears it; taken remembers them.
func (s section) name(taken map[string]hcl.Range) bool {
	if !validName(s.label) {
		s.fault(s.labels, fmt.Sprintf("%s cannot be named %q", s.spec.Type, s.label), fmt.Sprintf("Use lower-case letters, digits, _ and -, at most %d, beginning with a letter or digit.", maxLength))
		return false
	}
	if first, ok := taken[s.label]; ok {
		s.fault(s.labels, fmt.Sprintf("a second %s %q", s.spec.Type, s.label), fmt.Sprintf("The first is in line %d. Give them different names or remove one.", first.Start.Line))
		return false
	}
	taken[s.label] = s.labels
	return true
}

// maxPrefix leaves room below it for the longest key of a repository.
const maxPrefix = 200

func validPrefix(prefix string) bool {
	if len(prefix) > maxPrefix {
		return false
	}
	for _, segment := range strings.Split(prefix, "/") {
		if segment == "." || segment == ".." || !regexp.MustCompile(`^[a-z0-9._-]+$`).MatchString(segment) {
			return false
		}
	}
	return true
}

// inside tells whether one slash-separated path is the other or lies below it.
func inside(a, b string) bool {
	return a == b || strings.HasPrefix(a, strings.TrimSuffix(b, "/")+"/")
}
