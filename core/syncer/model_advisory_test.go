package syncer

import (
	"strings"
	"testing"
)

// TestUnderAdvisoryFencingOneWriterAloneLosesNothing plays the stories of the model with one host at a time on a store that takes every create: replies are
// lost, requests land after their callers gave up, calls stall, the host is killed and started again. What was reported is never lost, and nobody
// reads anything that is not whole. Requests of a life that was killed are settled before the next one starts: with nothing to refuse them, one that
// lands after the next seal would overwrite it, and docs/decisions/0006 says so.
func TestUnderAdvisoryFencingOneWriterAloneLosesNothing(t *testing.T) {
	stage := newStage(t)
	stage.alone = true
	for seed := range modelSeeds(t) / 5 {
		if story, fault := stage.play(t, seed, mutants{}); fault != "" {
			t.Fatalf("seed %d: %s\n%s", seed, fault, strings.Join(story, "\n"))
		}
	}
}

// TestTheModelNoticesWhatAdvisoryFencingStandsOn takes away, one by one, what one writer needs where the store refuses nothing.
func TestTheModelNoticesWhatAdvisoryFencingStandsOn(t *testing.T) {
	for _, row := range []struct {
		name  string
		wrong mutants
	}{
		{"a number is aimed at with other bytes", mutants{otherBytes: true}},
		{"a seal is made anew with another time", mutants{otherSeal: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			stage := newStage(t)
			stage.alone = true
			for seed := range uint64(20_000) {
				if _, fault := stage.play(t, seed, row.wrong); fault != "" {
					t.Logf("seed %d: %s", seed, fault)
					return
				}
			}
			t.Error("the model did not notice")
		})
	}
}

// settle ends what earlier lives have left under way: it lands now or never.
func (w *world) settle() {
	for len(w.late) > 0 {
		i := w.rng.IntN(len(w.late))
		if w.rng.IntN(2) == 0 {
			w.land(i)
			continue
		}
		w.tell("late request never lands: %s", w.late[i])
		w.late = append(w.late[:i:i], w.late[i+1:]...)
	}
}
