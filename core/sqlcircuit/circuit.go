package sqlcircuit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/circuit"
)

// Kind is the Identity.Kind of every sql circuit.
const Kind = "sql"

// Circuit is one sql circuit.
type Circuit struct {
	cfg      Config
	identity circuit.Identity
	limits   limits
	faults   faults

	env      circuit.Env
	log      hclog.Logger
	opened   bool
	files    liveFiles
	life     life
	inputs   []*input
	sources  sources
	step     atomic.Uint64
	pageSize int64

	writer *conn // the one that writes; the loop's goroutine uses it. nil = not open
	own    bookkeeping
	folder *conn    // the fold's
	main   *os.File // state.db, for copies; open as long as SQLite has it open
	wal    wal

	readers    readers
	copying    sync.Mutex // one Write at a time moves main's offset
	querySlots chan struct{}
}

var (
	_ circuit.Circuit  = (*Circuit)(nil)
	_ circuit.Ingester = (*Circuit)(nil)
	_ circuit.Querier  = (*Circuit)(nil)
)

// faults are mistakes planted by tests, to prove that the tests would find them.
type faults struct {
	autocheckpoint bool                    // the writer folds by itself, as SQLite does by default
	prefixBySize   bool                    // Write takes the WAL's file as long as it is
	openInPlace    func(path string) error // Restore opens the checkpoint itself first
}

type liveFiles struct{ main, wal, base string }

// New checks the whole configuration, without a file or a network: the schema must run and every statement must compile against it. All
// faults are reported at once; each names its input and statement.
func New(cfg Config) (*Circuit, error) {
	cfg = cfg.withDefaults()
	if err := errors.Join(cfg.check(), CheckSQL(cfg)); err != nil {
		return nil, err
	}
	return &Circuit{
		cfg: cfg, identity: circuit.Identity{Kind: Kind, Fingerprint: fingerprint(cfg)}, limits: defaultLimits(),
		log: hclog.NewNullLogger(), sources: sources{seq: map[sourceKey]uint64{}},
		readers: readers{out: map[*snapshot]struct{}{}}, querySlots: make(chan struct{}, maxQueries),
	}, nil
}

// fingerprint covers the schema's text and the inputs' names. A changed apply goes on with the same state.
func fingerprint(cfg Config) [32]byte {
	names := []string{}
	for _, in := range cfg.Inputs {
		names = append(names, in.Name)
	}
	slices.Sort(names)
	h := sha256.New()
	for _, part := range append([]string{"cairn sql circuit", cfg.Schema}, names...) {
		length := binary.BigEndian.AppendUint64(nil, uint64(len(part)))
		h.Write(append(length, part...)) // a hash never fails
	}
	return [32]byte(h.Sum(nil))
}

// Identity is fixed by the schema's text and the inputs' names.
func (c *Circuit) Identity() circuit.Identity { return c.identity }

// Open takes the directory, creates the database on a fresh start, and starts to read the inputs. A state of another fingerprint is refused.
func (c *Circuit) Open(ctx context.Context, env circuit.Env) (err error) {
	if c.opened {
		return errors.New("open sql circuit: it was opened before; make a new one")
	}
	c.opened = true
	c.env, c.files = env, liveFiles{
		main: filepath.Join(env.Dir, mainName), wal: filepath.Join(env.Dir, walName), base: filepath.Join(env.Dir, baseName),
	}
	if env.Log != nil {
		c.log = env.Log
	}
	if env.Wake == nil {
		c.env.Wake = func() {}
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open sql circuit: %w", c.explained(err)), c.closeFiles())
		}
	}()
	for _, in := range c.cfg.Inputs {
		if in.File == nil {
			continue
		}
		if err := checkHeaders(*in.File); err != nil {
			return fmt.Errorf("input %q: %w", in.Name, err)
		}
	}
	if err := c.openDatabase(); err != nil {
		return err
	}
	sources, err := c.loadInputs()
	if err != nil {
		return err
	}
	c.life.start()
	c.startReading(ctx, sources)
	return nil
}

// startReading runs one goroutine per file input until Close.
func (c *Circuit) startReading(ctx context.Context, sources []*fileSource) {
	ctx, stop := c.life.bound(context.WithoutCancel(ctx)) // the inputs outlive the call of Open
	var running sync.WaitGroup
	for _, s := range sources {
		if c.life.enter() != nil {
			break // Close came first
		}
		running.Go(func() {
			defer c.life.leave()
			s.run(ctx)
		})
	}
	if c.life.enter() != nil {
		stop()
		return
	}
	go func() {
		defer c.life.leave()
		running.Wait()
		stop()
	}()
}

// Facts is cheap. While the WAL is too long nothing counts as buffered, because no step would take it; the end of the fold wakes the loop.
func (c *Circuit) Facts() circuit.Facts {
	facts := circuit.Facts{Step: c.step.Load()}
	c.wal.mu.Lock()
	wait, truncate := c.tooLong(), c.wal.canTruncate()
	c.wal.mu.Unlock()
	facts.StepAsked = truncate
	if wait {
		return facts // a truncation ends the wait
	}
	for _, in := range c.inputs {
		n, asked := in.buffered()
		facts.Buffered += n
		facts.StepAsked = facts.StepAsked || asked
	}
	return facts
}

// Close ends queries, Writes and the reading of inputs, answers waiting batches with ErrNotRunning, and closes the database without folding
// it. Everything committed stays.
func (c *Circuit) Close() error {
	c.life.stop()
	return c.closeFiles()
}

// after runs f later, unless the circuit closes first.
func (c *Circuit) after(wait time.Duration, f func()) {
	if c.life.enter() != nil {
		return
	}
	go func() {
		defer c.life.leave()
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			f()
		case <-c.life.closing():
		}
	}()
}
