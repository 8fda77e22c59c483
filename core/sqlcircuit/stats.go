package sqlcircuit

// Stats is what a status page shows of a sql circuit.
type Stats struct {
	Step          uint64
	Inputs        []InputStats
	DatabaseBytes int64  // state.db
	WALBytes      int64  // committed frames of state.db-wal
	Folding       bool   // the WAL is being folded into state.db
	Waiting       string // why no step runs though input may be there; "" = steps run
	Queries       int    // running now
}

// InputStats is one input's share.
type InputStats struct {
	Name     string
	Applied  int64  // records since the state began
	Refused  int64  // of them rows of cairn_errors
	Buffered int    // records that wait for a step
	Pending  int    // HTTP batches that are being read or wait for a step
	Stopped  string // why the input takes no more until a restart; "" = it does
	Note     string // what its reader noticed: a file that is gone, a pattern that matches nothing
}

// Stats may be called by any goroutine.
func (c *Circuit) Stats() Stats {
	s := Stats{Step: c.step.Load()}
	c.wal.mu.Lock()
	s.DatabaseBytes, s.WALBytes = c.wal.mainSize, c.walBytes(c.wal.frames)
	s.Folding, s.Queries = c.wal.folding != nil, c.wal.queries
	if c.tooLong() {
		s.Waiting = "steps wait until the WAL is folded"
	}
	c.wal.mu.Unlock()
	if c.life.enter() != nil {
		return s
	}
	defer c.life.leave()
	for _, in := range c.inputs {
		s.Inputs = append(s.Inputs, in.stats())
	}
	return s
}

func (in *input) stats() InputStats {
	n, _ := in.buffered()
	in.mu.Lock()
	defer in.mu.Unlock()
	return InputStats{
		Name: in.cfg.Name, Applied: in.applied, Refused: in.refused, Buffered: n, Pending: in.pending, Stopped: in.stopped, Note: in.note,
	}
}
