package syncer

import "testing"

// TestTheSimulationNoticesEachMissingRule takes the rules away one by one. Each row says within how many stories the loss must show; the real
// code plays more than all of them.
func TestTheSimulationNoticesEachMissingRule(t *testing.T) {
	for _, row := range []struct {
		name   string
		play   play
		within uint64
	}{
		{"no seal", play{wrong: mutants{noSeal: true}}, 20000},
		{"commits are listed before the claim", play{wrong: mutants{listBeforeClaim: true}}, 20000},
		{"success is told before the epoch is looked at again", play{wrong: mutants{tellEarly: true}}, 20000},
		{"our own epoch is not looked at", play{wrong: mutants{ownEpochUnseen: true}}, 20000},
		{"a conflict is taken for success", play{wrong: mutants{conflictIsSuccess: true}}, 20000},
		{"a conflict is taken for a takeover without reading", play{wrong: mutants{conflictIsFenced: true}}, 20000},
		{"under advisory fencing, a number is aimed at with other bytes", play{alone: true, wrong: mutants{otherBytes: true}}, 20000},
		{"under advisory fencing, a seal is made anew with another time", play{alone: true, wrong: mutants{otherSeal: true}}, 20000},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			stage := newStage(t)
			for seed := range row.within {
				if told := stage.play(t, seed, row.play); told.fault != "" {
					t.Logf("seed %d: %s", seed, told.fault)
					return
				}
			}
			t.Errorf("not noticed in %d stories", row.within)
		})
	}
}
