package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// ProofView is a verification that found nothing wrong.
type ProofView struct {
	At      time.Time `json:"at"`
	Level   string    `json:"level" enum:"metadata,sample,deep" doc:"metadata: all but the content of packs. sample: and a part of their chunks. deep: and every chunk."`
	Sample  float64   `json:"sample,omitempty" doc:"The fraction of the chunks that was read."`
	Commit  uint64    `json:"commit" doc:"Newest commit that was verified."`
	UUID    uuid.UUID `json:"checkpoint_uuid" doc:"Checkpoint of that commit."`
	Commits int       `json:"commits" doc:"How many commits were verified."`
}

// DamageView is what is known to be broken on a target: a verification has found it, and none that looked as deep has found it whole since.
type DamageView struct {
	At      time.Time `json:"at" doc:"When some of it was last found."`
	Level   string    `json:"level" enum:"metadata,sample,deep" doc:"Of the deepest verification that found some of it; one that looks less deep does not take it back."`
	Sample  float64   `json:"sample,omitempty" doc:"The fraction of the chunks that was read."`
	Commits []uint64  `json:"commits" doc:"Commits that cannot be restored whole; empty when what is damaged breaks none. Later commits may need what is damaged too."`
}

// VerifyView is what a verification of one target has found.
type VerifyView struct {
	Target       string        `json:"target"`
	Error        string        `json:"error,omitempty" doc:"Why it could not be verified; then nothing else is told."`
	Level        string        `json:"level,omitempty" enum:"metadata,sample,deep"`
	Sample       float64       `json:"sample,omitempty"`
	Seed         uint64        `json:"seed,omitempty" doc:"Picked the chunks of the sample."`
	Commits      int           `json:"commits" doc:"Commits of checkpoints that were verified."`
	Packs        int           `json:"packs" doc:"Packs that they name."`
	Chunks       int           `json:"chunks" doc:"Distinct chunks that were read and checked."`
	Bytes        int64         `json:"bytes" doc:"Bytes of packs that were read."`
	Requests     int64         `json:"requests" doc:"Calls made to the store."`
	Orphans      int           `json:"orphans" doc:"Packs that no commit names; a sweep takes them. 0 where a commit that cannot be read may name them."`
	OrphanBytes  int64         `json:"orphan_bytes"`
	Started      time.Time     `json:"started"`
	Finished     time.Time     `json:"finished"`
	Problems     []ProblemView `json:"problems" doc:"Empty when nothing is wrong."`
	MoreProblems int           `json:"more_problems,omitempty" doc:"Problems beyond those listed."`
	Broken       []uint64      `json:"broken" doc:"Commits that cannot be restored whole."`
	Known        *DamageView   `json:"known_damage,omitempty" doc:"What else the host knows to be broken, and this verification was not deep enough to find; then there is no proof."`
	Proof        *ProofView    `json:"proof" doc:"null when something is wrong, or there is nothing to prove."`
}

// ProblemView is one thing that is wrong on a target.
type ProblemView struct {
	Kind    string   `json:"kind" example:"missing-pack"`
	Object  string   `json:"object" doc:"Key of the object."`
	Commits []uint64 `json:"commits" doc:"Commits that it breaks."`
	File    string   `json:"file,omitempty" doc:"A file that needs it."`
	What    string   `json:"what"`
	Remedy  string   `json:"remedy"`
}

// RepairView is what a repair has found and done.
type RepairView struct {
	Target   string     `json:"target"`
	Found    VerifyView `json:"found" doc:"What was wrong before."`
	Repaired *Point     `json:"repaired" doc:"Checkpoint that was committed anew; null when the newest commit was whole."`
	Number   uint64     `json:"number,omitempty" doc:"Number of that commit."`
	Bytes    int64      `json:"bytes" doc:"Bytes that it stored."`
	Broken   []uint64   `json:"broken" doc:"Commits that stay broken; retention lets them go."`
}

// VerifyOptions say how much is read.
type VerifyOptions struct {
	Target string  // "" = all targets
	Sample float64 // fraction of the chunks; 0 = none
	Deep   bool    // every chunk
	Newest bool    // only the newest commit; no proof is kept
}

// Verify reads what the targets hold and tells what of it could not be restored. It takes as long as that takes.
func (c *Client) Verify(ctx context.Context, name string, o VerifyOptions) ([]VerifyView, error) {
	query := url.Values{}
	if o.Target != "" {
		query.Set("target", o.Target)
	}
	if o.Sample != 0 {
		query.Set("sample", strconv.FormatFloat(o.Sample, 'g', -1, 64))
	}
	if o.Deep {
		query.Set("deep", "true")
	}
	if o.Newest {
		query.Set("newest", "true")
	}
	return call[[]VerifyView](ctx, c, http.MethodPost, path(name, "/remote/verify"), query)
}

// Repair commits the newest local checkpoint anew where the newest commit of a target is broken; deep reads every chunk of that first.
func (c *Client) Repair(ctx context.Context, name, target string, deep bool) (RepairView, error) {
	query := url.Values{"target": {target}, "deep": {strconv.FormatBool(deep)}}
	return call[RepairView](ctx, c, http.MethodPost, path(name, "/remote/repair"), query)
}
