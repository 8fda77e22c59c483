package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cairnsync/cairn/core/host"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// report is the result of an exam, as --json prints it.
type report struct {
	Plugin       string        `json:"plugin"`
	Version      string        `json:"version"`
	SDK          string        `json:"sdk"`
	Protocol     int           `json:"protocol"`
	SHA256       string        `json:"sha256"` // of the file, as `cairn plugin hash` prints it
	Target       string        `json:"target"`
	Started      time.Time     `json:"started"`
	Ended        time.Time     `json:"ended"`
	Passed       bool          `json:"passed"`        // it was not interrupted, no case failed, and every level asked for was examined
	LevelsPassed []string      `json:"levels_passed"` // those of which every case has passed, without a skip
	Levels       []levelResult `json:"levels"`
	Cases        []caseResult  `json:"cases"`

	asked   []sdktest.Level
	results []sdktest.Result
}

type levelResult struct {
	Level   string          `json:"level"`
	Outcome sdktest.Outcome `json:"outcome"`
	Passed  int             `json:"passed"`
	Failed  int             `json:"failed"`
	Skipped int             `json:"skipped"`
}

type caseResult struct {
	Name     string   `json:"name"`
	Level    string   `json:"level"`
	Outcome  string   `json:"outcome"` // ok, failed, skipped
	Error    string   `json:"error,omitempty"`
	Skipped  string   `json:"skipped,omitempty"` // the reason
	Notes    []string `json:"notes,omitempty"`
	Duration float64  `json:"duration_seconds"`
}

func newReport(exam *host.Exam, levels []sdktest.Level, started time.Time) *report {
	return &report{
		Plugin: exam.About.Name, Version: exam.About.Version, SDK: exam.About.SDK, Protocol: host.PluginProtocol, SHA256: exam.SHA256,
		Target: exam.Name, Started: started, LevelsPassed: []string{}, asked: levels,
	}
}

func (r *report) add(result sdktest.Result, took time.Duration) caseResult {
	one := caseResult{
		Name: result.Case.Name, Level: result.Case.Level.String(), Outcome: "ok", Skipped: result.Skipped, Notes: result.Notes,
		Duration: took.Round(time.Millisecond).Seconds(),
	}
	switch {
	case result.Err != nil:
		one.Outcome, one.Error = "failed", result.Err.Error()
	case result.Skipped != "":
		one.Outcome = "skipped"
	}
	r.results, r.Cases = append(r.results, result), append(r.Cases, one)
	return one
}

// close judges what came. An exam that was interrupted has passed nothing.
func (r *report) close(ended time.Time, interrupted bool) {
	r.Ended, r.Passed = ended, !interrupted
	tallies := sdktest.Count(r.results)
	for _, level := range r.asked {
		tally := sdktest.Tally{Level: level}
		if i := slices.IndexFunc(tallies, func(t sdktest.Tally) bool { return t.Level == level }); i >= 0 {
			tally = tallies[i]
		}
		outcome := tally.Outcome()
		r.Levels = append(r.Levels, levelResult{level.String(), outcome, tally.Passed, tally.Failed, tally.Skipped})
		switch outcome {
		case sdktest.Passed:
			r.LevelsPassed = append(r.LevelsPassed, level.String())
		case sdktest.Failed, sdktest.NotExamined:
			r.Passed = false
		}
	}
}

// slow is from when on the time of a case is shown.
const slow = 1.0

func writeCase(w io.Writer, c caseResult) {
	took := ""
	if c.Duration >= slow {
		took = fmt.Sprintf(" (%.1f s)", c.Duration)
	}
	switch c.Outcome {
	case "failed":
		fmt.Fprintf(w, "FAIL  [%s] %s%s\n", c.Level, c.Name, took)
		for _, line := range forPeople(c.Error) {
			fmt.Fprintf(w, "      %s\n", line)
		}
	case "skipped":
		fmt.Fprintf(w, "skip  [%s] %s\n", c.Level, c.Name)
	default:
		fmt.Fprintf(w, "ok    [%s] %s%s\n", c.Level, c.Name, took)
	}
	for _, note := range c.Notes {
		fmt.Fprintf(w, "      %s\n", note)
	}
}

// write is what is said at the end; the cases have been told as they came.
func (r *report) write(w io.Writer) {
	fmt.Fprintln(w)
	r.writeSkips(w)
	rows := [][]string{}
	for _, l := range r.Levels {
		rows = append(rows, []string{l.Level, string(l.Outcome), fmt.Sprint(l.Passed), fmt.Sprint(l.Failed), fmt.Sprint(l.Skipped)})
	}
	table(w, []string{"LEVEL", "OUTCOME", "PASSED", "FAILED", "SKIPPED"}, rows)
	passed := "no level"
	if len(r.LevelsPassed) > 0 {
		passed = strings.Join(r.LevelsPassed, ", ")
	}
	fmt.Fprintf(w, "%s %s (%s, protocol %d, SDK %s) has passed %s in %s\n",
		r.Plugin, r.Version, r.SHA256, r.Protocol, r.SDK, passed, r.Ended.Sub(r.Started).Round(time.Second))
}

// writeSkips lists the cases that were not run, with the reason; a reason that many of a level share stands once.
func (r *report) writeSkips(w io.Writer) {
	const many = 4
	type group struct{ level, reason string }
	shared := map[group]int{}
	for _, c := range r.Cases {
		if c.Outcome == "skipped" {
			shared[group{c.Level, c.Skipped}]++
		}
	}
	for _, c := range r.Cases {
		same := group{c.Level, c.Skipped}
		switch n := shared[same]; {
		case c.Outcome != "skipped" || n == 0:
		case n < many:
			fmt.Fprintf(w, "skipped: [%s] %s: %s\n", c.Level, c.Name, c.Skipped)
		default:
			fmt.Fprintf(w, "skipped: [%s] %d cases: %s\n", c.Level, n, c.Skipped)
			shared[same] = 0
		}
	}
}
