package sdktest

// Outcome is what became of a level.
type Outcome string

// The outcomes. Only the first is a level passed: a target with skips has not been seen to keep those sentences, and nothing says that it
// breaks them.
const (
	Passed          Outcome = "passed"            // every case
	PassedWithSkips Outcome = "passed with skips" // no case failed, some could not be run
	NotExamined     Outcome = "not examined"      // no case was run
	Failed          Outcome = "failed"            // a case failed
)

// Tally counts the cases of one level.
type Tally struct {
	Level                   Level
	Passed, Failed, Skipped int
}

// Outcome judges the count.
func (t Tally) Outcome() Outcome {
	switch {
	case t.Failed > 0:
		return Failed
	case t.Passed == 0:
		return NotExamined
	case t.Skipped > 0:
		return PassedWithSkips
	}
	return Passed
}

// Count sums results by level. Levels without any result are left out.
func Count(results []Result) []Tally {
	var tallies []Tally
	for _, level := range Levels() {
		t := Tally{Level: level}
		for _, r := range results {
			switch {
			case r.Case.Level != level:
			case r.Err != nil:
				t.Failed++
			case r.Skipped != "":
				t.Skipped++
			default:
				t.Passed++
			}
		}
		if t != (Tally{Level: level}) {
			tallies = append(tallies, t)
		}
	}
	return tallies
}
