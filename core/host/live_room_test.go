package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/checkpoint"
)

// A start from a whole live state needs no room, so a full disk does not keep it from starting; one that would make the state a foreign one at the next start does.
func TestANoteForWhichThereIsNoRoomIsLeftOutWhereTheStateIsKnownWithoutIt(t *testing.T) {
	dir, err := checkpoint.OpenDir(t.TempDir(), checkpoint.Options{Now: time.Now})
	must(t, err)
	defer dir.Close()
	must(t, os.Mkdir(dir.State(), 0o700))
	last := uuid.New()
	must(t, checkpoint.SetOpenedBy(dir.State(), last))
	full := fmt.Errorf("note: %w", syscall.ENOSPC)
	for name, row := range map[string]struct {
		openers []uuid.UUID
		err     error
		left    bool
	}{
		"the record names the last run":            {[]uuid.UUID{last}, full, true},
		"the record is from before this was noted": {nil, full, true},
		"the record names another":                 {[]uuid.UUID{uuid.New()}, full, false},
		"the disk is broken and not full":          {[]uuid.UUID{last}, syscall.EIO, false},
	} {
		p := &pipeline{dir: dir, record: checkpoint.Pipeline{Openers: row.openers}, log: hclog.NewNullLogger()}
		if got := p.withoutRoom(row.err); (got == nil) != row.left || got != nil && !errors.Is(got, row.err) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A damaged note beside a damaged state, or none, is no reason not to take the newest checkpoint.
func TestADamagedNoteInAStateThatGivesWayKeepsNobodyFromStarting(t *testing.T) {
	for name, harm := range map[string]func(state string) error{
		"the state is damaged": func(state string) error {
			return os.WriteFile(filepath.Join(state, "state.db"), []byte("not a database, and long enough to be read as one"), 0o600)
		},
		"the state is gone": func(state string) error { return os.Remove(filepath.Join(state, "state.db")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := w.start(conf{}).up()
			h.insert(0, 3)
			h.checkpoint()
			before := h.rows()
			h.stop()
			state := w.path("data", "p", "state")
			must(t, harm(state))
			must(t, os.WriteFile(filepath.Join(state, checkpoint.OpenedByName), nil, 0o600))
			equal(t, "rows", w.start(conf{}).up().rows(), before)
		})
	}
}

// What a restore in place has set aside, moved back alone, would undo it without a word.
func TestAStateThatWasSetAsideIsNotStartedFromWhenItIsMovedBackAlone(t *testing.T) {
	p := newPast(t)
	done := p.inPlace(conf{}, p.number(0))
	must(t, os.Rename(filepath.Join(done.SetAside, "state"), p.path("data", "p", "state")))
	h := p.start(conf{})
	h.begin()
	contains(t, h.failed(), putThere)
}
