package main

import (
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
