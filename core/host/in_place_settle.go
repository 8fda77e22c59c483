package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/syncer"
)

// foretell tells what carryOut would do.
func (r *inPlace) foretell(ctx context.Context) error {
	var donors []string
	checkpoints := filepath.Join(r.pipeline.Backend.Path, "checkpoints")
	if _, err := os.Stat(checkpoints); err == nil {
		donors = append(donors, checkpoints)
	}
	done, err := r.chosen.reader.PreviewRestore(ctx, syncer.RestoreRequest{
		From: syncer.Selector{Number: r.commit.Number}, DeltaFrom: donors, Spool: r.targets.spool,
	})
	if err != nil {
		return err
	}
	r.tell(done.Commit, done.Needs)
	return nil
}

// carryOut notes what is to become of the storage path, pulls the checkpoint, and takes everything else out of the way. The order makes
// every crash harmless: while the checkpoint is not here, the note means nothing and the state is what it was; once it is, the note says what is
// left to do.
func (r *inPlace) carryOut(ctx context.Context) error {
	if err := r.dropDamaged(ctx); err != nil {
		return err
	}
	id := r.commit.Checkpoint.ID
	note := &checkpoint.Restoring{Checkpoint: id, Aside: r.freeName(), Seen: r.seen}
	if r.record.ID == uuid.Nil {
		r.record.ID = r.owner
	}
	if r.record.Writer == uuid.Nil {
		r.record.Writer = uuid.Must(uuid.NewRandom())
	}
	r.record.Restoring = note
	if err := r.dir.SavePipeline(r.record); err != nil {
		return err
	}
	r.at("inplace.noted")
	pulled, err := r.chosen.reader.Pull(ctx, syncer.PullRequest{
		From: syncer.Selector{Number: r.commit.Number}, Local: r.dir.Checkpoints(), Spool: r.targets.spool, Progress: told(r.req.Progress),
	})
	if err == nil {
		r.at("inplace.pulled")
		r.tell(pulled.Commit, pulled.Needs)
	}
	// Also after a pull that has failed: its note must not outlive it.
	settled, failed := settleInPlace(r.dir, r.record, r.pipeline.Backend.Repositories(), r.now())
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	r.record = settled
	if _, err := os.Stat(r.dir.AsidePath(note.Aside)); err == nil {
		r.report.SetAside = r.dir.AsidePath(note.Aside)
	}
	r.at("inplace.settled")
	return nil
}

// freeName is a name for what is set aside that no earlier restore has taken.
func (r *inPlace) freeName() string {
	base := fmt.Sprintf("%s-%s", r.now().UTC().Format("20060102T150405Z"), r.commit.Checkpoint.ID)
	name := base
	for n := 2; ; n++ {
		if _, err := os.Stat(r.dir.AsidePath(name)); err != nil {
			return name
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
}

func (r *inPlace) at(point string) {
	if r.hook != nil {
		r.hook(point)
	}
}

// dropDamaged reads a copy of the checkpoint that is here already from end to end. One that is damaged is set aside, to be pulled anew.
func (r *inPlace) dropDamaged(ctx context.Context) error {
	id := r.commit.Checkpoint.ID
	pin, err := r.dir.Checkpoints().Pin(id)
	if errors.Is(err, checkpoint.ErrNone) {
		return nil
	}
	if err == nil {
		err = checkpoint.Verify(ctx, pin.Dir(), pin.Manifest())
		pin.Release()
	}
	if !errors.Is(err, checkpoint.ErrCorrupt) {
		return err
	}
	r.log.Warn("the local copy is damaged and is set aside", "checkpoint", id, "error", err)
	return r.dir.Checkpoints().SetAside(id)
}

// settleInPlace ends the restore in place that a record speaks of: it is carried out where its checkpoint is here, else it has come to nothing and
// is forgotten. It answers with the record as it is saved then. Whoever is about to start from the path calls it first.
func settleInPlace(dir *checkpoint.Dir, record checkpoint.Pipeline, blocks []config.Sync, now time.Time) (checkpoint.Pipeline, error) {
	note := record.Restoring
	err := dir.KeepOnly(note.Checkpoint, note.Aside)
	if err == nil {
		err = remember(dir, record, blocks, now)
	}
	if err != nil && !errors.Is(err, checkpoint.ErrNone) {
		return record, err
	}
	record.Restoring = nil
	return record, dir.SavePipeline(record)
}

// remember lets the targets' workers know the commits that the restored state holds: the operator has chosen to go on from there, so a
// storage path that was put back to an earlier state is no longer taken by surprise.
func remember(dir *checkpoint.Dir, record checkpoint.Pipeline, blocks []config.Sync, now time.Time) error {
	for _, seen := range record.Restoring.Seen {
		for _, block := range blocks {
			if block.Target != seen.Target {
				continue
			}
			if err := syncFile(dir, block, record.ID).Remember(seen.Number, seen.Checkpoint, seen.Step, now); err != nil {
				return err
			}
		}
	}
	return nil
}

func syncFile(dir *checkpoint.Dir, block config.Sync, pipeline uuid.UUID) syncer.SyncFile {
	return syncer.SyncFile{File: dir.SyncFile(block.Target), Target: block.Target, Prefix: block.Prefix, Pipeline: pipeline}
}

// endRestoreInPlace does what a restore in place that was interrupted has left to do; record is what pipeline.json says.
func (p *pipeline) endRestoreInPlace(record checkpoint.Pipeline) (checkpoint.Pipeline, error) {
	note := record.Restoring
	if note == nil {
		return record, nil
	}
	record, err := settleInPlace(p.dir, record, p.cfg.Backend.Repositories(), p.host.opts.Now())
	if err != nil {
		return record, fmt.Errorf("end the interrupted restore in place: %w", err)
	}
	if _, err := os.Stat(p.dir.AsidePath(note.Aside)); errors.Is(err, fs.ErrNotExist) {
		p.log.Warn("a restore in place was interrupted before its checkpoint was here, nothing was changed", "checkpoint", note.Checkpoint)
		return record, nil
	}
	p.log.Warn("a restore in place was interrupted, and is done now", "checkpoint", note.Checkpoint, "set aside", p.dir.AsidePath(note.Aside))
	return record, nil
}
