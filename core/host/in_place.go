package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/core/syncer"
)

// InPlaceRequest asks that the next start of a pipeline that does not run begin from a checkpoint on a target.
type InPlaceRequest struct {
	Target       string // "" = the one that holds the newest of what is wanted
	From         Selection
	ReplaceNewer bool                    // also where what is here holds more than the checkpoint
	Progress     func(done, total int64) // told the stored bytes, from any goroutine; nil = nobody is
}

// RestoredInPlace tells of a restore in place: of one that was done, or of one that would be.
type RestoredInPlace struct {
	Restored

	Path     string          `json:"storage_path"`
	SetAside string          `json:"set_aside,omitempty"` // the folder that holds what was here; "" = there was nothing
	Ahead    []string        `json:"left_behind"`         // states that held more than the checkpoint, in words
	Desired  string          `json:"desired_state"`       // what the pipeline will be at the next start of its host
	Held     []InPlaceTarget `json:"held_targets"`        // that hold what the checkpoint does not: pushes wait there until they are adopted
	Unread   []InPlaceTarget `json:"unknown_targets"`     // that may
}

// InPlaceTarget is a target as a restore in place has found it.
type InPlaceTarget struct {
	Target string `json:"target"`
	Number uint64 `json:"number,omitempty"` // of its newest commit
	Step   uint64 `json:"step,omitempty"`
	Error  string `json:"error,omitempty"`
}

// NotNowError says that something is not possible in the state in which a pipeline is.
type NotNowError struct{ Err error }

func (e *NotNowError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *NotNowError) Unwrap() error { return e.Err }

// RestoreInPlace pulls a checkpoint into the pipeline's storage path and makes it what the next start begins from. What is there is moved to a folder
// beside, and nothing of it is deleted; where it holds more than the checkpoint the request must say that this is meant. The storage path is locked
// meanwhile. An error or a crash leaves all as it was, or leaves the rest to the next start of a host, which does it before anything else; an error says so.
// Nothing is written to a target: one whose newest commit the checkpoint does not hold is held from the next push on, until the operator adopts it.
//
// *NotNowError says that a host holds the path, that the pipeline is a standby, or that newer state is in the way; ErrNoCommit that there is no such
// checkpoint. The Offline must have been opened WithCircuit.
func (o *Offline) RestoreInPlace(ctx context.Context, req InPlaceRequest) (RestoredInPlace, error) {
	return o.restoreInPlace(ctx, &inPlace{Offline: o, req: req})
}

// PreviewInPlace tells what RestoreInPlace would do now, and changes nothing but what a crash has left. It reads the local checkpoints whole, to tell what need not be fetched.
func (o *Offline) PreviewInPlace(ctx context.Context, req InPlaceRequest) (RestoredInPlace, error) {
	return o.restoreInPlace(ctx, &inPlace{Offline: o, req: req, preview: true})
}

func (o *Offline) restoreInPlace(ctx context.Context, r *inPlace) (RestoredInPlace, error) {
	r.report = RestoredInPlace{Path: o.pipeline.Backend.Path, Ahead: []string{}, Held: []InPlaceTarget{}, Unread: []InPlaceTarget{}}
	if err := r.run(ctx); err != nil {
		return RestoredInPlace{}, fmt.Errorf("restore pipeline %q in place: %w", o.pipeline.Name, err)
	}
	return r.report, nil
}

// inPlace is one restore in place.
type inPlace struct {
	*Offline

	req     InPlaceRequest
	preview bool
	dir     *checkpoint.Dir // nil = a preview, and there is no storage path
	record  checkpoint.Pipeline
	fresh   bool // there is no pipeline.json
	targets *offlineTargets
	chosen  offlineTarget
	commit  *repository.Commit
	owner   uuid.UUID // of the repository
	seen    []checkpoint.SeenCommit
	report  RestoredInPlace
}

