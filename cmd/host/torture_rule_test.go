//go:build torture

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/repository"
)

// The line that is planted holds checkpoints 2, 3 and 5, all made at the moment of the gc object.
func TestTortureTheLedgerSeesEachWayToRetireTooMuch(t *testing.T) {
	for _, row := range []struct {
		name string
		rule repository.Retention
		upTo uint64
		kept []uint64
		pin  uint64
		say  string // "" = no fault
	}{
		{"as the rule says", repository.Retention{MinCount: 2}, 4, []uint64{3}, 0, ""},
		{"too few are left", repository.Retention{MinCount: 3}, 4, []uint64{3}, 0, "retires commit 2, above which 2 checkpoints stay, not 3"},
		{"the newest goes", repository.Retention{}, 5, []uint64{3}, 0, "retires commit 5, above which 0 checkpoints stay, not 1"},
		{"one goes that is too young", repository.Retention{MinCount: 1, MinAge: time.Hour}, 4, []uint64{3}, 0, "retires commit 2 at the age of 0s, before 1h0m0s"},
		{"a pinned one goes", repository.Retention{MinCount: 1}, 4, []uint64{3}, 2, "commit 2 is pinned"},
		{"a pinned one stays", repository.Retention{MinCount: 1}, 4, []uint64{3}, 3, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "target")
			plantLine(t, target, 1, 1, 1, 2, 2)
			l := newLedger(target)
			l.rule = row.rule
			l.look()
			if row.pin != 0 {
				l.pin(row.pin)
			}
			plantGC(t, target, row.upTo, row.kept...)
			l.look()
			if all := strings.Join(l.faults, "\n"); row.say == "" && all != "" || !strings.Contains(all, row.say) {
				t.Errorf("faults %q, want %q", l.faults, row.say)
			}
		})
	}
}

// A sweep that was cut short leaves what the ledger calls untidy.
func TestTortureTheLedgerSeesWhatASweepLeft(t *testing.T) {
	target := filepath.Join(t.TempDir(), "target")
	plantLine(t, target, 1, 1, 1)
	l := newLedger(target)
	if left := l.untidy(); left != "" {
		t.Errorf("a line of which nothing is retired is untidy: %s", left)
	}
	plantGC(t, target, 2)
	if left := l.untidy(); !strings.Contains(left, "commit 1 is retired") {
		t.Errorf("with retired commits it says %q", left)
	}
}
