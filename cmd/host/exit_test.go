package main

import (
	"testing"

	"github.com/cairnsync/cairn/core/config"
)

func TestOnlyAFaultOfTheFileExitsAsOne(t *testing.T) {
	for _, row := range []struct {
		name  string
		found config.Diagnostics
		want  int
	}{
		{"a fault", config.Diagnostics{{Severity: config.Error}}, exitConfig},
		{"a plugin that gave no answer", config.Diagnostics{{Severity: config.Warning}, {Severity: config.Unchecked}}, exitFailed},
		{"both", config.Diagnostics{{Severity: config.Unchecked}, {Severity: config.Error}}, exitConfig},
	} {
		if got := exitCode(&shownError{row.found}); got != row.want {
			t.Errorf("%s: exit code %d, want %d", row.name, got, row.want)
		}
	}
}
