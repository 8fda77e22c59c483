package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/cairnsync/cairn/core/api"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// RemoteCheckpoints reads what the targets hold; "" = all of them. One that cannot be read, or has lost what this host committed there, is an
// error: a list that leaves it out would say that nothing is there.
func (p *pipeline) RemoteCheckpoints(ctx context.Context, target string) ([]client.CheckpointView, error) {
	blocks, err := p.repositories(target)
	if err != nil {
		return nil, err
	}
	merged := &merger{}
	for _, block := range blocks {
		if why := p.host.down(block.Target); why != "" {
			return nil, targetError(errors.New(why))
		}
		commits, damage, err := p.listed(ctx, block)
		if err != nil {
			return nil, err
		}
		merged.add(block.Target, commits, damage)
	}
	return merged.views(), nil
}

// listed reads what one target holds, and tells what is known to be broken of it.
func (p *pipeline) listed(ctx context.Context, block config.Sync) ([]syncer.CommitInfo, *syncer.Damage, error) {
	reader, err := p.reader(block, p.host.opts.pace.remote)
	if err != nil {
		return nil, nil, err
	}
	p.reconsider(ctx, block.Target)
	var known syncer.Status // as it was before the target is read: what is committed meanwhile need not be in the list
	if w := p.worker(block.Target); w != nil {
		known = w.Status()
	}
	commits, err := reader.ListCommits(ctx)
	if gone := lostOn(block, known, commits, err, p.commands(block.Target)); gone != nil {
		return nil, nil, gone
	}
	if err != nil {
		return nil, nil, targetError(fmt.Errorf("list checkpoints on target %q: %w", block.Target, err))
	}
	return commits, known.Damage, nil
}

// lostOn is the error for a target that does not hold what is known to have been committed there, nor what came after it; nil = it does, or
// whether it does cannot be told.
func lostOn(block config.Sync, known syncer.Status, commits []syncer.CommitInfo, failed error, run syncer.Commands) error {
	was := cmp.Or(known.Committed, known.Lost)
	there := slices.ContainsFunc(commits, func(c syncer.CommitInfo) bool { return was == nil || c.Number >= was.Number })
	if was == nil || there || failed != nil && (known.Lost == nil || !errors.Is(failed, repository.ErrCorrupt)) {
		return nil
	}
	why := obstacle(known)
	if known.Lost == nil || why == "" {
		why = fmt.Sprintf("target %q: commit %d (checkpoint %s, step %d, confirmed %s) is below %q no more, and nothing newer is: put its objects back from a copy of the target, "+
			"if there is one; a push, or %s, tells what else can be done",
			block.Target, was.Number, was.Checkpoint, was.Step, was.At.UTC().Format(time.RFC3339), block.Prefix, run.Repair())
	}
	return api.Errorf(http.StatusBadGateway, client.CodeTargetBroken, "%s (%s; %s tells what is missing)", why, left(commits, run), run.Verify()).
		With("target", block.Target).With("commit", was.Number).With("checkpoint_uuid", was.Checkpoint)
}

// left tells what can still be listed.
func left(commits []syncer.CommitInfo, run syncer.Commands) string {
	if len(commits) == 0 {
		return "no checkpoint is listed there now"
	}
	newest := slices.MaxFunc(commits, func(a, b syncer.CommitInfo) int { return cmp.Compare(a.Number, b.Number) })
	return fmt.Sprintf("the newest checkpoint that is listed there now is commit %d, of step %d; %s lists what is left", newest.Number, newest.Checkpoint.Step, run.ListApart())
}

// merger puts the commits of several targets into one list. A checkpoint has a row for each number that it was committed as, so that each row
// can be restored by its number: targets count for themselves, and a repair commits the same checkpoint anew.
type merger struct{ rows []client.CheckpointView }

func (m *merger) add(target string, commits []syncer.CommitInfo, damage *syncer.Damage) {
	for _, c := range commits {
		i := slices.IndexFunc(m.rows, func(v client.CheckpointView) bool { return v.UUID == c.Checkpoint.ID && v.Number == c.Number })
		if i >= 0 {
			m.rows[i].Where = append(m.rows[i].Where, target)
		} else {
			i, m.rows = len(m.rows), append(m.rows, commitView(target, c))
		}
		if damage != nil && slices.Contains(damage.Commits, c.Number) {
			m.rows[i].Broken = append(m.rows[i].Broken, target)
		}
	}
}

func commitView(target string, c syncer.CommitInfo) client.CheckpointView {
	return client.CheckpointView{
		UUID: c.Checkpoint.ID, Step: c.Checkpoint.Step, Size: c.Totals.Bytes, Created: c.Checkpoint.Created.UTC(),
		Where: []string{target}, Number: c.Number,
	}
}

// views are newest last: by step, then id, as local checkpoints are, then number.
func (m *merger) views() []client.CheckpointView {
	sort.SliceStable(m.rows, func(i, j int) bool {
		a, b := m.rows[i], m.rows[j]
		if a.Step != b.Step {
			return a.Step < b.Step
		}
		return cmp.Or(cmp.Compare(a.UUID.String(), b.UUID.String()), cmp.Compare(a.Number, b.Number)) < 0
	})
	if m.rows == nil {
		return []client.CheckpointView{}
	}
	return m.rows
}
