package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// RetentionView is the effective retention block of a sync block, or of object storage.
type RetentionView struct {
	MinCount  int    `json:"min_count,omitempty" doc:"Left out: this rule keeps none."`
	MinAge    string `json:"min_age,omitempty" doc:"Left out: this rule keeps none." example:"168h0m0s"`
	MaxDelete int    `json:"max_delete,omitempty" doc:"Left out: no guard."`
}

// MaintenanceView is the last run of retention and sweep on a target.
type MaintenanceView struct {
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	Kept     int       `json:"kept" doc:"Checkpoints that readers see."`
	Retired  int       `json:"retired" doc:"Checkpoints that they see no more since this run."`
	Swept    int64     `json:"swept_packs"`
	Freed    int64     `json:"freed_bytes"`
	Error    string    `json:"error,omitempty" doc:"Why it did not do all; it is tried again after the next push, and nothing was deleted that it was not sure of."`

	SweptAt     *time.Time `json:"swept_at" doc:"When the packs were last looked at; null: never. The four numbers below are of that moment."`
	Packs       int64      `json:"packs"`
	PackBytes   int64      `json:"pack_bytes"`
	Orphans     int64      `json:"orphan_packs" doc:"Packs that no commit names: of failed pushes, or of one that is under way."`
	OrphanBytes int64      `json:"orphan_bytes"`
	Dangling    []string   `json:"dangling_pins" doc:"Pins whose commit is not there."`
	Missing     []uint64   `json:"missing_commits" doc:"Commits that should be there and are not."`
}

// SweepOptions are what may be said of a sweep.
type SweepOptions struct {
	Target    string // "" = the only one that the pipeline has
	DryRun    bool   // tell what would go, and change nothing
	MaxDelete int    // in place of max_delete, for this run; 0 = as configured
}

// Sweep is what one run of retention and sweep did or, when it was dry, would do.
type Sweep struct {
	Target   string         `json:"target"`
	DryRun   bool           `json:"dry_run"`
	Epoch    uint64         `json:"epoch" doc:"Under which it ran; of a dry run of a host that holds none, the next."`
	Policy   *RetentionView `json:"retention" doc:"Null: there is no retention block, so every commit is kept."`
	Refused  string         `json:"refused,omitempty" doc:"Only of a dry run: why a real one would retire nothing."`
	Commits  []CommitFate   `json:"commits" doc:"Every commit that was there, ascending by number; empty without a retention block."`
	Kept     int            `json:"kept" doc:"Checkpoints."`
	Retired  int            `json:"retired" doc:"Checkpoints."`
	Deleted  int            `json:"deleted_commits" doc:"Objects of commits, those of takeovers and of earlier runs among them; 0 in a dry run."`
	Packs    *SweptPacks    `json:"packs" doc:"Null when the run was refused before it came to them."`
	Dangling []string       `json:"dangling_pins" doc:"Pins whose commit is not there."`
	Missing  []uint64       `json:"missing_commits" doc:"Commits that should be there and are not."`
	Requests int64          `json:"requests" doc:"Calls made to the store."`
	Finished time.Time      `json:"finished"`
}

// CommitFate is what becomes of one commit.
type CommitFate struct {
	Number  uint64     `json:"number"`
	Kind    string     `json:"kind" enum:"checkpoint,seal" doc:"seal: what a writer leaves where it takes over."`
	UUID    *uuid.UUID `json:"uuid" doc:"The checkpoint; null in a seal."`
	Step    uint64     `json:"step"`
	Created time.Time  `json:"created"`
	Fate    string     `json:"fate" enum:"kept,gone,hidden" doc:"gone: readers see it no more after this run. hidden: they did not see it before, and its object is deleted now."`
	Why     string     `json:"why"`
}

// SweptPacks is what a sweep found, and what it deleted or would delete.
type SweptPacks struct {
	Packs          int64 `json:"packs" doc:"That were there."`
	Bytes          int64 `json:"bytes"`
	Orphans        int64 `json:"orphans" doc:"No commit names them and none ever can: they are deleted."`
	OrphanBytes    int64 `json:"orphan_bytes"`
	Undecided      int64 `json:"undecided" doc:"No commit names them yet: they may belong to a push that is under way, and stay."`
	UndecidedBytes int64 `json:"undecided_bytes"`
	Swept          int64 `json:"swept" doc:"Orphans that were deleted; 0 in a dry run."`
	SweptBytes     int64 `json:"swept_bytes"`
	Foreign        int64 `json:"foreign" doc:"Objects between the packs that are none: left alone."`
	More           bool  `json:"more" doc:"There are more orphans than one run deletes."`
}

// Sweep runs retention and sweep on a target and answers when they are done.
func (c *Client) Sweep(ctx context.Context, name string, opts SweepOptions) (Sweep, error) {
	query := url.Values{"dry_run": {strconv.FormatBool(opts.DryRun)}}
	if opts.Target != "" {
		query.Set("target", opts.Target)
	}
	if opts.MaxDelete != 0 {
		query.Set("max_delete", strconv.Itoa(opts.MaxDelete))
	}
	return call[Sweep](ctx, c, http.MethodPost, path(name, "/remote/sweep"), query)
}

// Pin keeps a commit from retention.
type Pin struct {
	Name       string     `json:"name"`
	Commit     uint64     `json:"commit,omitempty" doc:"Number of the commit; left out: the newest of the checkpoint."`
	Checkpoint *uuid.UUID `json:"checkpoint_uuid" doc:"Null: not by checkpoint."`
	Created    time.Time  `json:"created"`
	By         string     `json:"by" doc:"The machine that made it."`
	Note       string     `json:"note,omitempty"`
}

// PinOptions say what to pin: a checkpoint or a commit, one of the two.
type PinOptions struct {
	Target     string // "" = the only one that the pipeline has
	Checkpoint uuid.UUID
	Commit     uint64
	Note       string
}

// Pin keeps a commit on a target until it is unpinned. When it returns nil the commit is there, and no retention can take it any more.
func (c *Client) Pin(ctx context.Context, name, pin string, opts PinOptions) (Pin, error) {
	query := pinQuery(pin, opts.Target)
	if opts.Checkpoint != uuid.Nil {
		query.Set("checkpoint", opts.Checkpoint.String())
	}
	if opts.Commit != 0 {
		query.Set("commit", strconv.FormatUint(opts.Commit, 10))
	}
	if opts.Note != "" {
		query.Set("note", opts.Note)
	}
	return call[Pin](ctx, c, http.MethodPost, path(name, "/remote/pin"), query)
}

// Unpin removes a pin; what it kept goes with the next retention that finds it too old.
func (c *Client) Unpin(ctx context.Context, name, target, pin string) error {
	return c.post(ctx, name, "/remote/unpin", pinQuery(pin, target))
}

// Pins are the pins on a target ("" = the only one that the pipeline has), by name.
func (c *Client) Pins(ctx context.Context, name, target string) ([]Pin, error) {
	return call[[]Pin](ctx, c, http.MethodGet, path(name, "/remote/pins"), targetQuery(target))
}

func pinQuery(pin, target string) url.Values {
	query := url.Values{"pin": {pin}}
	if target != "" {
		query.Set("target", target)
	}
	return query
}
