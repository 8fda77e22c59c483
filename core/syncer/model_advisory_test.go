package syncer

import (
	"testing"
)

// TestUnderAdvisoryFencingOneWriterAloneLosesNothing plays the stories of the model with one host at a time on a store that takes every create: replies are
// lost, requests land after their callers gave up, calls stall, the host is killed and started again. What was reported is never lost, and nobody
// reads anything that is not whole. Requests of a life that was killed are settled before the next one starts: with nothing to refuse them, one that
// lands after the next seal would overwrite it, and docs/decisions/0006 says so.
func TestUnderAdvisoryFencingOneWriterAloneLosesNothing(t *testing.T) {
	t.Parallel()
	if replayed(t, play{alone: true}) {
		return
	}
	stage := newStage(t)
	for seed := range modelSeeds(t) / 5 {
		if told := stage.play(t, seed, play{alone: true}); told.fault != "" {
			t.Fatal(stage.simplest(t, told))
		}
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
		w.narrate("late request never lands: %s", w.late[i])
		w.late = append(w.late[:i:i], w.late[i+1:]...)
	}
}
