package syncer

import (
	"slices"
	"strings"
	"time"

	"github.com/cairnsync/cairn/core/repository"
)

// stored: an object was created. Commits and gc objects are where the protocol can go wrong.
func (c *checker) stored(w *world, call *gateCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.wiped {
		return
	}
	switch key := call.key; {
	case strings.HasPrefix(key, c.prefixes.epoch):
		c.claimed(w, call)
	case strings.HasPrefix(key, c.prefixes.commit):
		n, err := repository.ParseCommitKey(modelPrefix, key)
		if err != nil {
			c.violated("%s: %v", call, err)
			return
		}
		c.committedAt(w, call, n)
	case strings.HasPrefix(key, c.prefixes.gc):
		k, err := repository.ParseGCKey(modelPrefix, key)
		if err != nil {
			c.violated("%s: %v", call, err)
			return
		}
		c.retired(w, call, k)
	}
}

// displaced says whether another storage path has sealed the line since the one that made the newest commit, and gives the head by which it is known.
func (c *checker) displaced(writer repository.Writer) (head uint64, is bool) {
	newest, top := c.newest(), c.exist[c.head]
	return c.head, newest != nil && top != nil && newest.Writer.ID == writer.ID && top.Writer.ID != writer.ID
}

// began: a worker of this storage path is started; what it finds there tells it whether it may claim.
func (c *checker) began(l *life) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if head, is := c.displaced(l.worker.cfg.Writer); is && !l.activated {
		l.displacedAt = head
	}
}

// claimed: an epoch has landed. Whoever was displaced when it was started, and is no standby that the operator has activated, does not claim while the line
// stands as it stood then.
func (c *checker) claimed(w *world, call *gateCall) {
	for _, h := range w.hosts {
		if !w.rolled && h.machine == call.on && h.alive() && h.actor() == call.actor && h.life.displacedAt > 0 && h.life.displacedAt == c.head {
			c.violated("%s: it claims, and another was activated in its place before it was started", call)
		}
	}
}

// committedAt: a commit has landed. It stands on the line, in its order, whole, and it is a state that the circuit had.
func (c *checker) committedAt(w *world, call *gateCall, n uint64) {
	m := c.commit(w.mem, n)
	c.exist[n] = m
	if c.ever[n] == nil || w.rolled {
		c.ever[n] = m
	}
	if m.Kind == repository.KindCheckpoint {
		c.ids[m.Checkpoint.ID] = true
	}
	if c.deleted[n] && !c.gc.Visible(n) {
		return // a ghost: a request of long ago, under a number that is retired
	}
	switch {
	case w.rolled && n > c.head+1: // it was on its way, and what it stands on is lost: it is never told
		c.head, c.epoch = n, m.Epoch
		return
	case w.lies && n <= c.head: // it takes the place of the one before
	case n != c.head+1:
		c.violated("%s: commit %d lands, and the newest was %d", call, n, c.head)
	case m.Epoch < c.epoch:
		c.violated("%s: commit %d of epoch %d lands above one of epoch %d: two writers make progress", call, n, m.Epoch, c.epoch)
	case c.exist[n-1] != nil && m.Parent != repository.Sum(c.exist[n-1].stored):
		c.violated("%s: commit %d does not follow commit %d", call, n, n-1)
	}
	c.head, c.epoch = max(c.head, n), m.Epoch
	if m.Kind != repository.KindCheckpoint {
		return
	}
	if m.fault != nil && w.rolled {
		return // likewise
	}
	if m.fault != nil {
		c.violated("%s: commit %d cannot be restored: %v", call, n, m.fault)
	}
	for _, p := range m.Packs {
		if _, ok := w.mem.Content(repository.PackKey(modelPrefix, p)); !ok {
			c.violated("%s: commit %d names pack %s, which is not there", call, n, p)
		}
	}
	c.checkAcked(call.String())
}

