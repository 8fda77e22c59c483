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
	"github.com/hashicorp/go-hclog"

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

// carryOut brings the checkpoint, notes what is to become of the storage path, and takes everything else out of the way. The order makes every crash
// harmless. A checkpoint that is here already is read, mended where it is damaged and compared with the commit before a note stands that a start would
// act on. For one that is not, the note comes first and means nothing until it is: without it the next start might take the new checkpoint for its own.
func (r *inPlace) carryOut(ctx context.Context) error {
	here, damage, err := r.localCopy(ctx)
	if err != nil {
		return err
	}
	if here {
		if err := r.pull(ctx, damage); err != nil {
			return err
		}
	}
	noted := r.noted()
	if err := r.note(noted); err != nil {
		return err
	}
	if !here {
		if err := r.pull(ctx, nil); err != nil {
			return r.takeBack(err, "while the checkpoint is not here, the next start of a host changes nothing for it, and forgets it")
		}
	}
	return r.settle(noted)
}

// localCopy reads a copy of the checkpoint that is here already from end to end. damage is what is wrong with it.
func (r *inPlace) localCopy(ctx context.Context) (here bool, damage, err error) {
	pin, err := r.dir.Checkpoints().Pin(r.commit.Checkpoint.ID)
	if errors.Is(err, checkpoint.ErrNone) {
		return false, nil, nil
	}
	if err == nil {
		err = checkpoint.Verify(ctx, pin.Dir(), pin.Manifest())
		pin.Release()
	}
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return true, err, nil
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("read the copy of the checkpoint that is here: %w; mend that, or move its folder below %s away to have it fetched anew", err, filepath.Join(r.report.Path, "checkpoints"))
	}
	return true, nil, err
}

// pull brings the checkpoint here, in the place of a damaged copy if there is one.
func (r *inPlace) pull(ctx context.Context, damage error) error {
	if damage != nil {
		r.log.Warn("the local copy is damaged: it is fetched anew, and gives way when that is whole", "checkpoint", r.commit.Checkpoint.ID, "error", damage)
	}
	pulled, err := r.chosen.reader.Pull(ctx, syncer.PullRequest{
		From: syncer.Selector{Number: r.commit.Number}, Local: r.dir.Checkpoints(), Instead: damage != nil, Spool: r.targets.spool, Progress: told(r.req.Progress),
	})
	if err != nil {
		return err
	}
	r.at("inplace.pulled")
	r.tell(pulled.Commit, pulled.Needs)
	return nil
}

// noted is the record with the note of this restore.
func (r *inPlace) noted() checkpoint.Pipeline {
	noted := r.record
	if noted.ID == uuid.Nil {
		noted.ID = r.owner
	}
	if noted.Writer == uuid.Nil {
		noted.Writer = uuid.Must(uuid.NewRandom())
	}
	noted.Restoring = &checkpoint.Restoring{Checkpoint: r.commit.Checkpoint.ID, Aside: r.freeName(), Seen: r.seen}
	return noted
}

func (r *inPlace) note(noted checkpoint.Pipeline) error {
	if err := r.dir.SavePipeline(noted); err != nil {
		return r.takeBack(fmt.Errorf("note in %s what is to be restored: %w; nothing was moved; see to it that this folder can be written", r.report.Path, err), "where the checkpoint is here, the next start of a host carries the restore out")
	}
	r.at("inplace.noted")
	return nil
}

// takeBack makes pipeline.json what it was before a restore that has failed with cause: no start shall act on what a person was told has failed. Where that
// cannot be done, it says what the note will do.
func (r *inPlace) takeBack(cause error, otherwise string) error {
	now, err := r.dir.Pipeline()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cause
	case err == nil && now.Restoring == nil && !r.fresh:
		return cause // the note was never written
	case err == nil && r.fresh:
		err = r.dir.RemovePipeline()
	case err == nil:
		err = r.dir.SavePipeline(r.record)
	}
	if err == nil {
		return cause
	}
	return fmt.Errorf("%w; and the note of it in pipeline.json could not be taken back (%w): %s; mend that and give the command again", cause, err, otherwise)
}

// settle does what the note says.
func (r *inPlace) settle(noted checkpoint.Pipeline) error {
	settled, done, err := settleInPlace(r.dir, noted, r.pipeline.Backend.Repositories(), r.now())
	if err == nil && !done {
		err = fmt.Errorf("checkpoint %s was taken out of %s meanwhile, and nothing was changed: give the command again", noted.Restoring.Checkpoint, r.report.Path)
	}
	if err != nil {
		return err
	}
	r.record = settled
	aside := r.dir.AsidePath(noted.Restoring.Aside)
	if _, err := os.Stat(aside); err == nil {
		r.report.SetAside = aside
	}
	r.at("inplace.settled")
	return nil
}

// underWay says of a restore that has met an error where it cannot be taken back that it is not undone, either.
func underWay(dir *checkpoint.Dir, note *checkpoint.Restoring, err error) error {
	return fmt.Errorf("it is under way, and neither done nor undone: checkpoint %s is here, and what was here before is being moved to %s: %w; mend that: the next start of a host, "+
		"or the same command again, does the rest before anything else", note.Checkpoint, dir.AsidePath(note.Aside), err)
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

// settleInPlace ends the restore in place that a record speaks of: it is carried out where its checkpoint is here, else it has come to nothing and
// is forgotten. It answers with the record as it is saved then, and whether it was carried out. Whoever is about to start from the path calls it first.
func settleInPlace(dir *checkpoint.Dir, record checkpoint.Pipeline, blocks []config.Sync, now time.Time) (_ checkpoint.Pipeline, done bool, err error) {
	note, settled := record.Restoring, record
	settled.Restoring, settled.Openers = nil, []uuid.UUID{uuid.Nil} // the state that is set aside, moved back alone, would undo the restore
	err = dir.KeepOnly(note.Checkpoint, note.Aside)
	if errors.Is(err, checkpoint.ErrNone) {
		settled.Openers = record.Openers // nothing was moved
		return settled, false, dir.SavePipeline(settled)
	}
	if err == nil {
		err = remember(dir, record, blocks, now)
	}
	if err == nil {
		err = dir.SavePipeline(settled)
	}
	if err != nil {
		return record, false, underWay(dir, note, err)
	}
	return settled, true, nil
}

// endInterrupted settles the restore in place that an earlier run has left, if there is one, and tells what became of it.
func endInterrupted(dir *checkpoint.Dir, record checkpoint.Pipeline, blocks []config.Sync, now time.Time, log hclog.Logger) (checkpoint.Pipeline, error) {
	note := record.Restoring
	if note == nil {
		return record, nil
	}
	record, done, err := settleInPlace(dir, record, blocks, now)
	switch {
	case err != nil:
		return record, fmt.Errorf("end the interrupted restore in place: %w", err)
	case done:
		log.Warn("a restore in place was interrupted, and is done now", "checkpoint", note.Checkpoint, "set aside", dir.AsidePath(note.Aside))
	default:
		log.Warn("a restore in place was interrupted before its checkpoint was here, nothing was changed", "checkpoint", note.Checkpoint)
	}
	return record, nil
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
