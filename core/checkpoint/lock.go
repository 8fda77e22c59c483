package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

var errLocked = errors.New("locked")

// takeLock locks <path>/lock for this process and leaves its pid there. Closing the file releases the lock; so does the end of the
// process, however it ends. The file itself stays: removing it would let two processes lock two files of one name.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock storage path: %w", err)
	}
	if err := lockFile(f); err != nil {
		defer f.Close()
		if errors.Is(err, errLocked) {
			return nil, &LockedError{Path: path, PID: readPID(f)}
		}
		return nil, fmt.Errorf("lock storage path %s: %w; the file system must support flock", path, err)
	}
	if err := writePID(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock storage path %s: %w", path, err)
	}
	return f, nil
}

// writePID writes over what the last holder wrote: on a full disk that has its room, and a new file would not.
func writePID(f *os.File) error {
	text := strconv.Itoa(os.Getpid()) + "\n"
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(text)))
}

// readPID is 0 when the holder has not written its pid yet.
func readPID(f *os.File) int {
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
