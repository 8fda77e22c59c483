package sqlcircuit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/cairnsync/cairn/core/circuit"
)

// batch is one HTTP batch, read and cut into records, on its way through a step.
type batch struct {
	source string
	seq    uint64
	items  []item
	note   string
	done   chan answer // holds one; answered once
}

type answer struct {
	result circuit.IngestResult
	err    error
}

// Ingest reads the batch, hands it to the next step and returns when that has committed. Errors: ErrUnknownInput, ErrBadFormat, ErrMediaType, ErrTooLarge,
// ErrFull, ErrInputStopped, ErrNotRunning, or that of ctx, whose end takes back a batch that no step has taken yet.
func (c *Circuit) Ingest(ctx context.Context, name string, b circuit.Batch) (circuit.IngestResult, error) {
	in, err := c.admit(name, b)
	if err != nil {
		return circuit.IngestResult{}, err
	}
	defer in.release()
	read, err := readBatch(*in.cfg.HTTP, b.Body) // outside the circuit's life: Close need not wait for a slow client
	if err != nil {
		return circuit.IngestResult{}, err
	}
	if err := c.life.enter(); err != nil {
		return circuit.IngestResult{}, err
	}
	defer c.life.leave()
	read.source, read.seq = b.Source, b.Seq
	return c.await(ctx, in, read)
}

// admit finds the input and counts the batch in; the caller releases it.
func (c *Circuit) admit(name string, b circuit.Batch) (*input, error) {
	if err := c.life.enter(); err != nil {
		return nil, err
	}
	defer c.life.leave()
	in, err := c.httpInput(name)
	if err != nil {
		return nil, err
	}
	if err := checkSequence(b); err != nil {
		return nil, err
	}
	if err := in.cfg.HTTP.Format.accepts(b.Type); err != nil {
		return nil, err
	}
	return in, in.admit()
}

// Position is the sequence number up to which the live state holds the source's batches; 0 = none.
func (c *Circuit) Position(_ context.Context, name, source string) (uint64, error) {
	if err := c.life.enter(); err != nil {
		return 0, err
	}
	defer c.life.leave()
	if _, err := c.httpInput(name); err != nil {
		return 0, err
	}
	return c.sources.position(sourceKey{name, source}), nil
}

func (c *Circuit) httpInput(name string) (*input, error) {
	for _, in := range c.inputs {
		if in.cfg.Name == name && in.cfg.HTTP != nil {
			return in, nil
		}
	}
	return nil, fmt.Errorf("input %q: %w", name, ErrUnknownInput)
}

func checkSequence(b circuit.Batch) error {
	switch {
	case b.Source == "" && b.Seq != 0:
		return fmt.Errorf("%w: it has a seq and no source", ErrBadFormat)
	case b.Source != "" && b.Seq == 0:
		return fmt.Errorf("%w: it has a source and no seq; the first seq is 1", ErrBadFormat)
	case b.Seq > math.MaxInt64:
		return fmt.Errorf("%w: seq %d is above %d", ErrBadFormat, b.Seq, int64(math.MaxInt64))
	case len(b.Source) > 200:
		return fmt.Errorf("%w: the source's name is longer than 200 bytes", ErrBadFormat)
	}
	return nil
}

// readBatch cuts a body into records. A record that cannot be read is refused by itself, in the step; only a body without a usable frame
// is refused here.
func readBatch(cfg HTTPInput, body io.Reader) (*batch, error) {
	data, err := io.ReadAll(io.LimitReader(body, cfg.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read batch: %w", err)
	}
	if int64(len(data)) > cfg.MaxBytes {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, cfg.MaxBytes)
	}
	b := &batch{done: make(chan answer, 1)}
	if cfg.Format == NDJSON {
		b.items, err = cutBatch(newNDJSONReader(bytes.NewReader(data), 0, true), cfg.MaxRecords)
		return b, err
	}
	header, length, err := readCSVHeader(bytes.NewReader(data), true)
	if errors.Is(err, io.EOF) {
		err = errors.New("header: the batch is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadFormat, err)
	}
	b.items, err = cutBatch(newCSVReader(bytes.NewReader(data[length:]), length, true, header), cfg.MaxRecords)
	if len(b.items) == 0 {
		b.note = "the batch has one line, which was taken for its header: a CSV batch begins with a line that names the columns"
	}
	return b, err
}

func cutBatch(records *recordReader, most int) ([]item, error) {
	items := []item{}
	for {
		rec, err := records.next()
		if errors.Is(err, io.EOF) {
			return items, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadFormat, err)
		}
		if len(items) == most {
			return nil, fmt.Errorf("%w: it has more than %d records", ErrTooLarge, most)
		}
		n := int64(len(items) + 1) // the record's number in the batch
		items = append(items, item{text: rec.text, refusal: rec.refusal, start: n, end: n})
	}
}

