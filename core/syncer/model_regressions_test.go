package syncer

import "testing"

// TestStoriesThatOnceFailed plays the seeds that found something, with what they found. A seed means the same story only as long as the stories
// are made in the same way: whoever changes how they are made says so here, and lets the mutants show that the situations still come.
func TestStoriesThatOnceFailed(t *testing.T) {
	stage := newStage(t)
	for _, row := range []struct {
		seed  uint64
		found string
	}{
		{3, "a sweep missed, as if it were lost, the commit that had been the newest when its run began and that the same run's retention had retired"},
		{1757, "a listing that was overtaken by a push and a retention showed only what a pin kept: neither what was the newest nor what is"},
		{8260, "likewise, without anything having gone wrong"},
	} {
		if told := stage.play(t, row.seed, play{}); told.fault != "" {
			t.Errorf("once found: %s\n%s", row.found, told)
		}
	}
}
