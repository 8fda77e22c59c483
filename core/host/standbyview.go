package host

import (
	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// viewStandby shows a pipeline that has no state of its own but a copy.
func (p *pipeline) viewStandby(l *look) {
	status := syncer.FollowStatus{Have: l.followed}
	if l.follower != nil {
		status = l.follower.Status()
	}
	block, _ := p.cfg.Backend.Follows() // one that cannot follow any more shows what it has pulled
	view := &client.StandbyView{
		Target: block.Target, PullInterval: written(block.PullInterval), Pulled: followedView(status.Have),
		Lag:      lagView(status.Lag),
		LookedAt: wall(status.Looked), Error: status.Error, Failures: status.Failures, PulledBytes: status.Bytes, ActivationError: l.refused,
	}
	if seen := status.Seen; seen != nil {
		view.Newest = &client.Commit{Target: block.Target, Number: seen.Number, UUID: seen.Checkpoint.ID, Step: seen.Checkpoint.Step, Created: seen.Checkpoint.Created.UTC()}
		if seed, ok := p.cfg.Backend.Seed(); ok && status.OfSeed {
			view.Newest.Target, view.Newest.Seed = seed.Target, true
		}
	}
	if now := status.Pulling; now != nil {
		view.Pulling = &client.Progress{Commit: now.Commit, Done: now.Done, Total: now.Total}
	}
	if l.view.State == string(stateStandby) && status.Pulling == nil {
		view.NextPull = due(status.Next, p.host.opts.Now())
	}
	l.view.Standby = view
	if have := status.Have; have != nil {
		l.view.Step, l.view.Checkpoint = have.Step, point(have.Checkpoint, have.Step, have.Created)
	}
}

func lagView(lag syncer.Lag) client.LagView {
	view := client.LagView{Seconds: lag.Age.Seconds()}
	if !lag.NoSteps {
		view.Steps = &lag.Steps
	}
	if !lag.NoCommits {
		view.Commits = &lag.Commits
	}
	return view
}

func followedView(f *checkpoint.Followed) *client.Commit {
	if f == nil {
		return nil
	}
	return &client.Commit{Target: f.Target, Seed: f.Seed, Number: f.Number, UUID: f.Checkpoint, Step: f.Step, Created: f.Created.UTC()}
}
