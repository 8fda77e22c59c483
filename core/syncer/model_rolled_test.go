package syncer

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// TestWhatIsToldRestoresAlsoWhenTheStoreIsPutBack plays the stories of the model on a store that is put back to an older copy of itself while hosts run, in which
// FORMAT.json and the epochs are the same. That loses commits; what remains to be kept is that nothing is told as committed that does not restore at that moment,
// that nothing of what is left is deleted or hidden while it is needed, and that the newest writer makes it whole again.
//
// What was on its way to the store when it was put back never lands, and so does a commit that comes late and would stand on nothing: under a number that
// is used again it would make ruins, as in a store that was wiped.
//
// CASES A17
func TestWhatIsToldRestoresAlsoWhenTheStoreIsPutBack(t *testing.T) {
	if replayed(t, play{rolls: true}) {
		return
	}
	t.Parallel()
	stage := newStage(t)
	for seed := range modelSeeds(t) / 5 {
		if told := stage.play(t, seed, play{rolls: true}); told.fault != "" {
			t.Fatal(stage.simplest(t, told))
		}
	}
}

// ruined says that the store has lost what it had been given.
func (w *world) ruined() bool { return w.wiped || w.rolled }

// ages copies the store now and then, and puts it back to the copy.
func (w *world) ages() bool {
	if w.copy == nil || w.rng.IntN(3) == 0 || !w.sameEpochs() {
		w.copy = map[string][]byte{}
		for _, key := range w.mem.Keys() {
			w.copy[key], _ = w.mem.Content(key)
		}
		return false
	}
	if !w.trouble.spend() {
		return false
	}
	w.narrate("THE STORE IS PUT BACK to an older copy")
	_ = w.mem.Delete(context.Background(), w.mem.Keys()) // far fewer than MaxDelete, and memory does not fail
	for _, key := range slices.Sorted(maps.Keys(w.copy)) {
		w.mem.Plant(key, w.copy[key])
	}
	w.mu.Lock()
	w.era++
	w.mu.Unlock()
	w.rolled = true
	w.changed.Store(true)
	w.checker.putBack(w)
	return true
}

// sameEpochs says that the copy has the epochs that the store has; one that lacks some is as one that was wiped.
func (w *world) sameEpochs() bool {
	format := repository.FormatKey(modelPrefix)
	if _, now := w.mem.Content(format); !now || w.copy[format] == nil {
		return false
	}
	for _, key := range w.mem.Keys() {
		if strings.HasPrefix(key, w.checker.prefixes.epoch) && w.copy[key] == nil {
			return false
		}
	}
	return true
}

// misses says of a change that the store never gets to see it.
func (w *world) misses(c *gateCall) bool {
	if !w.rolled {
		return false
	}
	n, err := repository.ParseCommitKey(modelPrefix, c.key)
	gap := c.put != nil && err == nil && n > w.checker.head+1
	return c.era < w.era || gap && (c.late || c.abandoned || w.checker.head != w.checker.headThen)
}

// putBack takes the store as it is now for what there is. What was reported is lost.
func (c *checker) putBack(w *world) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := c.ids
	ever := c.ever
	c.forget()
	c.ids, c.ever = ids, ever
	c.era++
	var err error
	if c.gc, err = highestGC(context.Background(), w.mem); err != nil {
		c.violated("gc: %v", err)
	}
	numbers, err := numbersOf(context.Background(), w.mem, c.prefixes.commit, repository.ParseCommitKey)
	if err != nil {
		c.violated("list commits: %v", err)
	}
	for _, n := range numbers {
		m := c.commit(w.mem, n)
		c.exist[n], c.ever[n], c.head, c.epoch = m, m, n, m.Epoch
	}
	for n := range c.head {
		if !c.gc.Visible(n) && c.exist[n] == nil {
			c.deleted[n] = true
		}
	}
	c.headThen = c.head
}

// ofNow are the marks that the store of now has been given.
func (c *checker) ofNow(marks []mark) []mark {
	return slices.DeleteFunc(slices.Clone(marks), func(m mark) bool { return m.era != c.era })
}

// checkHeld: success is about a commit that readers see and that restores.
func (c *checker) checkHeld(mem *sdktest.Mem, actor string, cp *heldCheckpoint) {
	c.decoded = map[string]*modelCommit{} // what was whole when it landed may have lost a pack since
	for _, m := range c.visible(mem) {
		if m.Kind == repository.KindCheckpoint && m.Checkpoint.ID == cp.manifest.ID && m.fault == nil {
			return
		}
	}
	c.violated("%s reports success, and no whole commit holds its checkpoint", actor)
}

// newestWhole is the newest checkpoint commit that readers see and that restores.
func (c *checker) newestWhole() *modelCommit {
	for n := c.head; n > 0; n-- {
		if m := c.exist[n]; m != nil && m.Kind == repository.KindCheckpoint && m.fault == nil && c.gc.Visible(n) {
			return m
		}
	}
	return nil
}

// checkGap: a gc object that nobody has asked for does not speak of a number that is missing.
func (c *checker) checkGap(w *world, call *gateCall, gc repository.GC) {
	for _, h := range w.hosts {
		if h.machine == call.on && h.life != nil && strings.HasPrefix(call.actor, h.actor()+" ") && h.life.upkeep.asked.Load() {
			return
		}
	}
	for n := c.gc.UpTo + 1; n <= gc.UpTo; n++ {
		if c.exist[n] == nil {
			c.violated("%s: nobody has asked for it, and commit %d, which is missing, is missed no more", call, n)
		}
	}
}
