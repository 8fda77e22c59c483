package sqlcircuit

import (
	"context"
	"strconv"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// item is one record on its way from an input to a step, or (with mark) nothing but a new position.
type item struct {
	text    string
	refusal string // why it is no record; "" = text is one
	start   int64
	end     int64
	look    *look // the file it comes from; nil in an HTTP batch
	mark    bool
	forget  string // with mark: the position of this name is dropped
}

// look is a file as it was when it was looked at. It never changes.
type look struct {
	name   string
	length int64
	head   []byte // SHA-256 of its first min(4096, length) bytes
}

// input is one input while the circuit runs.
type input struct {
	cfg        Input
	statements []applyStmt // used by the loop's goroutine
	wake       func()

	mu      sync.Mutex
	applied int64 // records, as committed, since the state began
	refused int64
	trial   int      // records refused in this run while none was ever applied
	first   string   // refusal of this run, with its position
	stopped string   // why it takes no more; "" = it does
	note    string   // what its reader noticed or waits for
	queue   []item   // file: read ahead, in order
	bytes   int      // of text in queue
	marks   int      // in queue
	waiting []*batch // http: complete, in order of arrival
	pending int      // http: admitted and not answered
	room    chan struct{}
}

func newInput(cfg Input, wake func()) *input {
	return &input{cfg: cfg, wake: wake, room: make(chan struct{}, 1)}
}

// maxAheadBytes bounds what the reader of one file input holds in memory.
const maxAheadBytes = 16 << 20

// put appends items read ahead; it waits while there are two steps' worth. False means that nobody will take them.
func (in *input) put(ctx context.Context, items []item) bool {
	for {
		in.mu.Lock()
		if in.stopped != "" {
			in.mu.Unlock()
			return false
		}
		if len(in.queue) < 2*in.cfg.MaxBatch && in.bytes < maxAheadBytes {
			in.enqueue(items)
			in.mu.Unlock()
			in.wake()
			return true
		}
		in.mu.Unlock()
		select {
		case <-in.room:
		case <-ctx.Done():
			return false
		}
	}
}

func (in *input) enqueue(items []item) {
	in.queue = append(in.queue, items...)
	for _, it := range items {
		in.bytes += len(it.text)
		if it.mark {
			in.marks++
		}
	}
}

// ahead returns up to MaxBatch items without taking them: they are taken when their transaction has committed.
func (in *input) ahead() []item {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped != "" {
		return nil
	}
	return in.queue[:min(len(in.queue), in.cfg.MaxBatch):min(len(in.queue), in.cfg.MaxBatch)]
}

// take removes the first n items. When the input's reader stopped it while they were applied, none are left.
func (in *input) take(n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped != "" {
		return
	}
	for _, it := range in.queue[:n] {
		in.bytes -= len(it.text)
		if it.mark {
			in.marks--
		}
	}
	in.queue = in.queue[n:]
	if len(in.queue) == 0 {
		in.queue = nil // lets the array go
	}
	in.signalRoom()
}

func (in *input) signalRoom() {
	select {
	case in.room <- struct{}{}:
	default:
	}
}

// stop ends the input for this run.
func (in *input) stop(reason string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped != "" {
		return
	}
	in.stopped = reason
	in.queue, in.bytes, in.marks = nil, 0, 0
	in.signalRoom()
}

func logStop(log hclog.Logger, in *input, reason string) {
	log.Error("input stopped; it goes on when that is mended and the pipeline is stopped and started", "input", in.cfg.Name, "reason", reason)
}

func (in *input) setNote(note string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.note = note
}

// buffered counts the records that a step could take; asked says that somebody waits for that step.
func (in *input) buffered() (n int, asked bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n = len(in.queue) - in.marks
	for _, b := range in.waiting {
		n += len(b.items)
	}
	return n, in.marks > 0 || len(in.waiting) > 0
}

// position is where an item came from, as :position shows it.
func (it *item) position(prefix string) string {
	if it.look != nil {
		prefix = it.look.name
	}
	return prefix + ":" + strconv.FormatInt(it.start, 10)
}

// place is what cairn_errors shows of it: a number that could be taken for a line of the file is said to be a byte.
func (it *item) place(prefix string) string {
	if it.look != nil {
		return it.look.name + " at byte " + strconv.FormatInt(it.start, 10)
	}
	return it.position(prefix)
}

// where is the place in a sentence.
func (it *item) where(prefix string) string {
	if it.look != nil {
		return "of " + it.place(prefix)
	}
	return "at " + it.position(prefix)
}
