package pluginhost

import (
	"strings"
	"testing"
)

// The tail is bounded in lines too: a line without a letter costs memory all the same.
func TestTheTailIsBoundedHoweverShortTheLinesAre(t *testing.T) {
	var tail tail
	for range 3 * tailBytes {
		tail.add("")
	}
	tail.add("the last")
	if n := len(tail.lines); n > tailLines {
		t.Errorf("%d lines are kept", n)
	}
	if last := tail.last(2); strings.Join(last, "|") != "|the last" {
		t.Errorf("the last lines: %q", last)
	}
}
