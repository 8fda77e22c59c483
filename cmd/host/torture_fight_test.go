//go:build torture

package main

import (
	"path/filepath"
	"testing"
)

// CASES A43, A45, A42, A8, A24, A29, A37: two hosts on one repository, with kills, stalls and takeovers; no commit is lost
// but by the rule of retention, which both run, and there is one line of history.
func TestTortureTwoHostsFightOverOneRepository(t *testing.T) {
	t.Parallel()
	target := filepath.Join(t.TempDir(), "target")
	newFight(t, buildPlugins(t), target, settings{target: target, retention: fightRetention()}).run()
}
