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
	"github.com/cairnsync/cairn/core/syncer"
	"github.com/cairnsync/cairn/sdk/client"
)

// RemoteCheckpoints reads what the targets hold; "" = all of them. One that cannot be read is an error: a list that leaves it out would say
// that nothing is there.
func (p *pipeline) RemoteCheckpoints(ctx context.Context, target string) ([]client.CheckpointView, error) {
	blocks := p.cfg.Backend.Repositories()
	if len(blocks) == 0 {
		return nil, api.Errorf(http.StatusBadRequest, client.CodeNoSync, "pipeline %q has no sync block", p.cfg.Name)
	}
	if target != "" {
		blocks = slices.DeleteFunc(slices.Clone(blocks), func(b config.Sync) bool { return b.Target != target })
		if len(blocks) == 0 {
			return nil, p.unknownTarget(target)
		}
	}
	merged := &merger{}
	for _, block := range blocks {
		if why := p.host.down(block.Target); why != "" {
			return nil, targetError(errors.New(why))
		}
		reader, err := p.reader(block, remoteBudget)
		if err != nil {
			return nil, err
		}
		commits, err := reader.ListCommits(ctx)
		if err != nil {
			return nil, targetError(fmt.Errorf("list checkpoints on target %q: %w", block.Target, err))
		}
		merged.add(block.Target, commits)
	}
	return merged.views(), nil
}

// remoteBudget is how long one call to a store is repeated while somebody waits for an answer of the API.
const remoteBudget = 30 * time.Second

// merger puts the commits of several targets into one list. A checkpoint has a row for each number that it was committed as, so that each row
// can be restored by its number: targets count for themselves, and a repair commits the same checkpoint anew.
type merger struct{ rows []client.CheckpointView }

func (m *merger) add(target string, commits []syncer.CommitInfo) {
	for _, c := range commits {
		i := slices.IndexFunc(m.rows, func(v client.CheckpointView) bool { return v.UUID == c.Checkpoint.ID && v.Number == c.Number })
		if i >= 0 {
			m.rows[i].Where = append(m.rows[i].Where, target)
			continue
		}
		m.rows = append(m.rows, commitView(target, c))
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
