package syncer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/repository"
)

// followRounds is how often one pull looks for its commit anew because retention took it meanwhile: each time there is a newer one.
const followRounds = 4

// FollowerConfig is a standby: a repository to follow and where the copies go.
type FollowerConfig struct {
	Target, Prefix string
	Own            *Reader   // of that repository, for any pipeline's; the follower itself asks that it stays one and the same
	Pipeline       uuid.UUID // whose it must be; Nil = as found, once there is one
	Pinned         uuid.UUID // the one checkpoint to have; Nil = always the newest

	Seed     *Reader // where to look while the repository holds nothing; nil = nowhere
	SeedName string
	SeedFrom Selector // what to take there

	Every time.Duration // the pull interval
	Local *checkpoint.Store
	Spool *Spool
	Have  *checkpoint.Followed // what earlier runs have pulled; nil = nothing
	// Keep saves what is here now, and whose it is, durably; older copies go only after it has returned nil.
	Keep func(now checkpoint.Followed, pipeline uuid.UUID) error
	// Copies is how many checkpoints stay, the newest included; at least 2.
	Copies int

	Now    func() time.Time // required
	Jitter func() float64   // in [0, 1); nil = math/rand
	Log    hclog.Logger     // required
}

// Follower keeps a warm copy of a repository's newest checkpoint. Its pulls are made one at a time by whoever owns it; Status may be asked
// from any goroutine. It starts nothing and waits for nothing: Status.Next says when the next pull is due.
type Follower struct {
	cfg    FollowerConfig
	listed []listedObject // the commits from the one that is here on, as last listed
	quiet  []listedObject // such a list of a repository of which nothing was left to pull; nil = none

	mu       sync.Mutex // guards what stands below; never held over a call that can block
	pipeline uuid.UUID
	status   FollowStatus
}

// FollowStatus is how a standby stands: a value, safe to keep.
type FollowStatus struct {
	Have    *checkpoint.Followed // what is here whole; nil = nothing
	Seen    *CommitInfo          // the newest commit that was seen of what is followed; nil = none yet
	OfSeed  bool                 // Seen is the seed's
	In      Place                // where Seen lies
	Lag     Lag                  // of Have behind Seen
	Doing   string               // what is here or missing, in words
	Looked  time.Time            // when the target last answered; zero = never
	Next    time.Time            // when the next pull is due; zero = at once
	Pulling *Progress            // nil = nothing is being pulled

	Error    string // of the last look or pull; "" = it went well
	Failures int    // in a row
	Bytes    int64  // stored bytes read by the pulls of this follower
}

// NewFollower makes no call to any store.
func NewFollower(cfg FollowerConfig) *Follower {
	if cfg.Jitter == nil {
		cfg.Jitter = rand.Float64
	}
	return &Follower{cfg: cfg, pipeline: cfg.Pipeline, status: FollowStatus{Have: cfg.Have}}
}

// Status answers at any time.
func (f *Follower) Status() FollowStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.status
	s.In = f.placeOf(s)
	s.Lag = LagOf(s.Have, s.Seen, s.In)
	return s
}

// placeOf is where the newest commit that was seen lies.
func (f *Follower) placeOf(s FollowStatus) Place {
	if s.OfSeed {
		return Place{Target: f.cfg.SeedName, Prefix: f.cfg.Seed.prefix, Seed: true}
	}
	return Place{Target: f.cfg.Target, Prefix: f.cfg.Prefix}
}

// Pull looks once and pulls what NextPull says, so that it is an ordinary local checkpoint; the one before stays until the new one is whole
// and noted, and after it. A pull that was interrupted goes on where it was. When ctx ends, that is no failure of the target.
func (f *Follower) Pull(ctx context.Context) error {
	err := f.pull(ctx)
	f.show(func(s *FollowStatus) {
		s.Pulling = nil
		if ctx.Err() != nil {
			return
		}
		now := f.cfg.Now()
		if err == nil {
			s.Error, s.Failures, s.Looked = "", 0, now
		} else {
			s.Error, s.Failures = explained(err), s.Failures+1
		}
		s.Next = now.Add(NextLook(f.cfg.Every, s.Failures, f.cfg.Jitter()))
	})
	return err
}

func (f *Follower) pull(ctx context.Context) (err error) {
	defer recovered(&err)
	f.forgetLost()
	for round := 1; ; round++ {
		step, err := f.look(ctx)
		if err != nil || step.Pull == nil {
			return err
		}
		if err = f.fetch(ctx, step); !errors.Is(err, ErrNoCommit) || round == followRounds {
			return err
		}
		f.cfg.Log.Info("the commit to pull was retired meanwhile, looking again", "target", f.cfg.Target, "commit", step.Pull.Number)
	}
}

// forgetLost notices that the copy is not on disk any more.
func (f *Follower) forgetLost() {
	have := f.Status().Have
	if have == nil {
		return
	}
	pin, err := f.cfg.Local.Pin(have.Checkpoint)
	if err == nil {
		pin.Release()
		return
	}
	f.listed, f.quiet = nil, nil
	f.show(func(s *FollowStatus) { s.Have = nil })
	f.cfg.Log.Warn("the copy of the standby is not there any more", "checkpoint", have.Checkpoint, "error", err)
}

