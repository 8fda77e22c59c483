package syncer

import "testing"

// noticedWithin is in how many stories the loss of a rule must show. The real code plays ten thousand in CI.
const noticedWithin = 2_000

// TestTheSimulationNoticesEachMissingRule takes the rules away one by one.
func TestTheSimulationNoticesEachMissingRule(t *testing.T) {
	for _, row := range []struct {
		name string
		play play
		from uint64 // first seed: that of the story which showed it, where such a story is rare
	}{
		{"no seal", play{wrong: mutants{noSeal: true}}, 0},
		{"commits are listed before the claim", play{wrong: mutants{listBeforeClaim: true}}, 0},
		{"success is told before the epoch is looked at again", play{wrong: mutants{tellEarly: true}}, 0},
		{"our own epoch is not looked at", play{wrong: mutants{ownEpochUnseen: true, tipUnseen: true, landingUnseen: true, formatUnseen: true}}, 1046},
		{"a conflict is taken for success", play{wrong: mutants{conflictIsSuccess: true}}, 522},
		{"a conflict is taken for a takeover without reading", play{wrong: mutants{conflictIsFenced: true}}, 0},
		{"a restart takes back what was activated elsewhere", play{wrong: mutants{restartTakesBack: true}}, 0},
		{"a commit that is found is taken for whole without a look at its packs", play{rolls: true, wrong: mutants{tipUnseen: true, packsUnseen: true}}, 0},
		{"packs are named by their content alone", play{wrong: mutants{packsByContent: true}}, 0},
		{"the sweep reads the commits before it lists the packs", play{wrong: mutants{sweepReadsFirst: true}}, 0},
		{"the sweep condemns packs of its own epoch that are undecided", play{wrong: mutants{sweepUndecided: true}}, 0},
		{"a gc object hides all up to its number", play{wrong: mutants{gcWithoutKept: true}}, 0},
		{"a gc number that is taken is taken for our own", play{wrong: mutants{gcConflictIsOurs: true}}, 0},
		{"commits are deleted without a gc object", play{wrong: mutants{deleteBeforeGC: true}}, 0},
		{"the pins are not read", play{wrong: mutants{pinsUnread: true}}, 0},
		{"a pin is acknowledged when it is written", play{wrong: mutants{pinWithoutGC: true}}, 258},
		{"what was proven is not kept", play{wrong: mutants{verifiedNotKept: true}}, 0},
		{"the newest commit that was known must be listed though it was retired", play{wrong: mutants{retiredMustBeThere: true}}, 0},
		{"a push does not look whether the line stands", play{rolls: true, wrong: mutants{tipUnseen: true, landingUnseen: true}}, 0},
		{"success is told without a look at what has landed", play{rolls: true, wrong: mutants{landingUnseen: true}}, 0},
		{"under advisory fencing, a number is aimed at with other bytes", play{alone: true, wrong: mutants{otherBytes: true}}, 7000},
		{"under advisory fencing, a seal is made anew with another time", play{alone: true, wrong: mutants{otherSeal: true}}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			stage := newStage(t)
			for seed := row.from; seed < row.from+noticedWithin; seed++ {
				if told := stage.play(t, seed, row.play); told.fault != "" {
					t.Logf("seed %d: %s", seed, told.fault)
					return
				}
			}
			t.Errorf("not noticed in %d stories", noticedWithin)
		})
	}
}
