package host

import (
	"fmt"

	"github.com/cairnsync/cairn/core/sqlcircuit"
	"github.com/cairnsync/cairn/sdk/client"
)

// Stats are the numbers of a pipeline; inputs only where the circuit counts them.
func (p *pipeline) Stats() client.Stats {
	l := p.look()
	counted := l.counted()
	stats := client.Stats{Inputs: inputStats(p.cfg.Name, counted)}
	if l.loop == nil {
		return stats
	}
	stats.Step, stats.Buffered = l.loop.Step, l.loop.Buffered
	stats.Waiting, stats.Size = counted.Waiting, counted.DatabaseBytes+counted.WALBytes
	return stats
}

// counted is what the running circuit counts; nothing where none runs, or one that does not count.
func (l look) counted() sqlcircuit.Stats {
	if l.loop == nil {
		return sqlcircuit.Stats{}
	}
	sql, ok := l.run.circuit.(*sqlcircuit.Circuit)
	if !ok {
		return sqlcircuit.Stats{}
	}
	return sql.Stats()
}

// inputStats shows the inputs of the pipeline of that name.
func inputStats(pipeline string, counted sqlcircuit.Stats) []client.InputStats {
	views := []client.InputStats{}
	for _, in := range counted.Inputs {
		view := client.InputStats{
			Name: in.Name, Applied: in.Applied, Rejected: in.Refused, Buffered: in.Buffered, Stopped: in.Stopped, Note: in.Note,
		}
		if in.Stopped != "" {
			view.Remedy = begunAnew(pipeline)
		}
		views = append(views, view)
	}
	return views
}

// begunAnew is the way on with an input that has stopped: its reason alone, once it is gone, changes nothing.
func begunAnew(pipeline string) string {
	return fmt.Sprintf("when that is mended: `cairn pipeline stop %s`, then `cairn pipeline start %s`", pipeline, pipeline)
}