// look finds out what there is and decides.
func (f *Follower) look(ctx context.Context) (FollowStep, error) {
	have := f.Status().Have
	if same, err := f.unchanged(ctx); err != nil || same {
		return FollowStep{}, err
	}
	facts := FollowFacts{Target: f.cfg.Target, Prefix: f.cfg.Prefix, Pinned: f.cfg.Pinned, Have: have, SeedName: f.cfg.SeedName}
	if err := f.lookAtOwn(ctx, &facts); err != nil {
		return FollowStep{}, err
	}
	if !facts.Holds && f.cfg.Seed != nil {
		c, err := f.cfg.Seed.Find(ctx, f.cfg.SeedFrom)
		switch {
		case err == nil:
			info := infoOf(c)
			facts.Seed = &info
		case !errors.Is(err, ErrNoCommit):
			return FollowStep{}, fmt.Errorf("seed: %w", err)
		}
	}
	step, err := NextPull(facts)
	if err == nil && step.Pull == nil {
		f.quiet = f.listed
	}
	f.show(func(s *FollowStatus) {
		if s.Seen, s.OfSeed = facts.Own, false; s.Seen == nil {
			s.Seen, s.OfSeed = facts.Seed, facts.Seed != nil
		}
		s.Doing = step.Why
	})
	return step, err
}

// lookAtOwn reads what the followed repository holds of what is wanted.
func (f *Follower) lookAtOwn(ctx context.Context, facts *FollowFacts) error {
	head, err := f.cfg.Own.Discover(ctx)
	if err != nil {
		return err
	}
	if head.Format != nil {
		if err := f.belongs(head.Format); err != nil {
			return err
		}
	}
	c := head.Commit
	facts.Holds = c != nil
	if c != nil && f.cfg.Pinned != uuid.Nil {
		if c, err = f.cfg.Own.Find(ctx, Selector{Checkpoint: f.cfg.Pinned}); errors.Is(err, ErrNoCommit) {
			return nil
		} else if err != nil {
			return err
		}
	}
	if c != nil {
		info := infoOf(c)
		facts.Own = &info
	}
	return nil
}

// belongs asks that the repository is the one that was followed before.
func (f *Follower) belongs(found *repository.Format) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pipeline == uuid.Nil {
		f.pipeline = found.PipelineID
	}
	if f.pipeline != found.PipelineID {
		return &OwnedError{
			Target: f.cfg.Target, Prefix: f.cfg.Prefix, Pipeline: f.pipeline, Name: f.cfg.Own.pipelineName, Owner: found.PipelineID, OwnerName: found.PipelineName,
		}
	}
	return nil
}

// unchanged answers with one short listing whether a repository whose newest commit is here has got no further. A checkpoint that was asked for
// by id and is here needs not even that.
func (f *Follower) unchanged(ctx context.Context) (bool, error) {
	have := f.Status().Have
	switch {
	case have == nil || have.Seed:
		return false, nil
	case f.cfg.Pinned != uuid.Nil:
		return have.Checkpoint == f.cfg.Pinned, nil
	}
	var err error
	own := f.cfg.Own
	f.listed, err = own.objectsFrom(ctx, repository.CommitPrefix(own.prefix), repository.CommitKey(own.prefix, have.Number-1), repository.ParseCommitKey)
	return f.quiet != nil && slices.EqualFunc(f.listed, f.quiet, listedObject.same), err
}

// fetch makes the commit a local checkpoint and notes it.
func (f *Follower) fetch(ctx context.Context, step FollowStep) error {
	reader, target := f.cfg.Own, f.cfg.Target
	if step.Seed {
		reader, target = f.cfg.Seed, f.cfg.SeedName
	}
	var done int64
	_, err := reader.Pull(ctx, PullRequest{
		From: Selector{Number: step.Pull.Number}, Local: f.cfg.Local, Spool: f.cfg.Spool,
		Progress: func(now Progress) { f.show(func(s *FollowStatus) { s.Pulling, done = &now, now.Done }) },
	})
	f.show(func(s *FollowStatus) { s.Bytes += done })
	if err != nil {
		return err
	}
	now := checkpoint.Followed{
		Target: target, Prefix: reader.prefix, Number: step.Pull.Number, Checkpoint: step.Pull.Checkpoint.ID, Step: step.Pull.Checkpoint.Step,
		Created: step.Pull.Checkpoint.Created, Seed: step.Seed,
	}
	f.mu.Lock()
	pipeline := f.pipeline
	f.mu.Unlock()
	if err := f.cfg.Keep(now, pipeline); err != nil {
		return fmt.Errorf("note that commit %d is here: %w", now.Number, err)
	}
	f.listed, f.quiet = nil, nil
	f.show(func(s *FollowStatus) { s.Have, s.Doing = &now, "the newest commit is here" })
	if _, err := f.cfg.Local.CollectFor(now.Checkpoint, max(2, f.cfg.Copies)); err != nil {
		f.cfg.Log.Error("older copies not removed", "error", err)
	}
	return nil
}

func (f *Follower) show(change func(*FollowStatus)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.status)
}

// Trouble tells why a call of the follower is repeated at the moment, and when it is made again. "" = none is.
func (f *Follower) Trouble() (why string, next time.Time) {
	if why, next = f.cfg.Own.Trouble(); why == "" && f.cfg.Seed != nil {
		return f.cfg.Seed.Trouble()
	}
	return why, next
}
