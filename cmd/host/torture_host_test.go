//go:build torture

package main

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// hitsPerPoint is how often a life ends at each named point.
const hitsPerPoint = 5

// kills are the lives of a torture that end at random moments: 200, or $CAIRN_TORTURE_KILLS.
func kills(t *testing.T) int {
	if text := os.Getenv("CAIRN_TORTURE_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		check(t, err)
		return n
	}
	return 200
}

// TestTortureKillTheHost kills the host again and again, at random moments and at the named points of its durable changes, while 200,000
// records come in by a file and by HTTP. Every other life begins on an empty data folder, restored from the target.
// CASES A8, A15
func TestTortureKillTheHost(t *testing.T) {
	t.Parallel()
	plugins := buildPlugins(t)
	chance := draw(t)
	s := settings{file: 100_000, http: 100_000}
	want := undisturbed(t, plugins, s)

	w := newWorld(t, plugins, s)
	observer, seen := observe(t, w.url, w.target)
	end := w.send()
	k := &killer{world: w, chance: chance, hits: map[string]int{}}
	k.untilCommitted()
	k.torture(kills(t))
	end()
	k.report()
	w.start("")
	w.finish(want)
	seen()
	if len(observer.named) < 10 {
		t.Errorf("status named only %d ids: pushes hardly happened", len(observer.named))
	}
	for failure := range observer.failures {
		t.Errorf("a push failed, of a plugin that is well: %s", failure)
	}
}

// killer ends lives.
type killer struct {
	*world

	chance  *rand.Rand
	hits    map[string]int // lives that ended at each point
	random  int            // lives that ended at a random moment
	atStart int            // of them, before the pipeline ran
	missed  int            // lives that did not come to their point
	span    time.Duration  // how long a start takes; random moments lie within so long of its begin or of its end
	lives   int
	within  time.Duration // how long a life may take to come to its point; 0 = 20 seconds, after which it is repeated
}

// untilCommitted lets a first life come to its first commit, so that there is something to restore.
func (k *killer) untilCommitted() {
	k.t.Helper()
	k.upTo(0.001)
	begun := time.Now()
	k.start("")
	k.eventually("the pipeline runs", k.running)
	k.span = time.Since(begun)
	k.eventually("a first commit", func() bool { return k.offsite().Committed != nil })
	k.kill()
}

// torture lives and dies until n lives have ended at random moments and each point has ended its share, alternately on the same and on
// an empty data folder.
func (k *killer) torture(n int) {
	ends := k.shuffled(n)
	k.t.Logf("%d lives; a start takes %v", len(ends), k.span.Round(time.Millisecond))
	planned, most := len(ends), 2*len(ends)
	for i := 0; len(ends) > 0 && i < most; i++ {
		// Each life gets new records, also one more for a point that was missed: without them there is nothing to push.
		k.upTo(0.8*float64(planned-len(ends))/float64(planned) + 0.2*float64(i+1)/float64(most))
		empty := i%2 == 1
		if empty {
			k.freshData()
		}
		at := slices.IndexFunc(ends, func(point string) bool { return empty || !slices.Contains(pointsOfARestore(), point) })
		if at < 0 {
			continue // only points of a restore are left
		}
		if point := ends[at]; k.live(point, empty) {
			ends = slices.Delete(ends, at, at+1)
		} else {
			ends = append(slices.Delete(ends, at, at+1), point) // again, later
		}
	}
	if len(ends) > 0 {
		k.t.Errorf("never came to %v", ends)
	}
}

// shuffled are the ends of all lives: a point, or "" for a random moment.
func (k *killer) shuffled(n int) []string {
	ends := make([]string, n)
	for _, point := range append(pointsOfALife(), pointsOfARestore()...) {
		ends = append(ends, slices.Repeat([]string{point}, hitsPerPoint)...)
	}
	k.chance.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
	return ends
}

// live is one life. It answers whether that ended as it was to end.
func (k *killer) live(point string, empty bool) bool {
	k.lives++
	if point == "" {
		k.start("")
		k.randomMoment()
		return true
	}
	nth := 1
	if empty && !strings.HasPrefix(point, "start.") && !strings.HasPrefix(point, "push.") {
		nth += k.chance.IntN(2) // the pull of the restore publishes too
	}
	k.start(fmt.Sprintf("%s:%d", point, nth))
	if !k.ended(cmp.Or(k.within, 20*time.Second)) {
		k.t.Logf("life %d did not come to %s:%d: %s, %s", k.lives, point, nth, k.view().State, k.view().Doing)
		k.missed++
		k.kill()
		return false
	}
	if !k.host.killedItself() {
		k.t.Fatalf("life %d ended by itself on the way to %s:%d: %v", k.lives, point, nth, k.host.err)
	}
	k.host = nil
	k.hits[point]++
	return true
}

// randomMoment kills at one, wherever the host is then: half of the lives while it starts or soon after, the others at work.
func (k *killer) randomMoment() {
	if k.chance.IntN(2) == 0 {
		k.eventually("the pipeline runs", k.running)
	}
	if k.ended(time.Duration(k.chance.Int64N(int64(k.span)))) {
		k.t.Fatalf("life %d ended by itself: %v", k.lives, k.host.err)
	}
	running := k.running()
	k.kill()
	k.random++
	if !running {
		k.atStart++
	}
}

func (k *killer) report() {
	k.t.Logf("%d lives: %d killed at random moments (%d of them before the pipeline ran), %d did not come to their point",
		k.lives, k.random, k.atStart, k.missed)
	for _, point := range slices.Sorted(maps.Keys(k.hits)) {
		k.t.Logf("  killed at %-26s %d times", point, k.hits[point])
	}
	k.t.Logf("the sender asked %d times where to resume", k.sender.resumed)
}

// TestTortureKillTheHostAtTheFirstPush kills the host while it creates the repository, each time a new one.
func TestTortureKillTheHostAtTheFirstPush(t *testing.T) {
	t.Parallel()
	plugins := buildPlugins(t)
	s := settings{file: 1000, http: 1000}
	want := undisturbed(t, plugins, s)
	points := []string{"push.probe.begin", "push.probe.done", "push.format.begin", "push.format.done", "push.epoch.begin", "push.epoch.done"}
	for round := range hitsPerPoint {
		t.Run(strconv.Itoa(round+1), func(t *testing.T) {
			w := newWorld(t, plugins, s)
			_, seen := observe(t, w.url, w.target)
			end := w.send()
			k := &killer{world: w, hits: map[string]int{}, within: patience}
			for i, point := range points {
				w.upTo(float64(i+1) / float64(len(points)+1))
				if (round+i)%2 == 1 {
					w.freshData()
				}
				if !k.live(point, false) {
					t.Errorf("never came to %s", point)
				}
			}
			end()
			k.report()
			w.start("")
			w.finish(want)
			seen()
		})
	}
}
