//go:build torture

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// promise is something that a caller is told when it is done, and that holds from then on.
type promise struct {
	told  string
	ask   func(ctx context.Context, m *machine) error // returns with the answer
	state string                                      // of the pipeline in the next life
	known bool                                        // status then knows the commit before anything is asked of the target
}

func promises() []promise {
	return []promise{
		{told: "a batch is taken", ask: ingest, state: "running"},
		{told: "a checkpoint is published", ask: published, state: "running"},
		{told: "a push is committed", ask: pushed, state: "running", known: true},
		{told: "the pipeline is paused", ask: func(ctx context.Context, m *machine) error { return m.api.Pause(ctx, pipe) }, state: "paused"},
		{told: "the pipeline goes on", ask: func(ctx context.Context, m *machine) error { return m.api.Resume(ctx, pipe) }, state: "running"},
		{told: "the pipeline is stopped", ask: func(ctx context.Context, m *machine) error { return m.api.Stop(ctx, pipe, false) }, state: "stopped"},
	}
}

func ingest(ctx context.Context, m *machine) error {
	next := m.batch + 1
	_, err := m.api.Ingest(ctx, pipe, "calls", "caller", next, "", strings.NewReader(record("calls", int(next), 100)))
	if err == nil {
		m.batch = next
	}
	return err
}

func published(ctx context.Context, m *machine) error {
	if err := ingest(ctx, m); err != nil {
		return err
	}
	return m.api.CheckpointAndWait(ctx, pipe)
}

func pushed(ctx context.Context, m *machine) error {
	if err := published(ctx, m); err != nil {
		return err
	}
	id, err := m.api.SyncCheckpoint(ctx, pipe, true)
	if err == nil {
		m.committed = id.String()
	}
	return err
}

// quiet are settings under which nothing happens of itself while somebody is answered.
func quiet() settings { return settings{keep: 3, checkpoint: "1h", push: "1h"} }

// TestTorturePowerIsCutWhenSomebodyWasAnswered cuts the power right after an answer: what it promised holds in the next life.
// CASES A4, A23
func TestTorturePowerIsCutWhenSomebodyWasAnswered(t *testing.T) {
	t.Parallel()
	m := newMachine(t, buildPlugins(t), quiet())
	for _, p := range promises() {
		for _, fault := range m.broken(p) {
			t.Errorf("%s, then the power is cut: %s", p.told, fault)
		}
	}
}

// broken is a life in which a promise is given, a power cut, and a life that tells what is not as promised.
func (m *machine) broken(p promise) (faults []string) {
	m.t.Helper()
	faults = m.cutAfter(p.ask)
	m.start("")
	m.eventually("the pipeline has begun again", m.begun)
	state := m.view().State
	if state != p.state {
		faults = append(faults, fmt.Sprintf("the pipeline is %s, want %s", state, p.state))
	}
	if p.known {
		if at := m.offsite(); at.Committed == nil || at.Committed.UUID.String() != m.committed || at.Trouble != "" {
			faults = append(faults, fmt.Sprintf("status knows of %v as committed, want %s; trouble: %s", at.Committed, m.committed, at.Trouble))
		}
	}
	if state == "stopped" {
		check(m.t, m.api.Start(m.t.Context(), pipe))
		m.eventually("the pipeline runs", m.running)
	}
	if at, err := m.api.Position(m.t.Context(), pipe, "calls", "caller"); err != nil || at != m.batch {
		faults = append(faults, fmt.Sprintf("the caller stands at %d (%v), want %d", at, err, m.batch))
	}
	m.kill()
	m.pluginsGone()
	return faults
}

// cutAfter is a life that ends after an answer, and the power with it. It says what is lost.
func (m *machine) cutAfter(ask func(context.Context, *machine) error) (faults []string) {
	m.t.Helper()
	m.start("")
	m.eventually("the pipeline has begun", m.begun)
	check(m.t, ask(m.t.Context(), m))
	m.kill()
	return m.cutPower("answered")
}

// begun says that the pipeline is where its operator wants it. One that is about to start is stopped for a moment.
func (m *machine) begun() bool {
	v := m.view()
	return v.State != "" && v.State == v.DesiredState // a host that does not answer yet shows neither
}
