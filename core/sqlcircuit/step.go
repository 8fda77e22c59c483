package sqlcircuit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cairnsync/cairn/core/circuit"
)

// trialRecords is how many records an input may have refused, before one was ever applied, until it stops: statements that fit nothing are a
// mistake in the configuration, not in the data.
const trialRecords = 100

// portion is what a step takes from one input: records read ahead, or one batch.
type portion struct {
	in    *input
	items []item
	batch *batch // nil for a file
}

// outcome is what became of a portion, told to its input after the commit.
type outcome struct {
	portion
	applied, refused int
	taken            int    // items that are done with
	first            string // refusal, with its position
	stop             string // the input stops for this reason
	duplicate        bool
	err              error // the batch's, when nothing of it was applied
}

// Step applies what the inputs hold, up to MaxBatch records each and batches whole, in one transaction with the new positions and the
// new step number. It changes nothing when there is nothing to take, and while the WAL is so long that a fold must come first. When ctx
// ends, the statement that runs is interrupted and everything rolled back, however long the batch; the error then is ctx's. When the disk is
// full everything is rolled back too, and the error has circuit.ErrNoSpace in its chain: what came by HTTP is answered with it, what comes
// from files is taken by a later step.
func (c *Circuit) Step(ctx context.Context) (circuit.StepResult, error) {
	if c.writer == nil {
		return circuit.StepResult{}, ErrNotRunning
	}
	if err := c.truncateRest(); err != nil {
		return circuit.StepResult{}, err
	}
	result := circuit.StepResult{Step: c.step.Load()}
	if c.mustWaitForFold() {
		return result, nil
	}
	work := c.gather()
	if len(work) == 0 {
		return result, nil
	}
	settled := false
	defer func() {
		if !settled { // an error or a panic: no client may wait for ever
			answerAll(work, errors.New("the step failed; nothing of the batch was applied"))
		}
	}()
	outcomes, next, err := c.commit(ctx, work)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err() // whatever the interrupt made of it
			answerAll(work, fmt.Errorf("%w: it is stopping, and nothing of the batch was applied", ErrNotRunning))
		} else {
			err = c.explained(err)
			answerAll(work, fmt.Errorf("step: %w", err))
		}
		settled = true
		return result, fmt.Errorf("step %d: %w", result.Step+1, err)
	}
	c.step.Store(next)
	result = c.settle(outcomes)
	settled = true
	return result, c.measureWAL()
}

func (c *Circuit) gather() []portion {
	work := []portion{}
	for _, in := range c.inputs {
		if in.cfg.File != nil {
			if items := in.ahead(); len(items) > 0 {
				work = append(work, portion{in: in, items: items})
			}
			continue
		}
		for _, b := range in.takeBatches() {
			work = append(work, portion{in: in, items: b.items, batch: b})
		}
	}
	return work
}

// commit applies the work in one transaction. When a statement rolled everything back, or a portion must not stand, it begins again
// without that record or portion.
func (c *Circuit) commit(ctx context.Context, work []portion) ([]outcome, uint64, error) {
	decided, doomed := map[int]outcome{}, map[*item]string{}
	for {
		outcomes, next, err := c.attempt(ctx, work, decided, doomed)
		var back *takenBack
		var lost *transactionLost
		switch {
		case errors.As(err, &back):
			decided[back.index] = back.outcome
		case errors.As(err, &lost):
			doomed[lost.item] = lost.reason
		default:
			return outcomes, next, err
		}
	}
}

func (c *Circuit) attempt(
	ctx context.Context, work []portion, decided map[int]outcome, doomed map[*item]string,
) (_ []outcome, next uint64, err error) {
	if err := c.own.begin.run(); err != nil {
		return nil, 0, fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if !c.writer.autocommit() {
			err = errors.Join(err, c.own.rollback.run())
		}
	}()
	uninterrupted := c.interruptAtEnd(ctx)
	defer uninterrupted() // before the rollback
	tx := &transaction{c: c, decided: decided, doomed: doomed, seqs: map[sourceKey]uint64{}, counts: map[*input]counts{}}
	outcomes := make([]outcome, 0, len(work))
	for i, p := range work {
		o, err := tx.applyPortion(ctx, i, p)
		if err != nil {
			return nil, 0, err
		}
		outcomes = append(outcomes, o)
	}
	if !tx.changed {
		return outcomes, c.step.Load(), nil
	}
	uninterrupted() // what is applied may now be committed
	next = c.step.Load() + 1
	if err := tx.finish(next); err != nil {
		return nil, 0, err
	}
	return outcomes, next, nil
}

// interruptAtEnd makes the statement that runs on the writer fail once ctx has ended, until the function it returns is called: from then on
// no interrupt comes. One that comes between two statements is lost, so it is repeated.
func (c *Circuit) interruptAtEnd(ctx context.Context) (release func()) {
	over, gone := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(gone)
		again := time.NewTicker(time.Millisecond)
		defer again.Stop()
		for {
			c.writer.interrupt()
			select {
			case <-over:
				return
			case <-again.C:
			}
		}
	})
	return sync.OnceFunc(func() {
		close(over)
		if !stop() {
			<-gone
		}
	})
}

// settle tells the inputs and the waiting clients what was committed.
func (c *Circuit) settle(outcomes []outcome) circuit.StepResult {
	result := circuit.StepResult{Step: c.step.Load()}
	for _, o := range outcomes {
		result.Applied += o.applied
		result.Rejected += o.refused
		o.in.count(o.applied, o.refused, o.first)
		if o.batch == nil {
			o.in.take(o.taken)
		} else if o.err == nil && !o.duplicate {
			c.sources.advance(sourceKey{o.in.cfg.Name, o.batch.source}, o.batch.seq)
		}
		if o.stop != "" {
			logStop(c.log, o.in, o.stop)
			o.in.stop(o.stop)
		}
		if o.batch != nil {
			o.batch.answer(circuit.IngestResult{
				Step: result.Step, Applied: o.applied, Rejected: o.refused, FirstRefusal: o.first, Duplicate: o.duplicate, Note: o.batch.note,
			}, o.err)
		}
	}
	for _, in := range c.inputs {
		in.refuseWaiting()
	}
	return result
}

func answerAll(work []portion, err error) {
	for _, p := range work {
		if p.batch != nil {
			p.batch.answer(circuit.IngestResult{}, err)
		}
	}
}

// count adds what a step committed.
func (in *input) count(applied, refused int, first string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.first == "" && refused > 0 {
		in.first = first
	}
	in.applied += int64(applied)
	in.refused += int64(refused)
	in.trial += refused
}

// onTrial says how many records this run has refused, and whether none was ever applied.
func (in *input) onTrial() (refused int, trial bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.trial, in.applied == 0
}

func (in *input) firstRefused() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.first
}
