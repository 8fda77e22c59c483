package pluginhost

import (
	"fmt"
	"os"
	"sync"
)

// stdio is the three pipes of a process: the only descriptors it gets. Ours are closed on exec, so no other plugin holds them open.
type stdio struct {
	theirStdin, theirStdout, theirStderr *os.File
	stdin, stdout, stderr                *os.File
	once                                 sync.Once
}

func openPipes() (*stdio, error) {
	s := &stdio{}
	for _, pipe := range []struct{ r, w **os.File }{
		{&s.theirStdin, &s.stdin},
		{&s.stdout, &s.theirStdout},
		{&s.stderr, &s.theirStderr},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			s.closeTheirs()
			s.closeOurs()
			return nil, fmt.Errorf("open pipes: %w", err)
		}
		*pipe.r, *pipe.w = r, w
	}
	return s, nil
}

// closeTheirs is called once the child has them, or will never be.
func (s *stdio) closeTheirs() { closeAll(s.theirStdin, s.theirStdout, s.theirStderr) }

// closeOurs ends every reader at once, whoever still holds the other ends. It may be called from several goroutines.
func (s *stdio) closeOurs() {
	s.once.Do(func() { closeAll(s.stdin, s.stdout, s.stderr) })
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close() // these ends are pipes: closing one has nothing to report but that it is closed
		}
	}
}
