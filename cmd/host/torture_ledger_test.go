//go:build torture

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
)

// plantLine plants commits in a folder, each on the one before it: a seal for each new epoch, a checkpoint for each further entry of the same.
func plantLine(t *testing.T, target string, epochs ...uint64) []uuid.UUID {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var parent repository.Digest
	var before uint64
	ids := make([]uuid.UUID, len(epochs))
	for i, epoch := range epochs {
		c := &repository.Commit{
			Number: uint64(i + 1), Kind: repository.KindSeal, Epoch: epoch, Writer: repository.Writer{ID: uuid.UUID{1: byte(epoch)}, Incarnation: uuid.UUID{2: byte(epoch)}},
			Parent: parent, Created: now, WrittenBy: "cairn test",
		}
		if epoch == before {
			ids[i] = uuid.Must(uuid.NewV7())
			c.Kind = repository.KindCheckpoint
			c.Checkpoint = repository.Checkpoint{
				ID: ids[i], Step: 1, Created: now, Incarnation: uuid.New(), Identity: repository.Identity{Kind: "sql"},
				History: repository.History{{Lineage: uuid.New(), UpTo: 1}},
			}
		}
		stored, err := repository.EncodeCommit(c)
		check(t, err)
		path := filepath.Join(target, repository.CommitKey(pipe, c.Number))
		check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		check(t, os.WriteFile(path, stored, 0o600))
		parent, before = repository.Sum(stored), epoch
	}
	return ids
}

func plantGC(t *testing.T, target string, upTo uint64, kept ...uint64) {
	t.Helper()
	stored, err := repository.EncodeGC(repository.GC{
		Number: 1, Epoch: 1, Writer: repository.Writer{ID: uuid.New(), Incarnation: uuid.New()}, UpTo: upTo, Kept: kept,
		Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), WrittenBy: "cairn test",
	})
	check(t, err)
	path := filepath.Join(target, repository.GCKey(pipe, 1))
	check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	check(t, os.WriteFile(path, stored, 0o600))
}

func TestTortureTheLedgerSeesEachWayToLoseACommit(t *testing.T) {
	commit := func(target string, n uint64) string { return filepath.Join(target, repository.CommitKey(pipe, n)) }
	for _, row := range []struct {
		name string
		do   func(t *testing.T, target string, l *ledger)
		say  string // "" = no fault
	}{
		{"nothing is wrong", func(*testing.T, string, *ledger) {}, ""},
		{"a commit vanishes", func(t *testing.T, target string, _ *ledger) { check(t, os.Remove(commit(target, 2))) }, "commit 2 is gone"},
		{"the newest vanishes", func(t *testing.T, target string, _ *ledger) { check(t, os.Remove(commit(target, 5))) }, "commit 5 is gone"},
		{"a commit is retired", func(t *testing.T, target string, _ *ledger) {
			plantGC(t, target, 4, 3)
			check(t, os.Remove(commit(target, 2)))
		}, ""},
		{"a commit is deleted that retention keeps", func(t *testing.T, target string, _ *ledger) {
			plantGC(t, target, 4, 3)
			check(t, os.Remove(commit(target, 3)))
		}, "commit 3 is gone"},
		{"a commit is written again", func(t *testing.T, target string, l *ledger) {
			plantLine(t, target, 1, 1, 1, 2, 2)
			l.unchanged()
		}, "is not what it was"},
		{"another line goes on above", func(t *testing.T, target string, _ *ledger) {
			kept := map[string][]byte{}
			for n := uint64(1); n <= 5; n++ {
				text, err := os.ReadFile(commit(target, n))
				check(t, err)
				kept[commit(target, n)] = text
			}
			plantLine(t, target, 1, 1, 1, 2, 2, 2)
			for name, text := range kept {
				check(t, os.WriteFile(name, text, 0o600))
			}
		}, "commit 6 does not stand on commit 5"},
		{"a commit of a lower epoch comes late", func(t *testing.T, target string, l *ledger) {
			late := t.TempDir()
			plantLine(t, late, 2, 2, 1)
			l.dir = late
			l.commits, l.head = map[uint64]noted{}, 0
		}, "of epoch 1, above commit 2 of epoch 2"},
		{"a seal inside a reign", func(t *testing.T, _ string, l *ledger) {
			l.commits[5].Kind = repository.KindSeal
			l.joins(4, 5)
		}, "is a seal"},
		{"a host names what never was", func(_ *testing.T, _ string, l *ledger) {
			l.judge("alpha", []claim{{"committed", uuid.Must(uuid.NewV7())}})
		}, "host alpha: committed names checkpoint"},
	} {
		t.Run(row.name, func(t *testing.T) {
			target := t.TempDir()
			ids := plantLine(t, target, 1, 1, 1, 2, 2)
			l := newLedger(target)
			l.judge("alpha", []claim{{"committed", ids[1]}})
			if len(l.faults) > 0 {
				t.Fatalf("at the beginning: %q", l.faults)
			}
			row.do(t, target, l)
			l.look()
			if row.say == "" && len(l.faults) > 0 || row.say != "" && !strings.Contains(strings.Join(l.faults, "\n"), row.say) {
				t.Errorf("faults %q, want %q", l.faults, row.say)
			}
		})
	}
}
