package sqlcircuit

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// transaction is the work of one step on the way to its commit. The loop's goroutine owns it.
type transaction struct {
	c       *Circuit
	decided map[int]outcome      // portions that an earlier attempt took back
	doomed  map[*item]string     // records whose statements rolled an earlier attempt back, and why
	seqs    map[sourceKey]uint64 // of batches applied in this transaction
	counts  map[*input]counts
	changed bool
}

// counts is what a transaction did for one input so far.
type counts struct {
	applied, refused int
	first            string // refusal
	stopped          string // the input stops; later batches of the step are not applied
}

// takenBack says that a portion must leave nothing behind although some of it was applied: a batch of an input that stops, or the first
// records of one. The transaction begins again without it. A savepoint around each portion could undo it alone, but while one is open
// SQLite saves every page again for every record: that made steps three times as slow.
type takenBack struct {
	index   int // of the portion in the step's work
	outcome outcome
}

func (t *takenBack) Error() string { return "a portion of the step is taken back: " + t.outcome.stop }

// applyPortion applies portion number i of the step.
func (tx *transaction) applyPortion(ctx context.Context, i int, p portion) (outcome, error) {
	if o, known := tx.decided[i]; known {
		tx.add(o)
		return o, nil
	}
	if stopped := tx.counts[p.in].stopped; stopped != "" {
		return outcome{portion: p, err: fmt.Errorf("%w: %s", ErrInputStopped, stopped)}, nil
	}
	if p.batch != nil && tx.duplicate(p) {
		return outcome{portion: p, duplicate: true}, nil
	}
	o, err := tx.applyItems(ctx, p)
	if err != nil {
		return outcome{}, err
	}
	if o.taken == 0 && o.stop != "" {
		return outcome{}, &takenBack{index: i, outcome: o}
	}
	if err := tx.setPosition(o); err != nil {
		return outcome{}, err
	}
	tx.add(o)
	tx.changed = true
	return o, nil
}

func (tx *transaction) add(o outcome) {
	n := tx.counts[o.in]
	n.applied += o.applied
	n.refused += o.refused
	n.stopped = o.stop
	if n.first == "" {
		n.first = o.first
	}
	tx.counts[o.in] = n
}

// duplicate says that the batch has been applied, by an earlier step or by this one.
func (tx *transaction) duplicate(p portion) bool {
	if p.batch.source == "" {
		return false
	}
	key := sourceKey{p.in.cfg.Name, p.batch.source}
	return p.batch.seq <= max(tx.seqs[key], tx.c.sources.position(key))
}

func (tx *transaction) applyItems(ctx context.Context, p portion) (outcome, error) {
	o := outcome{portion: p}
	prefix := p.batch.label(tx.c.step.Load() + 1)
	for i := range p.items {
		if err := ctx.Err(); err != nil {
			return o, err
		}
		it := &p.items[i]
		if it.mark {
			if err := tx.mark(p.in, it); err != nil {
				return o, err
			}
			continue
		}
		refusal, known := tx.doomed[it]
		if !known {
			var err error
			if refusal, err = tx.c.applyRecord(p.in, it, prefix); err != nil {
				return o, err
			}
		}
		if refusal == "" {
			o.applied++
			continue
		}
		if stop := tx.refuse(&o, it, refusal, prefix); stop {
			return o.stopped(i), nil
		}
		if err := tx.c.own.addError.runWith(p.in.cfg.Name, it.place(prefix), refusal); err != nil {
			return o, fmt.Errorf("write to cairn_errors: %w", err)
		}
	}
	o.taken = len(p.items)
	return o, nil
}

// refuse counts a refused record and decides whether the input stops.
func (tx *transaction) refuse(o *outcome, it *item, refusal, prefix string) (stop bool) {
	if o.in.cfg.OnError == OnErrorStop {
		o.stop = fmt.Sprintf("record %s was refused: %s", it.where(prefix), refusal)
		return true
	}
	if o.refused++; o.refused == 1 {
		o.first = fmt.Sprintf("%s: %s", it.where(prefix), refusal)
	}
	before, trial := o.in.onTrial()
	seen := tx.counts[o.in]
	if !trial || seen.applied > 0 || o.applied > 0 || before+seen.refused+o.refused < trialRecords {
		return false
	}
	o.stop = fmt.Sprintf("its first %d records were all refused; the first %s", trialRecords, tx.firstRefusal(o))
	return true
}

// firstRefusal is the first of this run, which an earlier step or an earlier batch may have seen.
func (tx *transaction) firstRefusal(o *outcome) string {
	if first := o.in.firstRefused(); first != "" {
		return first
	}
	if first := tx.counts[o.in].first; first != "" {
		return first
	}
	return o.first
}

// stopped is the outcome of an input that stops at item i. With on_error = "stop" the records before it stand; a batch is whole or not at
// all; records of the trial are given back, so that they are read again when the statements have been mended.
func (o outcome) stopped(i int) outcome {
	keep := o.batch == nil && o.in.cfg.OnError == OnErrorStop
	if !keep {
		o.applied, i = 0, 0
	}
	o.refused, o.taken = 0, i
	if o.batch != nil {
		o.err = fmt.Errorf("%w: %s", ErrInputStopped, o.stop)
	}
	return o
}

// setPosition stores where the input stands after the portion.
func (tx *transaction) setPosition(o outcome) error {
	name := o.in.cfg.Name
	if o.batch != nil {
		if o.batch.source == "" {
			return nil
		}
		tx.seqs[sourceKey{name, o.batch.source}] = o.batch.seq
		return tx.c.own.setSource.runWith(name, o.batch.source, int64(o.batch.seq))
	}
	last := map[string]*item{} // by the file's name: the last item decides
	for i := range o.items[:o.taken] {
		it := &o.items[i]
		delete(last, it.forget)
		last[it.look.name] = it
	}
	for _, file := range slices.Sorted(maps.Keys(last)) {
		it := last[file]
		if err := tx.c.own.setFile.runWith(name, file, it.end, it.look.length, it.look.head); err != nil {
			return fmt.Errorf("store position of %s: %w", file, err)
		}
	}
	return nil
}

// mark drops the position that a renamed file leaves behind; its new one is stored with the portion.
func (tx *transaction) mark(in *input, it *item) error {
	if it.forget == "" {
		return nil
	}
	return tx.c.own.dropFile.runWith(in.cfg.Name, it.forget)
}

// finish stores the counts and the step and commits.
func (tx *transaction) finish(next uint64) error {
	own := &tx.c.own
	for in, n := range tx.counts {
		in.mu.Lock()
		applied, refused := in.applied+int64(n.applied), in.refused+int64(n.refused)
		in.mu.Unlock()
		if err := own.setCounts.runWith(in.cfg.Name, applied, refused); err != nil {
			return fmt.Errorf("store counts of input %s: %w", in.cfg.Name, err)
		}
	}
	if err := own.setStep.runWith(int64(next)); err != nil {
		return fmt.Errorf("store step: %w", err)
	}
	if err := own.commit.run(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
