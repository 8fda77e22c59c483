package host

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/pluginhost"
)

// Examined is one process of a plugin under examination, with what it has said and what can be seen of it from outside.
type Examined struct {
	*pluginhost.Subject
	*transcript
}

// Connections are the network connections that the process holds, but for those to this host; errors.ErrUnsupported where the system does
// not show them.
func (e *Examined) Connections() ([]string, error) { return connectionsOf(e.PID()) }

// PeakMemory is the most resident memory that the process has held, in bytes; 0 where the system does not show it.
func (e *Examined) PeakMemory() int64 { return peakMemoryOf(e.PID()) }

// Said is all that the plugin has written since its start, in lines.
func (e *Examined) Said() []string {
	e.Heard()
	return e.transcript.Said()
}

// Stdout is what it has written on standard output beside the handshake.
func (e *Examined) Stdout() []string {
	e.Heard()
	return e.transcript.Stdout()
}

// transcriptBytes bounds what is kept of a plugin that never stops talking.
const transcriptBytes = 4 << 20

// transcript keeps the lines that a plugin writes. pluginhost logs each with the stream that it came from.
type transcript struct {
	mu     sync.Mutex
	said   []string
	stdout []string
	size   int
}

var _ hclog.SinkAdapter = (*transcript)(nil)

func (t *transcript) logger() hclog.Logger {
	log := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Debug})
	log.RegisterSink(t)
	return log
}

// Accept implements hclog.SinkAdapter. A line that is not the plugin's is left out.
func (t *transcript) Accept(_ string, _ hclog.Level, msg string, args ...any) {
	stream, line := "", []string{msg}
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] == "stream" {
			stream = fmt.Sprint(args[i+1])
			continue
		}
		line = append(line, fmt.Sprintf("%v=%v", args[i], args[i+1]))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.size += len(msg); stream == "" || t.size > transcriptBytes {
		return
	}
	t.said = append(t.said, strings.Join(line, " "))
	if stream == "stdout" {
		t.stdout = append(t.stdout, msg)
	}
}

// Said is all that the plugin has written since its start, in lines.
func (t *transcript) Said() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.said)
}

// Stdout is what it has written on standard output beside the handshake.
func (t *transcript) Stdout() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.stdout)
}
