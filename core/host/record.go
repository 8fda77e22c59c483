package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/syncer"
)

// recall reads what earlier runs left, once; later calls do nothing.
func (p *pipeline) recall() error {
	if p.hasRecalled() {
		return nil
	}
	record, err := p.dir.Pipeline()
	known := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if record, err = endInterrupted(p.dir, record, p.cfg.Backend.Repositories(), p.host.opts.Now(), p.log); err != nil {
		return err
	}
	p.mu.Lock()
	p.recalled = true
	if known {
		p.record, p.desired = record, record.Desired
	}
	p.mu.Unlock()
	p.recallSummary()
	if record.ID == uuid.Nil {
		return nil // it has never come to a state
	}
	return p.openWorkers(uuid.Nil)
}

func (p *pipeline) hasRecalled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.recalled
}

// want keeps the state that an operator asked for, so that the next start of the host takes it up. Memory storage forgets, and what
// could not be read is not overwritten.
func (p *pipeline) want(desired checkpoint.Desired) error {
	err := p.changeRecord(func(record *checkpoint.Pipeline) {
		record.Desired = desired
		if desired == checkpoint.Stopped {
			record.Activation = nil
		}
	})
	if err != nil {
		return fmt.Errorf("keep desired state of pipeline %q: %w", p.cfg.Name, err)
	}
	return nil
}

// keepIdentity saves who the pipeline is before anything of its state stands on disk. owner is the pipeline of the repositories seen, if
// any: that pipeline goes on here.
func (p *pipeline) keepIdentity(owner uuid.UUID) error {
	return p.changeRecord(func(record *checkpoint.Pipeline) {
		if record.Writer == uuid.Nil {
			record.Writer = uuid.Must(uuid.NewRandom())
		}
		if record.ID == uuid.Nil {
			record.ID = owner
		}
		if record.ID == uuid.Nil {
			record.ID = uuid.Must(uuid.NewRandom())
		}
	})
}

// keepHistory saves where the state that is about to stand comes from, the runs that may then have opened it last, and the uuid that was obeyed for it;
// Nil = none.
func (p *pipeline) keepHistory(history checkpoint.History, openers []uuid.UUID, honoured uuid.UUID) error {
	return p.changeRecord(func(record *checkpoint.Pipeline) {
		record.History, record.Openers = history, openers
		record.Standby, record.Activation, record.Followed = false, nil, nil // a state of its own makes a primary
		if honoured != uuid.Nil {
			record.Honoured = append(append([]uuid.UUID{}, record.Honoured...), honoured)
		}
	})
}

// changeRecord makes one change of the record on disk, then in memory.
func (p *pipeline) changeRecord(change func(*checkpoint.Pipeline)) error {
	p.recording.Lock()
	defer p.recording.Unlock()
	p.mu.Lock()
	record, keep := p.record, p.dir != nil && p.recalled
	record.Desired = p.desired
	p.mu.Unlock()
	change(&record)
	if keep {
		if err := p.dir.SavePipeline(record); err != nil {
			return p.removed(err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record, p.desired = record, record.Desired
	return nil
}

// known is a copy of the record.
func (p *pipeline) known() checkpoint.Pipeline {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.record
}

// openWorkers makes the pipeline's workers anew, for one incarnation.
func (p *pipeline) openWorkers(incarnation uuid.UUID) error {
	record := p.known()
	blocks := p.cfg.Backend.Repositories()
	workers := make([]*syncer.Worker, 0, len(blocks))
	for _, block := range blocks {
		worker, err := syncer.Open(p.workerConfig(block, record, incarnation))
		if err != nil {
			return err
		}
		workers = append(workers, worker)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers = workers
	return nil
}

// summaryFile is beside the targets' own records; no target can bear the name.
func (p *pipeline) summaryFile() string { return p.dir.SyncFile("_summary") }

// recallSummary reads what sync status said when it was last saved. What cannot be read is told, and status goes by the targets' own records.
func (p *pipeline) recallSummary() {
	var summary circuit.SyncSummary
	text, err := os.ReadFile(p.summaryFile())
	if err == nil {
		err = json.Unmarshal(text, &summary)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.log.Warn("saved sync status cannot be read, the targets' own records tell", "error", err)
		summary = circuit.SyncSummary{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.summary = summary
}

// saveSummary keeps sync status for the next run. A failure is logged: the targets' own records tell nearly as much.
func (p *pipeline) saveSummary(summary circuit.SyncSummary) {
	if p.dir == nil {
		return
	}
	summary.Running = uuid.Nil // it does not outlive its run
	p.mu.Lock()
	same := reflect.DeepEqual(p.summary, summary)
	p.summary = summary
	p.mu.Unlock()
	if same {
		return
	}
	text, err := json.Marshal(summary)
	if err == nil {
		err = checkpoint.ReplaceFile(p.summaryFile(), text)
	}
	if err != nil {
		p.log.Error("sync status not saved", "error", err)
	}
}
