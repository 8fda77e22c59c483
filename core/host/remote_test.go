package host

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/core/syncer"
)

func TestARemoteListShowsEachNumberThatACheckpointWasCommittedAs(t *testing.T) {
	first, second := uuid.UUID{1}, uuid.UUID{2}
	commit := func(number uint64, id uuid.UUID, step uint64) syncer.CommitInfo {
		return syncer.CommitInfo{Number: number, Checkpoint: repository.Checkpoint{ID: id, Step: step}}
	}
	m := &merger{}
	m.add("onsite", []syncer.CommitInfo{commit(2, first, 10), commit(3, second, 20)}, nil)
	m.add("offsite", []syncer.CommitInfo{commit(11, second, 20), commit(12, second, 20), commit(2, first, 10)}, nil) // 12 repaired 11

	type row struct {
		id     uuid.UUID
		number uint64
		where  string
	}
	var got []row
	for _, v := range m.views() {
		for _, target := range v.Where {
			got = append(got, row{v.UUID, v.Number, target})
		}
	}
	want := []row{{first, 2, "onsite"}, {first, 2, "offsite"}, {second, 3, "onsite"}, {second, 11, "offsite"}, {second, 12, "offsite"}}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	if len(m.views()) != 4 {
		t.Errorf("%d rows, want one for the commit 2 of both targets and one for each other", len(m.views()))
	}
}

func TestAListThatLacksWhatWasCommittedIsNoList(t *testing.T) {
	block := config.Sync{Target: "t", Prefix: "p"}
	was := &syncer.CommitRef{Number: 7, Step: 70}
	committed := syncer.Status{Committed: was}
	lost := syncer.Status{Lost: was, Condition: syncer.Held, Reason: `target "t": held: commit 7 was below "p" and nothing is there now`}
	upTo := func(n uint64) []syncer.CommitInfo {
		return []syncer.CommitInfo{{Number: 1}, {Number: n, Checkpoint: repository.Checkpoint{Step: n * 10}}}
	}
	for name, row := range map[string]struct {
		known   syncer.Status
		commits []syncer.CommitInfo
		failed  error
		says    []string // empty = it is a list, or another error
	}{
		"nothing was ever committed":                       {known: syncer.Status{}},
		"it is there":                                      {known: committed, commits: upTo(7)},
		"it was retired and a newer one is there":          {known: committed, commits: upTo(9)},
		"nothing is there":                                 {known: committed, says: []string{`commit 7`, "is below \"p\" no more", "no checkpoint is listed"}},
		"an older copy is there":                           {known: committed, commits: upTo(5), says: []string{"commit 7", "commit 5, of step 50"}},
		"a push has met it":                                {known: lost, says: []string{"held: commit 7 was below"}},
		"a push has met it and it is back":                 {known: lost, commits: upTo(7)},
		"it cannot be read":                                {known: committed, failed: errors.New("down")},
		"it cannot be read and was lost":                   {known: lost, failed: errors.New("down")},
		"a push has met it and what is left is a torn one": {known: lost, failed: repository.ErrCorrupt, says: []string{"held: commit 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := lostOn(block, row.known, row.commits, row.failed, syncer.Commands{})
			if (err != nil) != (len(row.says) > 0) {
				t.Fatalf("got %v", err)
			}
			if err != nil {
				contains(t, err.Error(), append(row.says, "cairn remote verify")...)
			}
		})
	}
}
