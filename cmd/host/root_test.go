package main

import (
	"strings"
	"syscall"
	"testing"
)

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestACommandWhoseAnswerCannotBePrintedHasFailed(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--json"}} {
		var stderr strings.Builder
		if code := run(t.Context(), &program{stdout: fullDisk{}, stderr: &stderr}, args); code != exitFailed || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%v: exit code %d, says %q", args, code, stderr.String())
		}
	}
}