func (r *inPlace) run(ctx context.Context) (err error) {
	if err := r.openPath(); err != nil {
		return err
	}
	if r.dir != nil {
		defer r.dir.Close() //nolint:errcheck // the lock ends with the process at the latest
	}
	if err := r.recall(); err != nil {
		return err
	}
	if err := r.checkTarget(r.req.Target); err != nil {
		return err
	}
	// All of them, whichever is named: what the others hold decides whether they are held afterwards.
	if r.targets, err = r.openOf(ctx, "", r.record.ID); err != nil {
		return err
	}
	defer r.targets.close(ctx)
	if err := r.choose(ctx); err != nil {
		return err
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	r.lookAround(ctx)
	if r.preview {
		return r.foretell(ctx)
	}
	return r.carryOut(ctx)
}

// openPath takes the storage path, as a host would.
func (r *inPlace) openPath() error {
	path := r.pipeline.Backend.Path
	switch r.pipeline.Backend.Type {
	case config.MemoryBackend:
		return &NotNowError{errors.New(`storage "memory" keeps nothing from one run to the next: restore to a folder with --to`)}
	case config.ObjectBackend:
		return &NotNowError{errors.New(`storage "object" starts from the newest commit of its target, whatever lies here: restore to a folder with --to`)}
	}
	if _, err := os.Stat(path); r.preview && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dir, err := checkpoint.OpenDir(path, checkpoint.Options{Now: r.now, Hook: r.hook})
	if _, locked := errors.AsType[*checkpoint.LockedError](err); locked {
		return &NotNowError{fmt.Errorf("it must not run meanwhile: %w", err)}
	}
	if r.dir = dir; err != nil {
		return fmt.Errorf("take the storage path: %w", err)
	}
	return nil
}

// recall reads pipeline.json, and ends what an earlier restore in place has left.
func (r *inPlace) recall() (err error) {
	r.record, err = checkpoint.Pipeline{}, fs.ErrNotExist
	if r.dir != nil {
		r.record, err = r.dir.Pipeline()
	}
	if errors.Is(err, fs.ErrNotExist) {
		r.record, err, r.fresh = checkpoint.Pipeline{Desired: checkpoint.Desired(r.pipeline.Initial)}, nil, true
	}
	if err != nil {
		return err
	}
	r.report.Desired = string(r.record.Desired)
	if r.record.Standby || r.record.Desired == checkpoint.Standby {
		return &NotNowError{errors.New("it is a standby, which follows its target: activate it with " + r.commands().Activate() + ", or restore to a folder with --to")}
	}
	r.record, err = endInterrupted(r.dir, r.record, r.pipeline.Backend.Repositories(), r.now(), r.log)
	return err
}

// choose finds the commit, which the configured circuit must be able to start from.
func (r *inPlace) choose(ctx context.Context) (err error) {
	wanted := syncer.Selector(r.req.From)
	if r.chosen, err = r.targets.named(r.req.Target).choose(ctx, wanted); err != nil {
		return err
	}
	head, err := r.chosen.reader.Discover(ctx)
	if err != nil {
		return err
	}
	if r.commit, err = r.chosen.reader.Find(ctx, wanted); err != nil {
		return err
	}
	if head.Format != nil {
		r.owner = head.Format.PipelineID
	}
	if at := r.req.From.AsOf; !at.IsZero() {
		before := at.Sub(r.commit.Checkpoint.Created).Seconds()
		r.report.Before = &before
	}
	return nil
}

// compare refuses a checkpoint of another circuit, and to go back unasked.
func (r *inPlace) compare(ctx context.Context) error {
	c, err := r.circuit(r.pipeline)
	if err != nil {
		return fmt.Errorf("build circuit: %w", err)
	}
	if err := sameCircuit(c.Identity(), r.commit.Checkpoint.ID, circuitOf(r.commit)); err != nil {
		return err
	}
	standing, err := r.standing(ctx, c)
	if err == nil {
		err = r.doubt(standing)
	}
	if err != nil {
		return err
	}
	for _, ahead := range syncer.AheadOf(pointOf(r.commit), standing) {
		r.report.Ahead = append(r.report.Ahead, ahead.String())
	}
	if len(r.report.Ahead) == 0 || r.req.ReplaceNewer || r.preview {
		return nil
	}
	return &NotNowError{fmt.Errorf("commit %d of target %q (step %d) would take the place of what holds more: %s; to go back all the same, which keeps that in a folder beside, give the command again with --replace-newer",
		r.commit.Number, r.chosen.name, r.commit.Checkpoint.Step, strings.Join(r.report.Ahead, "; "))}
}

// standing are the states in the storage path. A live state that is damaged is none: no start would take it.
func (r *inPlace) standing(ctx context.Context, c circuit.Circuit) ([]syncer.Standing, error) {
	if r.dir == nil {
		return nil, nil
	}
	var all []syncer.Standing
	live, err := c.Inspect(ctx, r.dir.State())
	switch {
	case errors.Is(err, circuit.ErrDamaged):
	case err != nil:
		return nil, fmt.Errorf("read the live state, which must not be lost unseen: %w; mend that, or move %s away, and give the command again", err, r.dir.State())
	case live.Exists && foreign(r.dir, r.record) != nil:
		all = append(all, syncer.Standing{Name: "the live state", Unknown: foreign(r.dir, r.record)})
	case live.Exists && !live.Exact:
		all = append(all, syncer.Standing{Name: "the live state", Unknown: errors.New("its step cannot be told")})
	case live.Exists:
		all = append(all, syncer.Standing{Name: "the live state", Point: repository.Point{History: historyOf(r.record.History), Step: live.Step}})
	}
	manifests, err := r.dir.Checkpoints().List(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, m := range manifests {
		all = append(all, syncer.Standing{Name: fmt.Sprintf("local checkpoint %s", m.ID), Point: repository.Point{History: historyOf(m.History), Step: m.Step}})
	}
	if err != nil {
		all = append(all, syncer.Standing{Name: "a local checkpoint that cannot be read", Unknown: err})
	}
	return all, nil
}

// doubt says of every state here that it cannot be compared with the commit, where this path made that and knows nothing of it.
func (r *inPlace) doubt(standing []syncer.Standing) error {
	if r.dir == nil {
		return nil
	}
	forgotten, err := syncFile(r.dir, r.block(r.chosen.name), r.record.ID).Forgotten(r.record.Writer, r.commit)
	if forgotten {
		for i := range standing {
			standing[i].Unknown = errors.New("the storage path was put back to an earlier state, or is a copy: it knows nothing of the commit, which was made from it")
		}
	}
	if err != nil {
		return fmt.Errorf("tell whether %s knows of the commit: %w; see to it that its sync folder can be read", r.report.Path, err)
	}
	return nil
}

// lookAround compares the newest commit of each target with the chosen one.
func (r *inPlace) lookAround(ctx context.Context) {
	for _, t := range r.targets.open {
		head, err := syncer.Head{}, t.err
		if err == nil {
			head, err = t.reader.Discover(ctx)
		}
		switch {
		case err != nil:
			r.report.Unread = append(r.report.Unread, InPlaceTarget{Target: t.name, Error: err.Error()})
		case head.Commit == nil:
		case repository.Relate(pointOf(r.commit), pointOf(head.Commit)).OnHistory:
			c := head.Commit
			r.seen = append(r.seen, checkpoint.SeenCommit{Target: t.name, Number: c.Number, Checkpoint: c.Checkpoint.ID, Step: c.Checkpoint.Step})
		default:
			r.report.Held = append(r.report.Held, InPlaceTarget{Target: t.name, Number: head.Commit.Number, Step: head.Commit.Checkpoint.Step})
		}
	}
}

// tell fills in what the commit is and what it takes to have it here.
func (r *inPlace) tell(commit syncer.CommitInfo, needs syncer.Needs) {
	r.report.Restored = Restored{
		CheckpointView: commitView(r.chosen.name, commit), Preview: r.preview, Before: r.report.Before, Files: commit.Totals.Files,
		FetchedBytes: needs.Bytes, Requests: needs.Requests, Packs: needs.Packs, KeptBytes: needs.Kept,
	}
}

func circuitOf(c *repository.Commit) circuit.Identity {
	return circuit.Identity{Kind: c.Checkpoint.Identity.Kind, Fingerprint: c.Checkpoint.Identity.Fingerprint}
}

func pointOf(c *repository.Commit) repository.Point {
	return repository.Point{History: c.Checkpoint.History, Step: c.Checkpoint.Step}
}

func historyOf(local checkpoint.History) repository.History {
	history := make(repository.History, len(local))
	for i, reign := range local {
		history[i] = repository.Reign(reign)
	}
	return history
}
