package host

import (
	"context"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/pluginhost"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// shownState refines the pipeline's state by its loop's; the caller holds mu.
func (p *pipeline) shownState() string {
	if p.state == stateRunning && p.desired == checkpoint.Paused {
		return "paused"
	}
	return string(p.state)
}

// look is one look at a pipeline and, where it runs, at its loop.
type look struct {
	view    client.PipelineView
	loop    *circuit.Status     // nil = it has not run
	workers []syncer.Status     // in the order of the sync blocks; empty before the first state
	summary circuit.SyncSummary // as saved, for where no loop tells
	rest    rest
	run     *run

	follower *syncer.Follower // nil = the pipeline is no standby, or has not followed in this host
	standby  bool
	followed *checkpoint.Followed
	refused  string

	reading map[string]syncer.Progress

	late []*syncer.Worker // of the targets that were not claimed when this run was activated
}

// look asks worker and loop only after it has let go of mu: their own answers may have to wait for a disk.
func (p *pipeline) look() look {
	l, loop, workers := p.glance()
	for _, w := range workers {
		l.workers = append(l.workers, w.Status())
	}
	if loop != nil {
		status := loop.Status()
		l.loop = &status
		l.view.Step, l.view.Doing = status.Step, status.Why
		if full := status.StepFailure; full != nil {
			l.view.StepError = full.Error
		}
		if over(status) {
			l.view.Doing = l.run.progress()
		}
		l.view.Checkpoint = point(status.Checkpoint.Published.ID, status.Checkpoint.Published.Step, status.Checkpoint.Published.At)
		if last := status.Checkpoint.Last; last != nil {
			l.view.CheckpointError = last.Error
		}
	} else {
		if l.run != nil {
			l.view.Doing = l.run.progress()
		}
		l.view.Step = l.rest.step
		l.view.Checkpoint = point(l.rest.newest.ID, l.rest.newest.Step, l.rest.newest.At)
	}
	if l.standby {
		p.viewStandby(&l)
	}
	if l.ended() {
		l.view.Doing = ""
	}
	return l
}

// ended says that what the loop last told is of a run that is over.
func (l look) ended() bool {
	return l.view.State == string(stateStopped) || l.view.State == string(stateFailed)
}

// glance is what the pipeline itself knows.
func (p *pipeline) glance() (look, *circuit.Loop, []*syncer.Worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := look{run: p.run, summary: p.summary, rest: p.rest, view: client.PipelineView{
		Name: p.cfg.Name, ID: p.record.ID, State: p.shownState(), DesiredState: string(p.desired),
		Circuit: circuitView(p.cfg), Storage: p.host.storageView(p.cfg),
		Schedule: client.CheckpointRule{Interval: written(p.cfg.Checkpoint.Interval), Keep: p.cfg.Checkpoint.Keep},
	}}
	l.follower, l.refused, l.reading = p.follower, p.refused, maps.Clone(p.reading)
	l.standby, l.followed = p.record.Standby || p.desired == checkpoint.Standby, p.record.Followed
	if p.err != nil {
		l.view.Error = p.err.Error()
	}
	if p.run == nil {
		return l, nil, p.workers
	}
	l.view.Incarnation, l.view.StartedFrom, l.late = &p.run.id, p.run.from, p.run.late
	return l, p.run.loop, p.workers
}

// View is the pipeline as GET shows it.
func (p *pipeline) View() client.PipelineView {
	l := p.look()
	l.view.Targets = []client.TargetView{}
	for i, block := range p.cfg.Backend.Repositories() {
		l.view.Targets = append(l.view.Targets, p.host.targetView(l, i, block))
	}
	l.view.Inputs = inputStats(p.cfg.Name, l.counted())
	return l.view
}

func circuitView(cfg config.Pipeline) client.CircuitView {
	view := client.CircuitView{Type: "sql", Inputs: []string{}}
	for _, in := range cfg.Circuit.Inputs {
		view.Inputs = append(view.Inputs, in.Name)
	}
	return view
}

func (h *Host) storageView(cfg config.Pipeline) client.StorageView {
	b := cfg.Backend
	view := client.StorageView{Type: string(b.Type), Path: b.Path, StartFrom: b.Start.From, FailIfNoCheckpoint: b.Start.FailIfNoCheckpoint, Sync: []client.SyncView{}}
	for _, block := range b.Repositories() {
		t := h.targets[block.Target]
		view.Sync = append(view.Sync, client.SyncView{
			Target: block.Target, Plugin: t.cfg.Plugin.Name, Prefix: block.Prefix, PushInterval: written(block.PushInterval),
			PullInterval: written(block.PullInterval), PushOnShutdown: block.PushOnShutdown, Fencing: block.Fencing,
			Retention: retentionView(block.Retention), Config: t.cfg.Body.Redacted(),
		})
	}
	if seed, ok := b.Seed(); ok {
		view.Seed = &client.SeedView{Target: seed.Target, Prefix: seed.Prefix, From: seed.From}
	}
	return view
}

func (h *Host) targetView(l look, i int, block config.Sync) client.TargetView {
	t := h.targets[block.Target]
	fencing := syncer.Fencing(block.Fencing)
	view := client.TargetView{
		Target: block.Target, State: string(syncer.Ready), Fencing: block.Fencing, Warnings: syncer.Warnings(fencing, nil), Jobs: []client.JobView{},
		Plugin: pluginView(t.plugin.Status()),
	}
	if i < len(l.workers) {
		l.describeTarget(&view, l.workers[i])
	}
	if now, ok := l.reading[block.Target]; ok {
		view.Verifying = &client.Progress{Commit: now.Commit, Done: now.Done, Total: now.Total}
	}
	if l.loop != nil && i < len(l.loop.Targets) && !l.ended() {
		view.NextPush = due(l.loop.Targets[i].NextPeriodic, h.opts.Now())
	}
	return view
}

func (l look) describeTarget(view *client.TargetView, s syncer.Status) {
	view.State, view.Reason, view.Failures, view.Trouble = string(s.Condition), s.Reason, s.Failures, s.Trouble
	view.LookedAt = wall(s.Looked)
	view.Proof, view.Damage = proofView(s.Proof), damageView(s.Damage)
	for _, p := range s.Deeper {
		view.Deeper = append(view.Deeper, *proofView(&p))
	}
	view.Maintenance = maintenanceView(s.Maintenance)
	view.Warnings, view.Rights = syncer.Warnings(s.Fencing, s.Rights), rightsView(s.Rights)
	l.warnUnclaimed(view, s)
	if by := s.TakenBy; by != nil {
		view.TakenBy = &client.Holder{Epoch: by.Number, Host: by.Host, Writer: known(by.Writer.ID), Incarnation: known(by.Writer.Incarnation), Since: wall(by.Started)}
	}
	if s.Committed != nil {
		view.Committed = point(s.Committed.Checkpoint, s.Committed.Step, s.Committed.At)
		if l.loop != nil || l.rest.known { // else the step of the live state is not known
			behind := max(l.view.Step, s.Committed.Step) - s.Committed.Step
			view.Behind = &behind
		}
	}
	if s.Committed == nil && s.Lost != nil {
		view.InDoubt = point(s.Lost.Checkpoint, s.Lost.Step, s.Lost.At)
	}
	if s.Running != nil {
		running := jobView(*s.Running)
		view.Running = &running
	}
	for _, job := range s.Jobs {
		view.Jobs = append(view.Jobs, jobView(job))
	}
}

func pluginView(s pluginhost.Status) *client.PluginView {
	return &client.PluginView{
		Name: s.Plugin, Version: s.Version, State: string(s.State), Since: s.Since.UTC(), Restarts: s.Restarts, LastExit: s.LastExit.Reason,
	}
}

func jobView(r syncer.JobRecord) client.JobView {
	return client.JobView{
		ID: r.ID, UUID: r.Checkpoint, Trigger: string(r.Trigger), State: string(r.State), Attempts: r.Attempts, Started: r.Started.UTC(),
		Finished: wall(r.Finished), Bytes: r.Bytes, Objects: r.Objects, Requests: r.Requests, Error: r.Error,
		Next: wall(r.Next), StuckSince: wall(r.StuckSince),
	}
}

// CheckpointStatus tells how far the requested checkpoints of the current or last run are.
func (p *pipeline) CheckpointStatus() client.CheckpointStatus {
	l := p.look()
	status := client.CheckpointStatus{Incarnation: l.view.Incarnation}
	if l.loop == nil {
		return status
	}
	if done := l.loop.Checkpoint.Success; done > 0 {
		status.Success = &done
	}
	if f := l.loop.Checkpoint.Failure; f != nil {
		status.Failure = &client.CheckpointFailure{Sequence: f.Sequence, Error: f.Error, FailedAt: f.FailedAt.UTC()}
	}
	return status
}

// Checkpoints lists the local ones, newest last. What cannot be read is an error that names it.
func (p *pipeline) Checkpoints(ctx context.Context) ([]client.CheckpointView, error) {
	if p.dir == nil {
		return []client.CheckpointView{}, nil
	}
	views, err := localViews(ctx, p.dir)
	return views, p.removed(err)
}

func localViews(ctx context.Context, dir *checkpoint.Dir) ([]client.CheckpointView, error) {
	views := []client.CheckpointView{}
	manifests, err := dir.Checkpoints().List(ctx)
	for _, m := range manifests {
		views = append(views, client.CheckpointView{UUID: m.ID, Step: m.Step, Size: m.Size(), Created: m.Created.UTC(), Where: []string{"local"}})
	}
	return views, err
}

// point is nil for no checkpoint.
func point(id uuid.UUID, step uint64, at time.Time) *client.Point {
	if id == uuid.Nil {
		return nil
	}
	return &client.Point{UUID: id, Step: step, Created: at.UTC()}
}

// wall is nil for no moment.
func wall(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.Round(0).UTC()
	return &t
}

// due is a moment to come as the wall clock will show it: that may have been set since the moment was fixed.
func due(at, now time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return wall(now.Add(at.Sub(now)))
}

// written is a duration as the configuration would write it; "" for none.
func written(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
