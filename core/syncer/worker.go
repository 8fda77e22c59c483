package syncer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
)

// Config is one sync block: a pipeline and the target its checkpoints go to.
type Config struct {
	Target string // the target's name
	Prefix string // of the repository on it, see repository.CheckPrefix
	Store  Store

	Pipeline     uuid.UUID
	PipelineName string
	Writer       repository.Writer // of this storage path, in this run of the host
	Host         string            // the machine's name, for whoever is fenced by us
	WrittenBy    string            // the version, as "cairn 0.1.0"

	Local     *checkpoint.Store
	Spool     *Spool
	StateFile string   // checkpoint.Dir.SyncFile
	Fencing   Fencing  // "" = FencingRequired
	Origin    Origin   // for the remedies, as Follows is
	Follows   string   // the target that the pipeline follows as a standby; "" = none
	Slots     *Limiter // shared by all workers of one target; nil = a limiter of its own with DefaultConcurrency

	Retention *repository.Retention // what Maintain retires; nil = every commit is kept

	RetryBudget time.Duration    // how long one call is repeated; 0 = RetryBudget
	AskBudget   time.Duration    // the same, for Pin, Unpin and Pins, whose callers wait for the answer; 0 = RetryBudget
	Now         func() time.Time // required
	Jitter      func() float64   // in [0, 1), for the backoff; nil = math/rand
	Log         hclog.Logger     // nil = none
}

// Worker pushes one pipeline's checkpoints to one target, one job at a time. All methods may be called from any goroutine; they start
// none that outlives them.
type Worker struct {
	cfg    Config
	source source
	memory memory
	packs  *packer
	turn   chan struct{} // holds one token: whoever has it runs a job, and owns session, calls and state
	calls  *caller

	session *session
	codec   commitCodec // of every session
	wrong   mutants     // of every session
	probe   probing     // of every session
	state   *state      // as saved, or about to be

	upkeep chan struct{} // holds one token: whoever has it maintains the repository, and owns memo
	memo   *memo

	mu        sync.Mutex // guards what Status shows, below; never held over a call that can block
	shown     state      // a copy that nobody changes
	running   *tally     // nil = no job
	condition Condition
	reason    string
	behind    uint64
	epoch     uint64
	head      uint64
	takenBy   *repository.Epoch
	silence   string // why the target did not say how it stands when it was last asked; "" = it did
	asking    *tally // of a look; nil = none is under way
	trouble   string

	stand       *session // a copy of session as the last job left it, for maintenance; nobody changes it
	failures    uint64   // jobs that have failed, for maintenance: they may have left packs behind
	maintenance *Maintenance
}

// Open makes the worker and reads what it remembers of earlier runs. It makes no call to the store: a target that is down does not keep
// a host from starting. A damaged state file is set aside and told in Status.Trouble.
func Open(cfg Config) (*Worker, error) {
	return open(cfg, localSource{cfg.Local}, stateFile(cfg.StateFile))
}

func open(cfg Config, src source, m memory) (*Worker, error) {
	if err := repository.CheckPrefix(cfg.Prefix); err != nil {
		return nil, fmt.Errorf("target %q: %w", cfg.Target, err)
	}
	packs, err := newPacker(cfg.Spool)
	if err != nil {
		return nil, err
	}
	t := tuning{slots: cfg.Slots, budget: cfg.RetryBudget, jitter: cfg.Jitter, log: cfg.Log}.withDefaults()
	cfg.Slots, cfg.Log = t.slots, t.log
	w := &Worker{
		cfg: cfg, source: src, memory: m, packs: packs, turn: make(chan struct{}, 1), upkeep: make(chan struct{}, 1), condition: Ready,
		codec: commitCodec{encode: repository.EncodeCommit, decode: repository.DecodeCommit},
	}
	w.calls = t.caller(cfg.Target, cfg.Now, nil) // each job brings its own tally
	w.calls.log = cfg.Log
	w.probe = w.tryRights
	fresh := state{Target: cfg.Target, Prefix: cfg.Prefix, Pipeline: cfg.Pipeline, FirstSeen: cfg.Now().UTC()}
	if w.state, w.trouble, err = recall(m, fresh); err != nil {
		return nil, fmt.Errorf("target %q: %w", cfg.Target, err)
	}
	if w.trouble != "" {
		cfg.Log.Warn("sync state was damaged", "target", cfg.Target, "reason", w.trouble)
	}
	w.session, w.maintenance = w.newSession(), w.state.Maintenance
	if err := w.save(); err != nil {
		return nil, fmt.Errorf("target %q: %w", cfg.Target, err)
	}
	w.show(func() {})
	return w, nil
}

