package syncer

import (
	"strings"
	"testing"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
)

func TestWhatATakeoverTakes(t *testing.T) {
	commit := func(number, step uint64) *CommitInfo {
		return &CommitInfo{Number: number, Checkpoint: repository.Checkpoint{ID: idOf(1000 + step), Step: step}}
	}
	have := &checkpoint.Followed{Target: "t", Prefix: "p", Number: 7, Checkpoint: idOf(1070), Step: 70}
	seeded := &checkpoint.Followed{Target: "s", Prefix: "q", Number: 7, Checkpoint: idOf(1070), Step: 70, Seed: true}
	own := func(c *CommitInfo) TakeoverFacts {
		return TakeoverFacts{Have: have, Origin: c, Newest: c, Target: "t", Prefix: "p"}
	}
	other := func(c, origin *CommitInfo) TakeoverFacts {
		return TakeoverFacts{Have: have, Origin: origin, Newest: c, Target: "u", Prefix: "p"}
	}
	passed := other(commit(3, 60), nil)
	passed.Passed = true
	pinned := own(commit(5, 50))
	pinned.Pinned = idOf(1050)
	moved := own(commit(5, 50))
	moved.Prefix, moved.Origin = "elsewhere", nil
	for _, row := range []struct {
		name  string
		facts TakeoverFacts
		takes bool
		fails string
	}{
		{name: "with nothing here, the newest", facts: TakeoverFacts{Newest: commit(1, 1), Target: "t", Prefix: "p"}, takes: true},
		{name: "before a seed's copy, one of our own", facts: TakeoverFacts{Have: seeded, Newest: commit(1, 1), Target: "t", Prefix: "p"}, takes: true},
		{name: "the copy itself", facts: own(commit(7, 70)), takes: true},
		{name: "a newer commit", facts: own(commit(8, 80)), takes: true},
		{name: "an adopted commit of a lower step", facts: own(commit(9, 40)), takes: true},
		{name: "the checkpoint that is asked for by id", facts: pinned, takes: true},
		{name: "not one of a repository that went back", facts: own(commit(5, 50)), fails: "put back"},
		{name: "nor one of a higher step there", facts: own(commit(5, 90)), fails: "put back"},
		{name: "a newer commit of another target", facts: other(commit(3, 80), nil), takes: true},
		{name: "a newer commit of another target beside one that went back", facts: other(commit(3, 80), commit(5, 50)), takes: true},
		{name: "not an older commit of another target beside one that went back", facts: other(commit(3, 60), commit(5, 50)), fails: "put back"},
		{name: "another target's where that of the copy has gone on", facts: other(commit(3, 60), commit(9, 40)), takes: true},
		{name: "the copy, which has passed through the other target's", facts: passed},
		{name: "not an older commit of another history", facts: other(commit(3, 60), nil), fails: "older than the copy"},
		{name: "nor below another prefix", facts: moved, fails: "older than the copy"},
	} {
		t.Run(row.name, func(t *testing.T) {
			takes, err := TakesNewest(row.facts)
			switch {
			case row.fails != "":
				if err == nil || !strings.Contains(err.Error(), row.fails) || !strings.Contains(err.Error(), "is kept") {
					t.Errorf("error %v", err)
				}
			case err != nil || takes != row.takes:
				t.Errorf("%v, %v", takes, err)
			}
		})
	}
}
