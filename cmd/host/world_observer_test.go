//go:build torture || cloud

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk/client"
)

// observer looks 20 times a second at what status says is safe, and then into the target's folder itself, behind the plugin's back. Only
// when everything that was named has its commit there, the host has told the truth.
type observer struct {
	api     *client.Client
	commits string // folder of the repository's commits

	known    map[string]uuid.UUID // by file, the checkpoint that a commit holds; Nil for a seal
	looks    int                  // that a host answered
	named    map[uuid.UUID]bool   // every id that status named
	states   map[string]int       // how often a target was seen in each state
	failures map[string]bool      // what status said of syncs that failed
	faults   []string
}

func newObserver(url, target string) *observer {
	return &observer{
		api:     client.New(url, &http.Client{Timeout: 30 * time.Second}),
		commits: filepath.Join(target, repository.CommitPrefix(pipe)),
		known:   map[string]uuid.UUID{}, named: map[uuid.UUID]bool{}, states: map[string]int{}, failures: map[string]bool{},
	}
}

// observe runs an observer until the returned function is called, which fails the test if it saw a fault.
func observe(t *testing.T, url, target string) (o *observer, end func()) {
	t.Helper()
	o = newObserver(url, target)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.run(ctx)
	}()
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		<-done
		for _, fault := range o.faults {
			t.Error(fault)
		}
		t.Logf("observer: %d looks at a host that answered, %d ids named, %d commits read, target states %v",
			o.looks, len(o.named), len(o.known), o.states)
	}
	t.Cleanup(end)
	return o, end
}

func (o *observer) run(ctx context.Context) {
	tick := time.NewTicker(time.Second / 20)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			o.look(ctx)
		}
	}
}

// look reads status first and the folder after it: a commit that comes in between is no excuse, for it only helps the host.
func (o *observer) look(ctx context.Context) {
	claims, ok := o.claims(ctx)
	if !ok {
		return
	}
	o.looks++
	there, err := o.committed()
	if err != nil {
		o.fault("%v", err)
	}
	for _, c := range claims {
		o.named[c.id] = true
		if !there[c.id] {
			o.fault("%s names checkpoint %s, of which the target holds no commit", c.by, c.id)
		}
	}
}

// fault notes what is wrong, once.
func (o *observer) fault(format string, args ...any) {
	if text := "observer: " + fmt.Sprintf(format, args...); !slices.Contains(o.faults, text) {
		o.faults = append(o.faults, text)
	}
}

// claim is an id that status names as committed.
type claim struct {
	by string
	id uuid.UUID
}

// claims asks the host; false while it does not answer.
func (o *observer) claims(ctx context.Context) (claims []claim, ok bool) {
	status, err := o.api.Syncs(ctx, pipe)
	if err != nil {
		return nil, false
	}
	add := func(by string, id *uuid.UUID) {
		if id != nil {
			claims = append(claims, claim{by, *id})
		}
	}
	add("success", status.Success)
	add("periodic", status.Periodic)
	for _, t := range status.Targets {
		add("success of the target", t.Success)
		add("periodic of the target", t.Periodic)
	}
	for _, f := range []*client.SyncFailure{status.Failure, status.PeriodicFailure} {
		if f != nil {
			o.failures[f.Error] = true
		}
	}
	view, err := o.api.Pipeline(ctx, pipe)
	if err != nil {
		return claims, true // it was killed in between; what it said before counts
	}
	if view.State == "failed" {
		o.fault("the pipeline has failed: %s", view.Error)
	}
	for _, t := range view.Targets {
		o.states[t.State]++
		if t.Committed != nil {
			add("committed", &t.Committed.UUID)
		}
		for _, job := range t.Jobs {
			if job.State == "succeeded" {
				add("a job that succeeded", &job.UUID)
			}
		}
	}
	return claims, true
}

// committed reads the folder. Whatever bears a commit's name there must be a whole commit.
func (o *observer) committed() (map[uuid.UUID]bool, error) {
	entries, err := os.ReadDir(o.commits)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	there := map[uuid.UUID]bool{}
	for _, e := range entries {
		number, err := repository.ParseCommitKey(pipe, repository.CommitPrefix(pipe)+e.Name())
		if err != nil {
			continue // a temporary file of the plugin's
		}
		id, seen := o.known[e.Name()]
		if !seen {
			if id, err = readCommit(filepath.Join(o.commits, e.Name()), number); err != nil {
				return there, err
			}
			o.known[e.Name()] = id
		}
		there[id] = true
	}
	return there, nil
}

func readCommit(path string, number uint64) (uuid.UUID, error) {
	stored, err := os.ReadFile(path)
	if err != nil {
		return uuid.Nil, err
	}
	c, err := repository.DecodeCommit(number, stored)
	if err != nil {
		return uuid.Nil, fmt.Errorf("%s: %w", path, err)
	}
	return c.Checkpoint.ID, nil
}
