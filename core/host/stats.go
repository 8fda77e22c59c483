package host

import (
	"github.com/cairnsync/cairn/core/sqlcircuit"
	"github.com/cairnsync/cairn/sdk/client"
)

// Stats are the numbers of a pipeline; inputs only where the circuit counts them.
func (p *pipeline) Stats() client.Stats {
	l := p.look()
	stats := client.Stats{Inputs: []client.InputStats{}}
	if l.loop == nil {
		return stats
	}
	stats.Step, stats.Buffered = l.loop.Step, l.loop.Buffered
	if sql, ok := l.run.circuit.(*sqlcircuit.Circuit); ok {
		counted := sql.Stats()
		stats.Waiting, stats.Size = counted.Waiting, counted.DatabaseBytes+counted.WALBytes
		for _, in := range counted.Inputs {
			stats.Inputs = append(stats.Inputs, client.InputStats{
				Name: in.Name, Applied: in.Applied, Rejected: in.Refused, Buffered: in.Buffered, Stopped: in.Stopped, Note: in.Note,
			})
		}
	}
	return stats
}
