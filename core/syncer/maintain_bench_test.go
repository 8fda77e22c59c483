package syncer

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cairnsync/cairn/core/repository"
)

// keeps sets a policy.
func keeps(r repository.Retention) func(*Config) {
	return func(c *Config) { c.Retention = &r }
}

// pushes makes checkpoints of the steps from first to last and pushes each; every one has a file of its own, one that changes now and then, and one
// that stays.
func (b *bench) pushes(w *Worker, first, last uint64) {
	b.t.Helper()
	for step := first; step <= last; step++ {
		b.mustPush(w, b.publish(step, b.filesOf(step)), Periodic)
	}
}

func (b *bench) filesOf(step uint64) map[string]string {
	return map[string]string{
		"own": incompressible(byte(step), 300) + fmt.Sprint(step), "now and then": incompressible(byte(step/5), 500), "stays": incompressible(250, 700),
	}
}

func (b *bench) mustMaintain(w *Worker, req MaintainRequest) MaintainReport {
	b.t.Helper()
	r, err := w.Maintain(b.t.Context(), req)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// wantRestorable restores every commit that a reader lists, and wants them to be of these steps.
func (b *bench) wantRestorable(steps ...uint64) {
	b.t.Helper()
	var got []uint64
	for _, c := range b.listed() {
		got = append(got, c.Checkpoint.Step)
		if content := b.content(b.commits()[c.Number]); !maps.Equal(content, b.filesOf(c.Checkpoint.Step)) {
			b.t.Fatalf("commit %d (step %d) does not restore what was pushed", c.Number, c.Checkpoint.Step)
		}
	}
	if !slices.Equal(got, steps) {
		b.t.Fatalf("listed are steps %v, want %v", got, steps)
	}
}

// listed is what a reader sees.
func (b *bench) listed() []CommitInfo {
	b.t.Helper()
	r, err := NewReader(ReaderConfig{Target: "offsite", Prefix: "strikes", Store: Direct(b.mem), Now: time.Now, RetryBudget: time.Nanosecond})
	if err != nil {
		b.t.Fatal(err)
	}
	list, err := r.ListCommits(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

// packsStored are the ids of the packs in the store.
func (b *bench) packsStored() []repository.PackID {
	var ids []repository.PackID
	for _, key := range b.mem.Keys() {
		if id, err := repository.ParsePackKey("strikes", key); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// wantNoOrphans wants exactly the packs that the commits name.
func (b *bench) wantNoOrphans() {
	b.t.Helper()
	named := map[repository.PackID]bool{}
	for _, c := range b.commits() {
		for _, id := range c.Packs {
			named[id] = true
		}
	}
	stored := b.packsStored()
	if len(stored) != len(named) || slices.ContainsFunc(stored, func(id repository.PackID) bool { return !named[id] }) {
		b.t.Fatalf("%d packs are stored and %d are named", len(stored), len(named))
	}
}

// seconds is a clock that tests set.
type seconds struct{ now time.Time }

func (s *seconds) set(c *Config) { c.Now = func() time.Time { return s.now } }
