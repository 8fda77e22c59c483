package rpc

import (
	"context"
	"io"
	"os"
	"time"
)

// lifeline ends when the host is gone: at once by the end of standard input, whose other end the host holds and never writes to; and
// within a second by the parent process becoming another, for a host that gave no pipe. It gives the reason, or "" when ctx ended first.
// parent is the process's parent as it was before the handshake: a host that ends right after it must not be missed. The reader of
// standard input lives as long as the process.
func lifeline(ctx context.Context, parent int) string {
	closed := make(chan struct{})
	if isPipe(os.Stdin) {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // any end, good or bad, means that nobody holds the other side
			close(closed)
		}()
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-closed:
			return "standard input ended"
		case <-tick.C:
			if os.Getppid() != parent {
				return "the parent process ended"
			}
		}
	}
}

// isPipe tells a host's lifeline from a terminal, a file or /dev/null.
func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}
