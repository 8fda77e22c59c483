package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk/sdktest"
)

func TestAnExamThatWasInterruptedHasNotPassed(t *testing.T) {
	core := sdktest.Case{Name: "a case", Level: sdktest.Core}
	for _, c := range []struct {
		name        string
		rest        sdktest.Result // of the second case
		interrupted bool
		want        bool
	}{
		{"all cases were run", sdktest.Result{Case: core}, false, true},
		{"one was skipped", sdktest.Result{Case: core, Skipped: "no second instance"}, false, true},
		{"the rest was not run", sdktest.Result{Case: core, Skipped: "the exam was ended"}, true, false},
	} {
		r := report{asked: []sdktest.Level{sdktest.Core}}
		r.add(sdktest.Result{Case: core}, 0)
		r.add(c.rest, 0)
		r.close(time.Time{}, c.interrupted)
		if r.Passed != c.want {
			t.Errorf("%s: passed %v, want %v", c.name, r.Passed, c.want)
		}
	}
}

func TestWhatFailsManyTimesInOneWayIsShownOnce(t *testing.T) {
	var lines []string
	for i := range 64 {
		lines = append(lines, fmt.Sprintf("put many-%d (17 bytes): put exam/%012x/many-%d: store unavailable: connection refused", i, 7, i))
	}
	have := forPeople(strings.Join(lines, "\n") + "\nanother trouble")
	want := []string{lines[0], "… and 63 more like it", "another trouble"}
	if !slices.Equal(have, want) {
		t.Errorf("%q; want %q", have, want)
	}
}

func TestALongKeyIsShortenedForPeople(t *testing.T) {
	sum := strings.Repeat("0f", 32)
	key := "exam/" + strings.Repeat("k", 500) + "/end"
	have := forPeople("get " + key + ": not found, nor is " + sum)
	if len(have) != 1 || len(have[0]) > 200 || !strings.Contains(have[0], "(509 bytes): not found, nor is "+sum) {
		t.Errorf("%q", have)
	}
}

func TestAReasonThatManyCasesShareStandsOnce(t *testing.T) {
	r := report{}
	for range 5 {
		r.add(sdktest.Result{Case: sdktest.Case{Name: "a case", Level: sdktest.Process}, Skipped: "no second process"}, 0)
	}
	r.add(sdktest.Result{Case: sdktest.Case{Name: "alone", Level: sdktest.Core}, Skipped: "no second instance"}, 0)
	var text strings.Builder
	r.writeSkips(&text)
	if want := "skipped: [process] 5 cases: no second process\nskipped: [core] alone: no second instance\n"; text.String() != want {
		t.Errorf("%q; want %q", text.String(), want)
	}
}
