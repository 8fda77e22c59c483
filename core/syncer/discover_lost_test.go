package syncer

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/repository"
)

// CASES A17: the newest commits were deleted by hand under retention, and one that a pin keeps is all that is left.
func TestAReaderDoesNotTakeAnOldKeptCommitForTheNewest(t *testing.T) {
	b, _, before := beheaded(t)
	r, err := NewReader(ReaderConfig{Target: "offsite", Prefix: "strikes", Store: Direct(b.mem), Now: time.Now, RetryBudget: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, sel := range []Selector{{}, {AsOf: time.Now().Add(time.Hour)}} {
		_, err := r.Find(t.Context(), sel)
		lost, ok := errors.AsType[*HeadLostError](err)
		if !ok || lost.Newest != 3 || lost.UpTo != 8 || !errors.Is(err, repository.ErrCorrupt) {
			t.Fatalf("%s: error %v", sel, err)
		}
		for _, say := range []string{`target "offsite"`, `"strikes"`, "gc 2", "up to 8", "commit 3", "commit 9", "earlier version", "--number 3"} {
			if !strings.Contains(err.Error(), say) {
				t.Errorf("%v does not say %q", err, say)
			}
		}
	}
	if state := r.Ask(t.Context(), Selector{}); state.Err == nil || state.Commit != nil {
		t.Errorf("a start would be told %+v", state)
	}
	kept, err := r.Find(t.Context(), Selector{Number: 3})
	if err != nil || !maps.Equal(b.content(kept), b.filesOf(2)) {
		t.Errorf("by its number: %v", err)
	}
	if listed := b.listed(); len(listed) != 1 || listed[0].Number != 3 {
		t.Errorf("listed are %+v", listed)
	}

	b.mem.Plant(repository.CommitKey("strikes", 9), before)
	if c, err := r.Find(t.Context(), Selector{}); err != nil || c.Number != 9 {
		t.Errorf("after it was put back: %v", err)
	}
}
