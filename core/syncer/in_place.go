package syncer

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
)

// Standing is a state that lies in a storage path: the live one, or that of a checkpoint.
type Standing struct {
	Name    string // for people
	Point   repository.Point
	Unknown error // why Point cannot be told; nil = it is known
}

// Ahead is a state that holds more than the one that is to take its place, or may.
type Ahead struct {
	Name    string
	Step    uint64
	Fork    uint64 // the last step that both share; 0 when they share none
	Unknown error  // why the others cannot be told; nil = they are
}

// String is for people.
func (a Ahead) String() string {
	switch {
	case a.Unknown != nil:
		return fmt.Sprintf("%s may hold more (%v)", a.Name, a.Unknown)
	case a.Fork == 0:
		return fmt.Sprintf("%s (step %d) is of another history", a.Name, a.Step)
	}
	return fmt.Sprintf("%s (step %d) holds what came after step %d", a.Name, a.Step, a.Fork)
}

// AheadOf tells which of the states that stand somewhere are not passed through by the chosen one: to put that in their place goes back, or to
// another history. One of which it cannot be told counts as such.
func AheadOf(chosen repository.Point, here []Standing) []Ahead {
	var ahead []Ahead
	for _, s := range here {
		if s.Unknown != nil {
			ahead = append(ahead, Ahead{Name: s.Name, Unknown: s.Unknown})
			continue
		}
		if rel := repository.Relate(chosen, s.Point); !rel.OnHistory {
			ahead = append(ahead, Ahead{Name: s.Name, Step: s.Point.Step, Fork: rel.Fork})
		}
	}
	return ahead
}

// SyncFile is the file in which a worker keeps what it remembers of a repository.
type SyncFile struct {
	File           string
	Target, Prefix string
	Pipeline       uuid.UUID
}

// Forgotten says whether a commit of writer, whose storage path this is, is one that the path knows nothing of: it was put back to an earlier state, or is a
// copy, and what lies there may be another state than the commit's of the same lineage and step. A file that is missing or damaged tells nothing.
func (f SyncFile) Forgotten(writer uuid.UUID, c *repository.Commit) (bool, error) {
	if c.Writer.ID != writer {
		return false, nil
	}
	data, err := stateFile(f.File).load()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("target %q: read sync state: %w", f.Target, err)
	}
	s, err := decodeState(data)
	if err != nil || s.Target != f.Target || s.Prefix != f.Prefix || s.Pipeline != f.Pipeline {
		return false, nil //nolint:nilerr // the worker sets a damaged one aside
	}
	return !s.knows(CommitRef{Number: c.Number, Checkpoint: c.Checkpoint.ID}), nil
}

// Remember notes a commit as Worker.Seen does, where no worker is open on the file. A damaged file is set aside, as Open does.
func (f SyncFile) Remember(number uint64, checkpoint uuid.UUID, step uint64, now time.Time) error {
	file := stateFile(f.File)
	s, _, err := recall(file, state{Target: f.Target, Prefix: f.Prefix, Pipeline: f.Pipeline, FirstSeen: now.UTC()})
	if err != nil {
		return fmt.Errorf("target %q: %w", f.Target, err)
	}
	s.Committed = &CommitRef{Number: number, Checkpoint: checkpoint, Step: step, At: now.UTC()}
	data, err := encodeState(s)
	if err == nil {
		err = file.save(data)
	}
	if err != nil {
		return fmt.Errorf("target %q: save sync state: %w", f.Target, err)
	}
	return nil
}
