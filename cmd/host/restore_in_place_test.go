package main

import (
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/host"
)

func TestARestoreInPlaceSaysWhichTargetsAreHeldAndWhatToDo(t *testing.T) {
	done := host.RestoredInPlace{
		Desired: "stopped",
		Held:    []host.InPlaceTarget{{Target: "near", Number: 4, Step: 15}},
		Unread:  []host.InPlaceTarget{{Target: "far", Error: "no answer"}},
	}
	for preview, is := range map[bool]string{false: "is", true: "would be"} {
		var text strings.Builder
		done.Preview = preview
		tellInPlace(&text, "p", done, true)
		for _, want := range []string{
			"target near holds commit 4 (step 15), which is not in this state: it " + is + " held from the next push on; to overrule that commit, `cairn pipeline adopt p near`; " +
				"to go on from it instead, restore it in place with --target near --number 4\n",
			"target far may hold what is not in this state, for it could not be read: no answer; if it does, it " + is + " held from the next push on",
		} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("preview %t: %s\ndoes not say %q", preview, text.String(), want)
			}
		}
	}
}
