package host

import (
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// SyncStatus tells what is safe elsewhere, in every state of the pipeline.
func (p *pipeline) SyncStatus() client.SyncStatus {
	l := p.look()
	summary := lastSync(l.workers)
	if l.loop != nil {
		summary = l.loop.Sync
	}
	status := client.SyncStatus{
		Incarnation: l.view.Incarnation, Success: known(summary.Success), Periodic: known(summary.Periodic), Running: known(summary.Running),
		Failure:         failure(summary.Failure, l.workers, func(s syncer.Status) *syncer.Failure { return s.Failure }),
		PeriodicFailure: failure(summary.PeriodicFailure, l.workers, func(s syncer.Status) *syncer.Failure { return s.PeriodicFailure }),
		Targets:         []client.TargetSync{},
	}
	for _, w := range l.workers {
		status.Targets = append(status.Targets, targetSync(w))
	}
	return status
}

func targetSync(s syncer.Status) client.TargetSync {
	view := client.TargetSync{
		Target: s.Target, State: string(s.Condition), Success: known(s.Success), Periodic: known(s.Periodic),
		Failure: failureView(s.Failure), PeriodicFailure: failureView(s.PeriodicFailure),
	}
	if s.Running != nil {
		view.Running, view.RunningSince = known(s.Running.Checkpoint), wall(s.Running.Started)
	}
	return view
}

// lastSync is what sync status says when no loop tells: the newest id that the records of every target that is not fenced name as done.
func lastSync(workers []syncer.Status) circuit.SyncSummary {
	var summary circuit.SyncSummary
	var success, periodic [][]uuid.UUID
	for _, w := range workers {
		if w.Condition != syncer.Fenced {
			success = append(success, done(w, syncer.Requested, w.Success))
			periodic = append(periodic, done(w, syncer.Periodic, w.Periodic))
		}
		if f := w.Failure; f != nil {
			summary.Failure = &circuit.SyncFailure{Checkpoint: f.Checkpoint, Error: f.Error}
		}
		if f := w.PeriodicFailure; f != nil {
			summary.PeriodicFailure = &circuit.SyncFailure{Checkpoint: f.Checkpoint, Error: f.Error}
		}
	}
	summary.Success, summary.Periodic = newestInAll(success), newestInAll(periodic)
	return summary
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

// failure is the summary's, with the moment that a target's own record adds.
func failure(f *circuit.SyncFailure, workers []syncer.Status, of func(syncer.Status) *syncer.Failure) *client.SyncFailure {
	if f == nil {
		return nil
	}
	var at time.Time
	for _, w := range workers {
		if known := of(w); known != nil && known.Checkpoint == f.Checkpoint && known.At.After(at) {
			at = known.At
		}
	}
	return &client.SyncFailure{UUID: f.Checkpoint, Error: f.Error, FailedAt: at.UTC()}
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
