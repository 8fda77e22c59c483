package host

import (
	"slices"
	"testing"

	"github.com/google/uuid"

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
