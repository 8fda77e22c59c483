package sqlcircuit

import (
	"errors"
	"fmt"
	"os"
)

// openDatabase opens the writer, creates what a fresh start needs, and opens the other connections.
func (c *Circuit) openDatabase() error {
	if err := os.MkdirAll(c.env.Dir, 0o700); err != nil {
		return err
	}
	if err := removeLeftovers(c.env.Dir); err != nil {
		return err
	}
	if err := c.dropBase(); err != nil {
		return err // of an earlier run: whether the main file changed since is not known
	}
	var err error
	if c.writer, err = c.openLive(openCreate); err != nil {
		return err
	}
	if err := c.openTables(); err != nil {
		return err
	}
	if err := c.own.prepare(c.writer); err != nil {
		return err
	}
	if c.main, err = os.Open(c.files.main); err != nil {
		return err
	}
	if c.folder, err = c.openLive(openExisting); err != nil {
		return err
	}
	spare, err := c.openReader()
	if err != nil {
		return err
	}
	c.readers.idle = append(c.readers.idle, spare)
	page, err := c.writer.integers("PRAGMA page_size")
	if err != nil {
		return err
	}
	c.pageSize = page[0]
	row, err := c.walFrames()
	if err != nil {
		return err
	}
	info, err := c.main.Stat()
	if err != nil {
		return err
	}
	c.wal.frames, c.wal.folded, c.wal.mainSize, c.wal.rest = row.frames, row.folded, info.Size(), false
	c.wal.epoch++
	return nil
}

// openLive opens a connection to the live database. Each has autocheckpoint off; one that forgot it would fold at its next commit, under
// the hands of a Write.
func (c *Circuit) openLive(flags int32) (*conn, error) {
	conn, err := openConn(c.files.main, flags)
	if err != nil {
		return nil, err
	}
	err = c.prepareLive(conn, flags)
	if err != nil {
		_ = conn.close() // the first error is the one to tell
		return nil, fmt.Errorf("open database %s: %w", c.files.main, err)
	}
	return conn, nil
}

// lockWait is how long, in milliseconds, a connection waits for a lock. There is one writer; but a reader that meets the writer in the middle of
// an update of the WAL's index takes the write lock for a moment to look again.
const lockWait = 5000

func (c *Circuit) prepareLive(conn *conn, flags int32) error {
	conn.waitForLocks(lockWait)
	if !c.faults.autocheckpoint || flags != openCreate {
		row, err := conn.integers("PRAGMA wal_autocheckpoint = 0")
		if err != nil {
			return err
		}
		if len(row) != 1 || row[0] != 0 {
			return fmt.Errorf("SQLite refuses to turn its autocheckpoint off: it answered %v", row)
		}
	}
	if flags != openCreate {
		return nil
	}
	// FULL: a commit that was told to a client survives a power cut as well as the disk does.
	if err := conn.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"); err != nil {
		return err
	}
	_, err := checkpointWAL(conn, "NOOP") // fails unless the mode is WAL indeed
	return err
}

// openTables reads the header, or creates everything in one transaction.
func (c *Circuit) openTables() error {
	h, err := readHeader(c.writer)
	if errors.Is(err, errNoHeader) {
		return c.createTables()
	}
	if err != nil {
		return err
	}
	if err := c.checkHeader(h); err != nil {
		return err
	}
	c.step.Store(h.step)
	return nil
}

func (c *Circuit) createTables() error {
	if err := c.writer.exec("BEGIN IMMEDIATE;" + ownTables); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	if err := c.writer.exec(c.cfg.Schema); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	s, err := c.writer.prepareOne("INSERT INTO cairn_circuit VALUES (1, ?, ?, 0)")
	if err != nil {
		return err
	}
	defer s.finalize()
	if err := s.runWith(int64(format), c.identity.Fingerprint[:]); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	if err := c.writer.exec("COMMIT"); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	c.step.Store(0)
	_, err = checkpointWAL(c.writer, "TRUNCATE") // nobody else has it open yet
	return err
}

// loadInputs prepares the statements and loads positions, sources and counts.
func (c *Circuit) loadInputs() ([]*fileSource, error) {
	c.inputs = nil
	fileSources := []*fileSource{}
	for _, cfg := range c.cfg.Inputs {
		in := newInput(cfg, c.env.Wake)
		c.inputs = append(c.inputs, in)
		for i, text := range cfg.Apply {
			s, err := prepareApply(c.writer, text)
			if err != nil {
				return nil, fmt.Errorf("input %q: apply statement %d: %w", cfg.Name, i+1, err)
			}
			in.statements = append(in.statements, s)
		}
		if err := c.loadCounts(in); err != nil {
			return nil, fmt.Errorf("load counts of input %q: %w", cfg.Name, err)
		}
		if cfg.File == nil {
			continue
		}
		known, err := c.loadFiles(cfg.Name)
		if err != nil {
			return nil, fmt.Errorf("load positions of input %q: %w", cfg.Name, err)
		}
		fileSources = append(fileSources, newFileSource(in, c.log, c.limits.lookEach, known))
	}
	return fileSources, c.loadSources()
}

func (c *Circuit) loadCounts(in *input) error {
	return c.each("SELECT applied, refused FROM cairn_inputs WHERE input = ?", func(s *stmt) {
		in.applied, in.refused = s.integer(0), s.integer(1)
	}, in.cfg.Name)
}

func (c *Circuit) loadFiles(name string) (map[string]*tracked, error) {
	known := map[string]*tracked{}
	err := c.each("SELECT path, offset, length, head FROM cairn_files WHERE input = ?", func(s *stmt) {
		k := &tracked{offset: s.integer(1), length: s.integer(2), head: s.blob(3)}
		if k.length == 0 {
			k.after = k.head // see look
		}
		known[s.text(0)] = k
	}, name)
	return known, err
}

func (c *Circuit) loadSources() error {
	clear(c.sources.seq)
	return c.each("SELECT input, source, seq FROM cairn_sources", func(s *stmt) {
		c.sources.seq[sourceKey{s.text(0), s.text(1)}] = uint64(s.integer(2))
	})
}

// each runs a statement on the writer and visits its rows.
func (c *Circuit) each(sql string, visit func(*stmt), values ...any) error {
	s, err := c.writer.prepareOne(sql)
	if err != nil {
		return err
	}
	defer s.finalize()
	if err := s.bind(values...); err != nil {
		return err
	}
	for {
		row, err := s.step()
		if err != nil || !row {
			return err
		}
		visit(s)
	}
}

// closeFiles closes the connections, the writer last, and then the descriptor that copies are made from: closed earlier, it would take
// SQLite's locks with it.
func (c *Circuit) closeFiles() error {
	c.readers.mu.Lock()
	out := c.readers.out
	c.readers.out = map[*snapshot]struct{}{}
	c.readers.mu.Unlock()
	for s := range out {
		s.mu.Lock()
		s.end()
		s.mu.Unlock()
	}
	for _, r := range c.readers.idle {
		r.close()
	}
	c.readers.idle = nil
	errs := []error{}
	if c.folder != nil {
		errs = append(errs, c.folder.close())
	}
	if c.writer != nil {
		c.own.finalize()
		for _, in := range c.inputs {
			for _, s := range in.statements {
				s.finalize()
			}
		}
		errs = append(errs, c.writer.close())
	}
	if c.main != nil {
		c.main.Close()
	}
	c.folder, c.writer, c.main = nil, nil, nil
	return errors.Join(errs...)
}
