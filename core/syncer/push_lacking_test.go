package syncer

import (
	"strings"
	"testing"
)

// Whoever deletes packs by hand is told by verify; a push must not build on what is not there, nor call such a commit a success.
func TestPacksThatWereDeletedWhileTheHostWasDownArePushedAgain(t *testing.T) {
	for name, again := range map[string]bool{"of the checkpoint that is asked for": true, "of the one before": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			same := strings.Repeat("a file that does not change ", 1000)
			id := b.publish(1, map[string]string{"same": same, "f": "one"})
			b.mustPush(b.worker(), id, Requested)
			step := uint64(1)
			for _, key := range b.mem.Keys() {
				if strings.Contains(key, "/pack/") {
					b.remove(key)
				}
			}
			if !again {
				id, step = b.publish(2, map[string]string{"same": same, "f": "two"}), 2
			}
			b.mustPush(b.restart(), id, Requested)
			newest := b.newest()
			if newest.Number != 4 || newest.Checkpoint.Step != step || b.content(newest)["same"] != same {
				t.Errorf("commit %d, step %d", newest.Number, newest.Checkpoint.Step)
			}
		})
	}
}

// The usual restart costs one listing for that, and pushes nothing twice.
func TestARestartOnAWholeRepositoryPushesNothingTwice(t *testing.T) {
	b := newBench(t)
	id := b.publish(1, map[string]string{"f": "one"})
	b.mustPush(b.worker(), id, Requested)
	before := len(b.mem.Keys())
	var calls []string
	w := b.restart()
	b.store.Before = record(&calls)
	b.mustPush(w, id, Requested)
	if got := strings.Count(strings.Join(calls, "\n"), "list strikes/pack/"); got != 1 || len(b.mem.Keys()) != before {
		t.Errorf("%d listings of packs, %d objects more", got, len(b.mem.Keys())-before)
	}
}
