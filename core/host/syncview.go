package host

import (
	"bytes"
	"slices"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// SyncStatus tells what is safe elsewhere, in every state of the pipeline.
func (p *pipeline) SyncStatus() client.SyncStatus {
	l := p.look()
	blocks := p.cfg.Backend.Repositories()
	summary := lastSync(l.summary, blocks, l.workers)
	if l.loop != nil {
		summary = l.loop.Sync
	}
	status := client.SyncStatus{
		Incarnation: l.view.Incarnation, Success: known(summary.Success), Periodic: known(summary.Periodic), Running: known(summary.Running),
		Failure: loopFailure(summary.Failure), PeriodicFailure: loopFailure(summary.PeriodicFailure), Targets: []client.TargetSync{},
	}
	for i, w := range l.workers {
		view := targetSync(w)
		if l.loop != nil && i < len(l.loop.Targets) { // object storage has a worker that the loop does not know
			showJobs(&view, l.loop.Targets[i])
		}
		status.Targets = append(status.Targets, view)
	}
	return status
}

func targetSync(s syncer.Status) client.TargetSync {
	view := client.TargetSync{
		Target: s.Target, State: string(s.Condition), Fencing: string(s.Fencing), Warnings: syncer.Warnings(s.Fencing, s.Rights), Rights: rightsView(s.Rights),
		Success: known(s.Success), Periodic: known(s.Periodic),
		Failure: failureView(s.Failure), PeriodicFailure: failureView(s.PeriodicFailure), Queued: []uuid.UUID{},
	}
	if s.Running != nil {
		view.Running, view.RunningSince = known(s.Running.Checkpoint), wall(s.Running.Started)
	}
	return view
}

// showJobs adds what the loop knows. A sync that has left its queue is running there before its worker says so: a client that waits for
// one always sees it in one of the two places.
func showJobs(view *client.TargetSync, t circuit.TargetStatus) {
	view.Queued = append(view.Queued, t.Asked...)
	if t.Running != nil {
		view.Running, view.RunningSince = known(t.Running.Checkpoint), wall(t.Running.Since)
	}
}

// lastSync is what sync status says when no loop tells: what was saved, and what the targets' own records show beyond that, because a
// crash came between the two.
func lastSync(saved circuit.SyncSummary, blocks []config.Sync, workers []syncer.Status) circuit.SyncSummary {
	summary := saved
	var success, periodic [][]uuid.UUID
	for i, w := range workers {
		if w.Condition == syncer.Fenced {
			continue
		}
		success = append(success, done(w, syncer.Requested, w.Success))
		summary.Failure = later(summary.Failure, w.Failure)
		if blocks[i].PushInterval > 0 {
			periodic = append(periodic, done(w, syncer.Periodic, w.Periodic))
			summary.PeriodicFailure = later(summary.PeriodicFailure, w.PeriodicFailure)
		}
	}
	summary.Success = newer(saved.Success, newestInAll(success))
	summary.Periodic = newer(saved.Periodic, newestInAll(periodic))
	return summary
}

// later of two failures.
func later(saved *circuit.SyncFailure, recorded *syncer.Failure) *circuit.SyncFailure {
	if recorded == nil || saved != nil && !recorded.At.After(saved.At) {
		return saved
	}
	return &circuit.SyncFailure{Checkpoint: recorded.Checkpoint, Error: recorded.Error, At: recorded.At}
}

// done lists what jobs of one trigger committed, as far back as records are kept; the newest is kept beside them.
func done(w syncer.Status, trigger syncer.Trigger, newest uuid.UUID) []uuid.UUID {
	var ids []uuid.UUID
	if newest != uuid.Nil {
		ids = append(ids, newest)
	}
	for _, job := range w.Jobs {
		if job.Trigger == trigger && job.State == syncer.JobSucceeded {
			ids = append(ids, job.Checkpoint)
		}
	}
	return ids
}

func loopFailure(f *circuit.SyncFailure) *client.SyncFailure {
	if f == nil {
		return nil
	}
	return &client.SyncFailure{UUID: f.Checkpoint, Error: f.Error, FailedAt: f.At.UTC()}
}

func failureView(f *syncer.Failure) *client.SyncFailure {
	if f == nil {
		return nil
	}
	return &client.SyncFailure{UUID: f.Checkpoint, Error: f.Error, FailedAt: f.At.UTC()}
}

// known is nil for no id.
func known(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// newestInAll is the greatest id that every list holds; Nil when there is none.
func newestInAll(lists [][]uuid.UUID) uuid.UUID {
	var newest uuid.UUID
	if len(lists) == 0 {
		return newest
	}
	for _, id := range lists[0] {
		everywhere := !slices.ContainsFunc(lists[1:], func(other []uuid.UUID) bool { return !slices.Contains(other, id) })
		if everywhere {
			newest = newer(newest, id)
		}
	}
	return newest
}

// newer of two checkpoint ids: they are UUIDs of version 7, ordered by their bytes.
func newer(a, b uuid.UUID) uuid.UUID {
	if bytes.Compare(b[:], a[:]) > 0 {
		return b
	}
	return a
}
