package pluginhost

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// maxLine is how much of one line is kept; the rest of it is read and counted.
const maxLine = 16 << 10

// output takes everything a process writes, on any stream, for as long as the process writes it: a plugin never blocks on a full pipe for
// longer than a moment. Lines go to the log at their level, as far as the quota allows, and into the tail; secrets are masked in both. The first
// line of raw stdout that is a handshake goes to go-plugin, and nothing else does.
type output struct {
	log  hclog.Logger
	mask *mask
	now  func() time.Time
	tail tail

	mu        sync.Mutex
	handshake string // the line that was taken for the handshake; empty before
	quota     quota
}

func newOutput(log hclog.Logger, mask *mask, now func() time.Time) *output {
	return &output{log: log, mask: mask, now: now}
}

// stdout reads until the stream ends. handshake gets the handshake line and is closed at the end.
func (o *output) stdout(stream io.Reader, handshake *io.PipeWriter) {
	defer func() { _ = handshake.Close() }() // of a pipe in memory: always nil
	form := regexp.MustCompile(`^\d+\|[^|]+\|[^|]*\|[^|]*(\|.*)?$`)
	parser := lineParser{mask: o.mask}
	readLines(stream, func(raw []byte, missing int) {
		text := strings.TrimSpace(string(raw))
		if missing == 0 && form.MatchString(text) && o.claimHandshake(text) {
			// The reader is go-plugin's scanner, which reads to the end whatever comes of the handshake.
			_, _ = io.WriteString(handshake, text+"\n")
			return
		}
		o.line(parser.parse(raw, missing > 0), missing, "stdout")
	})
}

func (o *output) stderr(stream io.Reader) { o.lines(stream, "stderr") }

func (o *output) lines(stream io.Reader, name string) {
	parser := lineParser{mask: o.mask}
	readLines(stream, func(raw []byte, missing int) { o.line(parser.parse(raw, missing > 0), missing, name) })
}

func (o *output) line(line logLine, missing int, stream string) {
	if missing > 0 {
		line.message += fmt.Sprintf("… (%d more bytes of this line)", missing)
	}
	text := line.String()
	o.tail.add(text)
	if o.log.GetLevel() <= line.level && !o.mayLog(len(text)) {
		return
	}
	o.log.Log(line.level, line.message, append(line.pairs, "stream", stream)...)
}

// mayLog asks the quota, and tells in the log when dropping begins and when it ends.
func (o *output) mayLog(size int) bool {
	o.mu.Lock()
	ok, dropped := o.quota.take(o.now(), size)
	o.mu.Unlock()
	switch {
	case !ok && dropped == 1:
		o.log.Warn("the plugin writes more than is logged; lines are dropped")
	case ok && dropped > 0:
		o.log.Warn("lines of the plugin were dropped", "lines", dropped)
	}
	return ok
}

// close tells what was dropped last, once nothing more comes.
func (o *output) close() {
	o.mu.Lock()
	dropped := o.quota.dropped
	o.quota.dropped = 0
	o.mu.Unlock()
	if dropped > 0 {
		o.log.Warn("lines of the plugin were dropped", "lines", dropped)
	}
}

func (o *output) claimHandshake(line string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.handshake != "" {
		return false
	}
	o.handshake = line
	return true
}

func (o *output) shookHands() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.handshake != ""
}

// readLines calls each with every line, without its end, until the stream ends or fails. Of a line longer than maxLine it gives the
// beginning and the number of bytes that are missing. A flood it reads slowly.
func readLines(stream io.Reader, each func(line []byte, missing int)) {
	r := bufio.NewReaderSize(stream, maxLine)
	var work effort
	for {
		line, more, err := r.ReadLine()
		if err != nil {
			return // io.EOF, or the pipe was closed because the process is gone
		}
		missing := 0
		if more {
			line = slices.Clone(line)
			missing = skipLine(r, &work)
		}
		each(line, missing)
		work.spend(1 + len(line)/effortParsed)
	}
}

func skipLine(r *bufio.Reader, work *effort) (skipped int) {
	for more := true; more; {
		var rest []byte
		var err error
		if rest, more, err = r.ReadLine(); err != nil {
			return skipped
		}
		skipped += len(rest)
		work.spend(1 + len(rest)/effortSkipped)
	}
	return skipped
}

// synced is a stream that go-plugin carries over the RPC connection: what a Go plugin prints through os.Stdout and os.Stderr once it serves.
// It cuts the pieces into lines on a pipe, so that one reader serves all streams.
func (o *output) synced(name string, running *sync.WaitGroup) *io.PipeWriter {
	r, w := io.Pipe()
	running.Go(func() { o.lines(r, name) })
	return w
}
