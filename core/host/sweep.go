package host

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/core/api"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// Sweep runs retention and sweep on a target, beside pushes, and answers when they are done. A dry run tells also what a real one would refuse.
func (p *pipeline) Sweep(ctx context.Context, opts client.SweepOptions) (client.Sweep, error) {
	worker, err := p.maintainable(opts.Target)
	if err == nil && !opts.DryRun {
		err = p.resume(ctx, worker)
	}
	if err != nil {
		return client.Sweep{}, err
	}
	report, err := worker.Maintain(ctx, syncer.MaintainRequest{DryRun: opts.DryRun, Thorough: true, MaxDelete: opts.MaxDelete})
	view := sweepView(worker.Status().Target, report)
	if opts.DryRun && refusedPlan(err) {
		view.Refused = err.Error()
		return view, nil
	}
	return view, maintainError(err)
}

// Pins reads the pins on a target.
func (p *pipeline) Pins(ctx context.Context, target string) ([]client.Pin, error) {
	worker, err := p.maintainable(target)
	if err != nil {
		return nil, err
	}
	pins, err := worker.Pins(ctx)
	views := make([]client.Pin, 0, len(pins))
	for _, pin := range pins {
		views = append(views, pinView(pin))
	}
	return views, maintainError(err)
}

// Pin keeps a commit from retention.
func (p *pipeline) Pin(ctx context.Context, name string, opts client.PinOptions) (client.Pin, error) {
	worker, err := p.maintainable(opts.Target)
	if err == nil {
		err = badRequest(repository.CheckPinName(name))
	}
	if err == nil && len(opts.Note) > repository.MaxPinNote {
		err = api.Errorf(http.StatusBadRequest, client.CodeBadRequest, "a note of %d bytes: at most %d", len(opts.Note), repository.MaxPinNote)
	}
	if err == nil {
		err = p.resume(ctx, worker)
	}
	if err != nil {
		return client.Pin{}, err
	}
	pin, err := worker.Pin(ctx, syncer.PinRequest{Name: name, Commit: opts.Commit, Checkpoint: opts.Checkpoint, Note: opts.Note})
	return pinView(pin), maintainError(err)
}

// Unpin removes a pin.
func (p *pipeline) Unpin(ctx context.Context, target, name string) error {
	worker, err := p.maintainable(target)
	if err == nil {
		err = badRequest(repository.CheckPinName(name))
	}
	if err != nil {
		return err
	}
	return maintainError(worker.Unpin(ctx, name))
}

// maintainable is the worker of the repository that is meant; the pipeline must be running.
func (p *pipeline) maintainable(target string) (*syncer.Worker, error) {
	blocks := p.cfg.Backend.Repositories()
	switch {
	case len(blocks) == 0:
		return nil, api.Errorf(http.StatusBadRequest, client.CodeNoSync, "pipeline %q has no sync block", p.cfg.Name)
	case target == "" && len(blocks) > 1:
		return nil, api.Errorf(http.StatusBadRequest, client.CodeBadRequest, "pipeline %q has %d targets: name one of them", p.cfg.Name, len(blocks))
	case target == "":
		target = blocks[0].Target
	}
	if _, err := p.current(); err != nil {
		return nil, err
	}
	w := p.worker(target)
	if w == nil {
		return nil, p.unknownTarget(target)
	}
	if why := p.host.down(target); why != "" {
		return nil, targetError(errors.New(why))
	}
	return w, nil
}

// resume lets a host that has pushed nothing since it started maintain what the run before it has left, as long as nobody has taken that over.
func (p *pipeline) resume(ctx context.Context, worker *syncer.Worker) error {
	r, err := p.current()
	if err != nil {
		return err
	}
	err = worker.Resume(ctx, r.standing())
	r.loop.Wake()
	return maintainError(err)
}

func badRequest(err error) error {
	if err == nil {
		return nil
	}
	return api.Errorf(http.StatusBadRequest, client.CodeBadRequest, "%v", err)
}

// refusedPlan says that retention has planned and will not do it.
func refusedPlan(err error) bool {
	_, tooMany := errors.AsType[*repository.MaxDeleteError](err)
	return tooMany || errors.Is(err, repository.ErrKeepsNothing)
}