func (w *Worker) commands() Commands {
	return Commands{Pipeline: w.cfg.PipelineName, Target: w.cfg.Target, Follows: w.cfg.Follows, From: w.cfg.Origin}
}

// newSession begins a reign anew. What the session before has claimed is not claimed again.
func (w *Worker) newSession() *session {
	var over uint64
	if w.session != nil {
		over = max(w.session.over, w.session.epoch)
	}
	return &session{
		over:   over,
		remote: remote{calls: w.calls, store: w.cfg.Store, prefix: w.cfg.Prefix, commands: w.commands(), advisory: w.cfg.Fencing == FencingAdvisory},
		target: w.cfg.Target, writer: w.cfg.Writer, host: w.cfg.Host, writtenBy: w.cfg.WrittenBy, now: w.cfg.Now,
		adopted: w.state.Adopted, codec: w.codec, wrong: w.wrong, probe: w.probe, fencing: w.cfg.Fencing, log: w.cfg.Log,
		format: repository.Format{
			PipelineID: w.cfg.Pipeline, PipelineName: w.cfg.PipelineName, WrittenBy: w.cfg.WrittenBy,
		},
	}
}

// Push runs one job and returns when it has ended: nil = the checkpoint is committed on the target, and that was confirmed. It waits
// while another job runs. The checkpoint is pinned while it is pushed; checkpoint.ErrNone when it is not there. The other errors to ask for
// are *FencedError, *HeldError, *LostError, *HeadLostError, *VanishedError, *OwnedError, *RefusedError, ErrUnresolved, ErrSuperseded and the codes of sdk.
func (w *Worker) Push(ctx context.Context, job Job) error {
	if err := w.take(ctx); err != nil {
		return err
	}
	defer w.release()
	tally := w.begin(job)
	err := w.push(ctx, job)
	w.end(ctx, tally, err)
	return err
}

func (w *Worker) push(ctx context.Context, job Job) (err error) {
	defer recovered(&err)
	p, err := w.source.pin(job.Checkpoint)
	if err != nil {
		return fmt.Errorf("push checkpoint %s: %w", job.Checkpoint, err)
	}
	defer p.Release()
	w.session.was, w.session.damage = w.state.held(), w.state.Damage
	if w.state.recalled {
		w.session.knows = w.state.knows
	}
	if job.Trigger == Requested {
		w.session.doubt() // who asks is not answered from memory
	}
	err = w.session.push(ctx, p, w.packs)
	if _, vanished := errors.AsType[*VanishedError](err); vanished {
		w.session = w.newSession()
	}
	return err
}

// Adopt is the operator's word that this pipeline's state shall continue the repository, whatever lies there: it releases a held target and
// restarts a fenced session. It only looks; the next push claims. Should another commit come before that push, the target is held again. Where
// nothing lies, what is remembered as committed there is given up, and the next push makes a new repository.
func (w *Worker) Adopt(ctx context.Context) error {
	if err := w.take(ctx); err != nil {
		return err
	}
	defer w.release()
	w.calls.note = newTally(w.cfg.Now, JobRecord{})
	fresh := w.newSession()
	newest, err := fresh.look(ctx)
	if err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	var word *adoption
	if newest != nil {
		word = &adoption{Commit: newest.Number, SHA256: newest.sum}
	} else {
		w.state.forget()
	}
	if w.session.fence != nil || w.session.phase == unclaimed {
		w.session = fresh
	}
	w.session.adopted = word
	w.state.Adopted = word
	err = w.save()
	w.show(func() {
		w.condition, w.reason, w.behind, w.takenBy, w.silence = Ready, "", 0, nil, ""
		w.epoch = w.session.epoch
	})
	w.cfg.Log.Info("target adopted", "target", w.cfg.Target, "commit", w.state.adoptedCommit())
	return err
}

// take waits for the worker's turn.
func (w *Worker) take(ctx context.Context) error {
	select {
	case w.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("target %q: wait for the running job: %w", w.cfg.Target, ctx.Err())
	}
}

func (w *Worker) release() { <-w.turn }
