package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// RestoreRequest asks for the files of a checkpoint in a folder.
type RestoreRequest struct {
	Target    string // "" = the one that holds the newest of what is wanted
	From      Selection
	To        string                  // must be new or empty; only a preview goes without
	DeltaFrom []string                // folders whose content is copied instead of being fetched again; they are only read
	Progress  func(done, total int64) // told the stored bytes, from any goroutine; nil = nobody is
}

// Restored tells of a restore: of one that was done, or of one that would be.
type Restored struct {
	client.CheckpointView

	Preview      bool     `json:"preview"`                  // nothing was written
	Before       *float64 `json:"before_seconds,omitempty"` // how long before the moment asked for it was taken
	Files        int64    `json:"files"`
	FetchedBytes int64    `json:"fetched_bytes"` // of the target, as they are stored there
	Requests     int      `json:"requests"`      // that fetch them, when none has to be repeated
	Packs        int      `json:"packs"`         // that they lie in
	KeptBytes    int64    `json:"kept_bytes"`    // of the files: found here, left by an interrupted restore or in a folder of DeltaFrom
}

// Restore puts the files of a checkpoint into a folder.
func (o *Offline) Restore(ctx context.Context, req RestoreRequest) (Restored, error) {
	return o.restore(ctx, req, (*syncer.Reader).RestoreDir)
}

// PreviewRestore tells what Restore would do now, and writes nothing there.
func (o *Offline) PreviewRestore(ctx context.Context, req RestoreRequest) (Restored, error) {
	restored, err := o.restore(ctx, req, (*syncer.Reader).PreviewRestore)
	restored.Preview = true
	return restored, err
}

func (o *Offline) restore(
	ctx context.Context, req RestoreRequest, act func(*syncer.Reader, context.Context, syncer.RestoreRequest) (syncer.Restored, error),
) (Restored, error) {
	targets, err := o.open(ctx, req.Target)
	if err != nil {
		return Restored{}, err
	}
	defer targets.close(ctx)
	wanted := syncer.Selector(req.From)
	chosen, err := targets.choose(ctx, wanted)
	if err != nil {
		return Restored{}, err
	}
	done, err := act(chosen.reader, ctx, syncer.RestoreRequest{
		From: wanted, Dir: req.To, DeltaFrom: req.DeltaFrom, Spool: targets.spool, Progress: told(req.Progress), Hook: o.hook,
	})
	if err != nil {
		return Restored{}, err
	}
	restored := Restored{
		CheckpointView: commitView(chosen.name, done.Commit), Files: done.Commit.Totals.Files,
		FetchedBytes: done.Needs.Bytes, Requests: done.Needs.Requests, Packs: done.Needs.Packs, KeptBytes: done.Needs.Kept,
	}
	if at := req.From.AsOf; !at.IsZero() {
		before := at.Sub(restored.Created).Seconds()
		restored.Before = &before
	}
	return restored, nil
}

// choose is newest, but for a number, which means another commit on each target.
func (t *offlineTargets) choose(ctx context.Context, wanted syncer.Selector) (offlineTarget, error) {
	if wanted.Number != 0 && len(t.open) > 1 {
		var names []string
		for _, one := range t.open {
			names = append(names, one.name)
		}
		return offlineTarget{}, fmt.Errorf("restore commit %d: each of the %d targets has numbers of its own: name one with --target (%s)", wanted.Number, len(t.open), strings.Join(names, ", "))
	}
	return t.newest(ctx, wanted)
}
