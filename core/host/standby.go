package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/api"
	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// asStandby follows a target until the pipeline is activated and all is in place for it to start. A pipeline that is no standby passes through.
func (p *pipeline) asStandby(ctx context.Context, r *run) error {
	if err := p.recall(); err != nil {
		return err
	}
	for {
		record := p.known()
		switch {
		case !record.Standby && p.wants() != checkpoint.Standby:
			return nil
		case record.Activation == nil:
			if err := p.follow(ctx, r); err != nil {
				return err
			}
		default:
			if done, err := p.activate(ctx, r, *record.Activation); done || err != nil {
				return err
			}
		}
	}
}

// wants is the desired state.
func (p *pipeline) wants() checkpoint.Desired {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.desired
}

// follow pulls what is new, again and again, until an activation is asked for. It returns an error only when the run is to end.
func (p *pipeline) follow(ctx context.Context, r *run) error {
	block, ok := p.cfg.Backend.Follows()
	if !ok {
		return fmt.Errorf("follow: no sync block has a pull_interval: add one to the block of the target that the primary pushes to, or run %s, then %s", p.commands("").Stop(), p.commands("").Start())
	}
	if err := p.becomeStandby(); err != nil {
		return err
	}
	follower, err := p.newFollower(block)
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	p.mu.Lock()
	p.state, p.follower, r.endFollow = stateStandby, follower, stop
	asked := p.record.Activation != nil // between the look at the record and now
	p.mu.Unlock()
	if asked {
		return nil
	}
	p.log.Info("standby following", "target", block.Target, "prefix", block.Prefix, "every", block.PullInterval)
	r.phase(fmt.Sprintf("following target %q", block.Target), func() string { return p.host.followTrouble(block.Target, follower) })
	p.pullUntil(following, follower)
	return ctx.Err()
}

// pullUntil ends, at once, when ctx does.
func (p *pipeline) pullUntil(ctx context.Context, follower *syncer.Follower) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := follower.Pull(ctx); err != nil && ctx.Err() == nil {
			s := follower.Status()
			p.log.Warn("standby pull failed", "error", s.Error, "failures", s.Failures, "next", s.Next)
		}
		timer.Reset(follower.Status().Next.Sub(p.host.opts.Now()))
	}
}

// becomeStandby notes the role before anything else, and takes what a primary has left out of the way: a standby has no live state, so none can
// be taken for the newest when it is activated.
func (p *pipeline) becomeStandby() error {
	err := p.changeRecord(func(record *checkpoint.Pipeline) {
		record.Standby, record.Desired = true, checkpoint.Standby
		if record.Activation != nil {
			record.Desired = checkpoint.Running
		}
		if record.Writer == uuid.Nil {
			record.Writer = uuid.Must(uuid.NewRandom())
		}
	})
	if err != nil {
		return fmt.Errorf("note that this is a standby: %w", err)
	}
	p.endRest()
	left, err := os.ReadDir(p.dir.State())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(left) == 0 {
		return nil
	}
	aside := p.leftState()
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Rename(p.dir.State(), aside); err != nil {
		return err
	}
	p.log.Warn("the live state of this former primary is set aside; what of it was never pushed is only there", "to", aside)
	return syncDir(filepath.Dir(aside))
}

// leftState is where the live state of a former primary lies.
func (p *pipeline) leftState() string { return p.dir.State() + ".before-standby" }

func (p *pipeline) newFollower(block config.Sync) (*syncer.Follower, error) {
	own, err := p.reader(block, p.host.opts.pace.remote)
	if err != nil {
		return nil, err
	}
	record := p.known()
	cfg := syncer.FollowerConfig{
		Target: block.Target, Prefix: block.Prefix, Own: own, Pipeline: record.ID, Pinned: p.pinned(), Every: block.PullInterval,
		Local: p.dir.Checkpoints(), Spool: p.host.spool, Have: record.Followed, Keep: p.keepFollowed, Copies: p.cfg.Checkpoint.Keep,
		Now: p.host.opts.Now, Log: p.log.Named("syncer"),
	}
	if seed, ok := p.cfg.Backend.Seed(); ok {
		if cfg.Seed, err = p.seedReader(seed, p.host.opts.pace.remote); err != nil {
			return nil, err
		}
		cfg.SeedName, cfg.SeedFrom = seed.Target, p.seedSelector(seed)
	}
	return syncer.NewFollower(cfg), nil
}

