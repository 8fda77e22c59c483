package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// StandbyView is how a standby stands with the target that it follows.
type StandbyView struct {
	Target       string     `json:"target" doc:"The target that is followed."`
	PullInterval string     `json:"pull_interval" example:"5s"`
	Pulled       *Commit    `json:"pulled" doc:"The newest commit that is here whole; null when there is none."`
	Newest       *Commit    `json:"newest" doc:"The newest commit that was seen there; null before the first look, or where there is none."`
	Lag          LagView    `json:"lag" doc:"By how much pulled is behind newest."`
	LookedAt     *time.Time `json:"looked_at" doc:"When the target last answered; null when it has not since the host started. What was committed later is not in lag."`
	NextPull     *time.Time `json:"next_pull" doc:"When it is looked at again; null while it is being looked at, and when the pipeline is stopped."`
	Pulling      *Progress  `json:"pulling" doc:"Null when nothing is being pulled."`
	Error        string     `json:"error,omitempty" doc:"Why the last look or pull failed; left out when it did not."`
	Failures     int        `json:"failures" doc:"Looks and pulls that failed in a row."`
	PulledBytes  int64      `json:"pulled_bytes" doc:"Stored bytes read from targets since the host started."`

	ActivationError string `json:"activation_error,omitempty" doc:"Why the last activation failed; left out when none has."`
}

// Commit is a checkpoint in a repository.
type Commit struct {
	Target  string    `json:"target"`
	Seed    bool      `json:"seed" doc:"It is of the seed, for nothing of the pipeline's own was there."`
	Number  uint64    `json:"number"`
	UUID    uuid.UUID `json:"uuid"`
	Step    uint64    `json:"step"`
	Created time.Time `json:"created" doc:"When the checkpoint was taken, by the clock of the host that took it."`
}

// LagView is by how much one commit is older than another.
type LagView struct {
	Seconds float64 `json:"seconds" doc:"Between the moments at which the checkpoints were taken."`
	Steps   *uint64 `json:"steps" doc:"Null where they cannot be compared: one of the two is the seed's, which counts its own."`
	Commits *uint64 `json:"commits" doc:"By their numbers; null where they cannot be compared: the two lie in different repositories, and each counts its own."`
}

// None says that the newest commit is here.
func (l LagView) None() bool {
	return l.Seconds == 0 && l.Steps != nil && *l.Steps == 0 && l.Commits != nil && *l.Commits == 0
}

// Progress of a pull, or of a verification.
type Progress struct {
	Commit uint64 `json:"commit"`
	Done   int64  `json:"done_bytes"`
	Total  int64  `json:"total_bytes"`
}

// SeedView is the effective seed block.
type SeedView struct {
	Target string `json:"target"`
	Prefix string `json:"prefix"`
	From   string `json:"from,omitempty" doc:"Left out: as start_from_checkpoint."`
}

// ActivateOptions are what an operator says of an activation. The zero value wants the newest commit of every target, or fails.
type ActivateOptions struct {
	AcceptLocal bool   // the local copy will do where the newest commit cannot be had
	Target      string // only this target has to answer, and only it is claimed; "" = all of them
}

// Activated is what an activation came to.
type Activated struct {
	Incarnation uuid.UUID `json:"incarnation_uuid"`
	From        *Point    `json:"from" doc:"The checkpoint that runs on; null: an empty state."`
	Target      string    `json:"target,omitempty" doc:"Where it was committed."`
	Number      uint64    `json:"number,omitempty" doc:"Its commit there."`
	PulledBytes int64     `json:"pulled_bytes" doc:"Stored bytes that were still to be read; 0 when the copy was warm."`
	Claims      []Claim   `json:"claims" doc:"What became of each target's epoch."`
	Loss        Loss      `json:"loss" doc:"What of the committed work is not in the state that runs."`
	Warnings    []string  `json:"warnings" doc:"What the operator has to know or to do; empty when nothing."`
}

// Claim is a target's part of an activation.
type Claim struct {
	Target string `json:"target"`
	Epoch  uint64 `json:"epoch,omitempty" doc:"That is ours now; left out when it was not claimed."`
	Fenced string `json:"fenced,omitempty" doc:"Who wrote there until now."`
	Error  string `json:"error,omitempty" doc:"Why it was not claimed."`
}

// Loss is what a local copy lacks. The numbers are null where not even one commit was seen that could be compared.
type Loss struct {
	Certain bool     `json:"certain" doc:"Every target was claimed and read; else there may be more."`
	Seconds *float64 `json:"seconds"`
	Steps   *uint64  `json:"steps"`
	Commits *uint64  `json:"commits"`
	Text    string   `json:"text"`
}

// Activate makes a standby the primary and answers when it runs. A failure is CodeActivation: it is a standby still, and details["claimed"] names the
// targets whose primary is fenced all the same. In any other state it is CodeInvalidTransition. When ctx ends before, the activation goes on.
func (c *Client) Activate(ctx context.Context, name string, opts ActivateOptions) (Activated, error) {
	query := url.Values{"require_latest": {strconv.FormatBool(!opts.AcceptLocal)}}
	if opts.Target != "" {
		query.Set("target", opts.Target)
	}
	return call[Activated](ctx, c, http.MethodPost, path(name, "/activate"), query)
}

// Standby makes a stopped or failed pipeline, or a primary that was fenced, follow its target.
func (c *Client) Standby(ctx context.Context, name string) error {
	return c.post(ctx, name, "/standby", nil)
}
