package syncer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"
)

// event is one line of a story. It is made into words only when somebody reads the story, which of ten thousand is one.
type event struct {
	at   time.Duration // since the story began, on the clock of the world
	form string
	args []any
}

func (e event) String() string {
	return fmt.Sprintf("%9s  ", e.at.Round(time.Second)) + fmt.Sprintf(e.form, e.args...)
}

// tell adds a line about an actor, who is its first argument. The arguments must not change afterwards.
func (w *world) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told(format, args...)
}

// narrate adds a line of the scheduler's own.
func (w *world) narrate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told(format, args...)
	w.ordered = len(w.story)
}

func (w *world) told(format string, args ...any) {
	w.story = append(w.story, event{at: time.Since(w.began), form: format, args: args})
}

// rest waits until everybody waits, and puts into order what several actors have told at the same time.
func (w *world) rest() {
	synctest.Wait()
	for _, h := range w.hosts {
		if h.life != nil {
			h.life.upkeep.settle()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.story[w.ordered:], func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.actor(), b.actor()))
	})
	w.ordered = len(w.story)
}

func (e event) actor() string {
	name, _ := e.args[0].(string)
	return name
}

// tale is how a story went.
type tale struct {
	seed   uint64
	play   play
	story  []event
	fault  string // the first violation; "" = none
	faults int    // how many things went wrong in it
	calls  int
	calm   time.Duration // from the end of the faults to the last proof that all is well again
}

// String is the story of a violation, and how to see it again.
func (t tale) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "VIOLATION: %s\n\n", t.fault)
	fmt.Fprintf(&b, "again:  CAIRN_MODEL_SEED=%d CAIRN_MODEL_FAULTS=%d go test ./core/syncer -run '^%s$' -count 1 -v\n", t.seed, t.faults, t.play.test())
	fmt.Fprintf(&b, "story of seed %d, in which %d things go wrong (A and B push, S stands by, R reads; A2 is the second life of A):\n\n", t.seed, t.faults)
	for _, e := range t.story {
		b.WriteString(e.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// briefly names an object as a person would.
func briefly(key string) string {
	short := strings.TrimPrefix(key, modelPrefix+"/")
	if short == "" {
		return "all"
	}
	if strings.HasPrefix(short, "probe/") {
		return "probe" // its name is random
	}
	parts := strings.Split(strings.TrimSuffix(strings.TrimSuffix(short, ".zst"), ".json"), "/")
	for i, part := range parts {
		if len(part) == 20 && strings.Trim(part, "0123456789") == "" {
			part = strings.TrimLeft(part, "0")
		}
		parts[i] = part[:min(len(part), 12)]
	}
	return strings.Join(parts, "/")
}

// brieflyAll names several.
func brieflyAll(keys []string) string {
	names := slices.Clone(keys)
	for i, key := range names {
		names[i] = briefly(key)
	}
	return strings.Join(names, " ")
}