// maintainError gives the syncer's refusals their place in the API.
func maintainError(err error) error {
	_, fenced := errors.AsType[*syncer.FencedError](err)
	switch {
	case err == nil:
		return nil
	case fenced:
		return api.Errorf(http.StatusConflict, client.CodeFenced, "%v", err)
	case errors.Is(err, syncer.ErrNoEpoch):
		return api.Errorf(http.StatusConflict, client.CodeNoEpoch, "%v", err)
	case refusedPlan(err):
		return api.Errorf(http.StatusConflict, client.CodeRetentionRefused, "%v", err)
	case errors.Is(err, syncer.ErrPinExists):
		return api.Errorf(http.StatusConflict, client.CodePinExists, "%v", err)
	case errors.Is(err, syncer.ErrNoPin):
		return api.Errorf(http.StatusNotFound, client.CodePinNotFound, "%v", err)
	case errors.Is(err, syncer.ErrNoCommit):
		return api.Errorf(http.StatusNotFound, client.CodeCommitNotFound, "%v", err)
	}
	return targetError(explained(err))
}

func sweepView(target string, r syncer.MaintainReport) client.Sweep {
	view := client.Sweep{
		Target: target, DryRun: r.DryRun, Epoch: r.Epoch, Policy: retentionView((*config.Retention)(r.Policy)), Commits: []client.CommitFate{}, Kept: r.Kept, Retired: r.Retired, Deleted: r.Deleted,
		Dangling: []string{}, Missing: append([]uint64{}, r.Missing...), Requests: r.Requests, Finished: r.Finished,
	}
	for _, v := range r.Verdicts {
		view.Commits = append(view.Commits, fateView(v))
	}
	for _, pin := range r.Dangling {
		view.Dangling = append(view.Dangling, pin.Name)
	}
	if s := r.Sweep; s != nil {
		view.Packs = &client.SweptPacks{
			Packs: s.Packs, Bytes: s.Bytes, Orphans: s.Orphans, OrphanBytes: s.OrphanBytes, Undecided: s.Undecided, UndecidedBytes: s.UndecidedBytes,
			Swept: s.Swept, SweptBytes: s.SweptBytes, Foreign: s.Foreign, More: s.More,
		}
	}
	return view
}

func fateView(v repository.Verdict) client.CommitFate {
	fate := client.CommitFate{
		Number: v.Number, Kind: string(v.Kind), UUID: known(v.Checkpoint), Step: v.Step, Created: v.Created.UTC(), Fate: "kept", Why: v.Why,
	}
	switch {
	case v.Hidden:
		fate.Fate = "hidden"
	case !v.Keep:
		fate.Fate = "gone"
	}
	return fate
}

func pinView(pin repository.Pin) client.Pin {
	view := client.Pin{Name: pin.Name, Commit: pin.Commit, Created: pin.Created.UTC(), By: pin.By, Note: pin.Note}
	if pin.Checkpoint != uuid.Nil {
		view.Checkpoint = &pin.Checkpoint
	}
	return view
}

// retentionView is nil without a retention block.
func retentionView(r *config.Retention) *client.RetentionView {
	if r == nil {
		return nil
	}
	return &client.RetentionView{MinCount: r.MinCount, MinAge: written(r.MinAge), MaxDelete: r.MaxDelete}
}

// maintenanceView is nil before the first run.
func maintenanceView(m *syncer.Maintenance) *client.MaintenanceView {
	if m == nil {
		return nil
	}
	return &client.MaintenanceView{
		Started: m.Started.UTC(), Finished: m.Finished.UTC(), Kept: m.Kept, Retired: m.Retired, Swept: m.Swept, Freed: m.Freed, Error: m.Error,
		SweptAt: wall(m.SweptAt), Packs: m.Packs, PackBytes: m.PackBytes, Orphans: m.Orphans, OrphanBytes: m.OrphanBytes,
		Dangling: append([]string{}, m.Dangling...), Missing: append([]uint64{}, m.Missing...),
	}
}
