package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
)

// tape is a small circuit of an embedder: its state is one file to which each batch is appended. Its step counts from the beginning in
// every run, so its live state is not exact.
type tape struct {
	fault func(in string) // called at the beginning of Open and Close; may panic

	mu      sync.Mutex
	wake    func()
	file    string
	step    uint64
	waiting []*strip
}

type strip struct {
	text []byte
	done chan uint64
}

var (
	_ circuit.Circuit  = (*tape)(nil)
	_ circuit.Ingester = (*tape)(nil)
)

func tapes(fault func(in string)) func(*Options) {
	return func(o *Options) {
		o.Circuit = func(config.Pipeline) (circuit.Circuit, error) { return &tape{fault: fault}, nil }
	}
}

func (c *tape) Identity() circuit.Identity { return circuit.Identity{Kind: "tape"} }

func (c *tape) Inspect(_ context.Context, dir string) (circuit.Live, error) {
	_, err := os.Stat(filepath.Join(dir, "tape"))
	return circuit.Live{Exists: err == nil}, nil
}

func (c *tape) Restore(_ context.Context, checkpoint, dir string) error {
	text, err := os.ReadFile(filepath.Join(checkpoint, "tape"))
	return errors.Join(err, os.WriteFile(filepath.Join(dir, "tape"), text, 0o600))
}

func (c *tape) Open(_ context.Context, env circuit.Env) error {
	c.fault("open")
	c.file, c.wake = filepath.Join(env.Dir, "tape"), env.Wake
	c.wake() // before there is a loop
	return nil
}

func (c *tape) Facts() circuit.Facts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return circuit.Facts{Step: c.step, Buffered: len(c.waiting)}
}

func (c *tape) Step(context.Context) (circuit.StepResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, err := os.OpenFile(c.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return circuit.StepResult{}, err
	}
	defer f.Close()
	c.step++
	for _, s := range c.waiting {
		if _, err := f.Write(s.text); err != nil {
			return circuit.StepResult{}, err
		}
		s.done <- c.step
	}
	c.waiting = nil
	return circuit.StepResult{Step: c.step, Applied: 1}, nil
}

func (c *tape) Snapshot(context.Context) (circuit.Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, err := os.ReadFile(c.file)
	return cut{c.step, text}, err
}

func (c *tape) Close() error {
	c.fault("close")
	return nil
}

func (c *tape) Ingest(ctx context.Context, _ string, b circuit.Batch) (circuit.IngestResult, error) {
	text, err := io.ReadAll(b.Body)
	if err != nil {
		return circuit.IngestResult{}, err
	}
	s := &strip{text: append(bytes.TrimSpace(text), '\n'), done: make(chan uint64, 1)}
	c.mu.Lock()
	c.waiting = append(c.waiting, s)
	c.mu.Unlock()
	c.wake()
	select {
	case step := <-s.done:
		return circuit.IngestResult{Step: step, Applied: 1}, nil
	case <-ctx.Done():
		return circuit.IngestResult{}, ctx.Err()
	}
}

func (c *tape) Position(context.Context, string, string) (uint64, error) { return 0, nil }

// cut is a pinned tape.
type cut struct {
	step uint64
	text []byte
}

func (s cut) Step() uint64 { return s.step }

func (s cut) Write(_ context.Context, dir string) error {
	return os.WriteFile(filepath.Join(dir, "tape"), s.text, 0o600)
}

func (s cut) Release() {}