// await queues the batch and waits for its answer. Once a step has taken it, only the step's answer counts.
func (c *Circuit) await(ctx context.Context, in *input, b *batch) (circuit.IngestResult, error) {
	if err := in.queueBatch(b); err != nil {
		return circuit.IngestResult{}, err
	}
	c.env.Wake()
	select {
	case a := <-b.done:
		return a.result, a.err
	case <-ctx.Done():
		if in.withdraw(b) {
			return circuit.IngestResult{}, ctx.Err()
		}
	case <-c.life.closing():
		if in.withdraw(b) {
			return circuit.IngestResult{}, ErrNotRunning
		}
	}
	a := <-b.done
	return a.result, a.err
}

func (b *batch) answer(result circuit.IngestResult, err error) {
	select {
	case b.done <- answer{result, err}:
	default: // answered already
	}
}

// label begins the :position of the batch's records: what the client called it, else the step that applied it.
func (b *batch) label(step uint64) string {
	switch {
	case b == nil:
		return ""
	case b.source != "":
		return b.source + ":" + strconv.FormatUint(b.seq, 10)
	default:
		return "step:" + strconv.FormatUint(step, 10)
	}
}

// admit counts a batch in before it is read, so that clients cannot fill the memory.
func (in *input) admit() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped != "" {
		return fmt.Errorf("%w: %s", ErrInputStopped, in.stopped)
	}
	if in.pending >= in.cfg.HTTP.MaxPending {
		return fmt.Errorf("input %q: %w", in.cfg.Name, ErrFull)
	}
	in.pending++
	return nil
}

func (in *input) release() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.pending--
}

func (in *input) queueBatch(b *batch) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped != "" {
		return fmt.Errorf("%w: %s", ErrInputStopped, in.stopped)
	}
	in.waiting = append(in.waiting, b)
	return nil
}

// withdraw takes b back; false when a step has it.
func (in *input) withdraw(b *batch) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	i := slices.Index(in.waiting, b)
	if i < 0 {
		return false
	}
	in.waiting = slices.Delete(in.waiting, i, i+1)
	return true
}

// takeBatches takes whole batches until they hold MaxBatch records.
func (in *input) takeBatches() []*batch {
	in.mu.Lock()
	defer in.mu.Unlock()
	n, records := 0, 0
	for n < len(in.waiting) && (n == 0 || records < in.cfg.MaxBatch) {
		records += len(in.waiting[n].items)
		n++
	}
	taken := slices.Clone(in.waiting[:n])
	in.waiting = slices.Delete(in.waiting, 0, n)
	return taken
}

// refuseWaiting answers the batches that wait for an input that has stopped.
func (in *input) refuseWaiting() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped == "" {
		return
	}
	for _, b := range in.waiting {
		b.answer(circuit.IngestResult{}, fmt.Errorf("%w: %s", ErrInputStopped, in.stopped))
	}
	in.waiting = nil
}

// sources holds, in memory, the committed sequence number of every source.
type sources struct {
	mu  sync.Mutex
	seq map[sourceKey]uint64
}

type sourceKey struct{ input, source string }

func (s *sources) position(key sourceKey) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq[key]
}

func (s *sources) advance(key sourceKey, seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key.source != "" {
		s.seq[key] = max(s.seq[key], seq)
	}
}
