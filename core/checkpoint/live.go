package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
)

// OpenedByName is the host's own file in a live directory: the run that opened it last. It goes where the directory goes, so that one which is moved
// here from elsewhere is not taken for ours.
const OpenedByName = ".cairn-opened-by"

// OpenedBy reads which run has opened the live state in dir last; Nil = it says nothing, as where no run ever has.
func OpenedBy(dir string) (uuid.UUID, error) {
	path := filepath.Join(dir, OpenedByName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return uuid.Nil, nil
	}
	if err != nil {
		return uuid.Nil, err
	}
	run, err := uuid.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return uuid.Nil, &CorruptError{Path: path, Err: err, Remedy: foreignRemedy(dir)}
	}
	return run, nil
}

// SetOpenedBy notes the run, durably.
func SetOpenedBy(dir string, run uuid.UUID) error {
	return ReplaceFile(filepath.Join(dir, OpenedByName), []byte(run.String()+"\n"))
}

// ForeignStateError says that the live state is not the one that the pipeline's last run has left: it was put there from elsewhere. Nothing was changed.
type ForeignStateError struct {
	Path     string    // of the live directory
	OpenedBy uuid.UUID // the run that opened it last; Nil = it does not say
}

func (e *ForeignStateError) Error() string {
	by := "it does not say which run opened it last"
	if e.OpenedBy != uuid.Nil {
		by = fmt.Sprintf("run %s opened it last, which is not the last run of this pipeline here", e.OpenedBy)
	}
	return fmt.Sprintf("live state %s was put there from elsewhere: %s. What it holds may be of another history, so it is not started from: %s", e.Path, by, foreignRemedy(e.Path))
}

func foreignRemedy(dir string) string {
	return fmt.Sprintf("put the state that was there back or, if it is gone, move %s away: the start then takes the newest checkpoint", dir)
}