// pinned is the one checkpoint to start from, unless that was honoured before; Nil = the newest.
func (p *pipeline) pinned() uuid.UUID {
	return syncer.StartFacts{From: p.startFrom(), Honoured: p.known().Honoured}.Selector().Checkpoint
}

// keepFollowed notes what was pulled.
func (p *pipeline) keepFollowed(now checkpoint.Followed, pipeline uuid.UUID) error {
	return p.changeRecord(func(record *checkpoint.Pipeline) {
		record.Followed = &now
		if record.ID == uuid.Nil {
			record.ID = pipeline // Nil still, while only a seed was seen
		}
	})
}

// followTrouble tells why a pull takes long, or what is waited for.
func (h *Host) followTrouble(target string, f *syncer.Follower) string {
	if why := h.down(target); why != "" {
		return why
	}
	if why, _ := f.Trouble(); why != "" {
		return why
	}
	s := f.Status()
	if s.Pulling != nil {
		return fmt.Sprintf("pulling commit %d, %d of %d bytes", s.Pulling.Commit, s.Pulling.Done, s.Pulling.Total)
	}
	if s.Error != "" {
		return s.Error
	}
	return s.Doing
}

// Standby makes a stopped pipeline, a failed one, or a primary that was fenced, follow its target. A primary that still holds its target is
// refused: it is stopped first, so that its last checkpoint is pushed.
func (p *pipeline) Standby(context.Context) error {
	p.acting.Lock()
	defer p.acting.Unlock()
	block, ok := p.cfg.Backend.Follows()
	if !ok {
		return api.Errorf(http.StatusBadRequest, client.CodeNoSync, "pipeline %q has nothing to follow: add pull_interval to the sync block of the target that the primary pushes to", p.cfg.Name)
	}
	if err := p.canFollow(block.Target); err != nil {
		return err
	}
	err := p.changeRecord(func(record *checkpoint.Pipeline) {
		record.Desired, record.Standby, record.Activation = checkpoint.Standby, true, nil // what a standby has followed stays noted: a state of its own has taken that out
	})
	if err != nil {
		return fmt.Errorf("keep desired state of pipeline %q: %w", p.cfg.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.work == nil:
		return notRunning(p.cfg.Name, "the host is ending")
	case p.underWay():
		p.run.thenFollow = true
		p.stopRun(p.run, true)
	default:
		p.host.retryPlugins(p.cfg, "")
		p.launch()
	}
	return nil
}

// canFollow says whether the pipeline may become a standby now.
func (p *pipeline) canFollow(target string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.work == nil:
		return notRunning(p.cfg.Name, "the host is starting or ending")
	case !p.underWay() || p.state == stateRunning && p.fencedOn(target):
		return nil
	case p.state == stateRunning:
		return api.Errorf(http.StatusBadRequest, client.CodeInvalidTransition,
			"cannot make pipeline %q a standby: it is %s and has not seen that another host has taken target %q over; stop it first, which pushes its last checkpoint where push_on_shutdown says so",
			p.cfg.Name, p.shownState(), target).With("state", p.shownState()).With("desired_state", string(p.desired))
	}
	return p.transition("make a standby of")
}

// fencedOn says whether another writer has taken the target over; the caller holds mu.
func (p *pipeline) fencedOn(target string) bool {
	for _, w := range p.workers {
		if s := w.Status(); s.Target == target {
			return s.Condition == syncer.Fenced
		}
	}
	return false
}