// retired: a gc object has landed, and what it hides is gone for every reader. It may not hide what the policy or a pin keeps.
func (c *checker) retired(w *world, call *gateCall, k uint64) {
	data, _ := w.mem.Content(call.key)
	gc, err := repository.DecodeGC(k, data)
	before := c.gc
	switch {
	case k < before.Number && !w.lies:
		return // one of long ago comes to life again, below the one that holds
	case err != nil || k > before.Number+1 || k <= before.Number && !w.lies:
		c.violated("%s: gc %d after gc %d (%v)", call, k, before.Number, err)
		return
	}
	if whole := c.newestWhole(); whole != nil && !gc.Visible(whole.Number) {
		c.violated("%s: commit %d, the newest that is whole, is retired", call, whole.Number)
	}
	c.checkGap(w, call, gc)
	c.gc = gc
	newer, gone := 0, 0
	for n := c.head; n > 0; n-- {
		m := c.exist[n]
		if m == nil || m.Kind != repository.KindCheckpoint || !before.Visible(n) {
			continue
		}
		if !gc.Visible(n) {
			gone++
			c.checkRetired(w, call, m, newer)
		}
		newer++
	}
	if w.policy != nil && w.policy.MaxDelete > 0 && gone > w.policy.MaxDelete && !w.calm {
		c.violated("%s: %d commits are retired at once, max_delete is %d", call, gone, w.policy.MaxDelete)
	}
	c.checkAcked(call.String())
}

// checkRetired: nothing keeps a commit that gc hides.
func (c *checker) checkRetired(w *world, call *gateCall, m *modelCommit, newer int) {
	age := c.gc.Created.Sub(m.Created)
	switch {
	case w.policy == nil:
		c.violated("%s: commit %d is retired, where everything is to be kept", call, m.Number)
		return
	case newer < max(1, w.policy.MinCount):
		c.violated("%s: commit %d is retired, and only %d checkpoints are newer", call, m.Number, newer)
	case w.policy.MinAge > 0 && age < w.policy.MinAge:
		c.violated("%s: commit %d is retired at the age of %s", call, m.Number, age.Round(time.Millisecond))
	}
	if n := c.proven[c.gc.Writer]; n == m.Number && !w.rolled { // who finds out that it was put back forgets its proofs
		c.violated("%s: commit %d is retired, which this writer has proven to restore", call, n)
	}
	for name, n := range c.pins {
		if n == m.Number {
			c.violated("%s: commit %d is retired, though pin %q is acknowledged", call, n, name)
		}
	}
}

// deleting: these keys are about to be deleted. None of them may be needed by anybody.
func (c *checker) deleting(w *world, call *gateCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.wiped {
		return
	}
	for _, key := range call.keys {
		if _, there := w.mem.Content(key); !there {
			continue
		}
		switch {
		case strings.HasPrefix(key, c.prefixes.commit):
			n, _ := repository.ParseCommitKey(modelPrefix, key) // it was stored, so it parses
			if c.gc.Visible(n) {
				c.violated("%s: commit %d is deleted, and readers still see it", call, n)
			}
			delete(c.exist, n)
			c.deleted[n] = true
		case strings.HasPrefix(key, c.prefixes.gc):
			if k, _ := repository.ParseGCKey(modelPrefix, key); k >= c.gc.Number {
				c.violated("%s: gc %d is the one that holds", call, k)
			}
		case strings.HasPrefix(key, c.prefixes.pack):
			c.deletingPack(call, key)
		case strings.HasPrefix(key, c.prefixes.pin), strings.HasPrefix(key, repository.ProbePrefix(modelPrefix)):
		default:
			c.violated("%s: nobody may delete %s", call, briefly(key))
		}
	}
}

// deletingPack: no commit that exists names the pack. A ghost's packs went when it was retired.
func (c *checker) deletingPack(call *gateCall, key string) {
	id, err := repository.ParsePackKey(modelPrefix, key)
	if err != nil {
		c.violated("%s: %v", call, err)
		return
	}
	for n, m := range c.exist {
		if slices.Contains(m.Packs, id) && (!c.deleted[n] || c.gc.Visible(n)) {
			c.violated("%s: pack %s is deleted, and commit %d names it", call, briefly(key), n)
		}
	}
}
